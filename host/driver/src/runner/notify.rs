//! Tells the owners of pods that these are to leave, some time before (`drain.notify-before`): hooks of the host, behind
//! all policies.
//!
//! `before-cordon` refuses a drain whose deadline comes before its first eviction. `before-drain` writes an Event about each
//! workload with pods that are to leave, and waits. `before-wave` does the same for workloads whose first pod came later. A
//! workload gets one Event in a drain. One that cannot be written is tried again until the wait is over; it holds the drain
//! no longer than that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _, stream};
use scupper_engine::{
    Controller, HookPhase, HumanDuration, Intent, Pod, PolicyInfo, Request, StepOutcome, Time, Uid, named,
};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use scupper_cluster::{Cluster, KubernetesEvent, Severity, WriteError};
use scupper_common::clock::Clock;
use scupper_forecast::{NOTICE, notice_refusal};
use scupper_report::PolicyMessage;

const TOLD: &str = "WorkloadsNotified";
const NOT_TOLD: &str = "WorkloadsNotNotified";
/// The reason of the Events about workloads.
const LEAVES: &str = "PodsLeaveNode";

/// How long to wait before an Event is tried again that could not be written.
const AGAIN: Duration = Duration::from_secs(1);
/// How long a step may take to write its Events.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);
/// Owners that are read, and Events that are written, at once.
const AT_ONCE: usize = 8;
/// The most pods to name in an Event.
const MOST_NAMES: usize = 5;

/// Adds the hooks to a drain whose settings want notices.
#[must_use]
pub(super) fn planned(mut request: Request) -> Request {
    let is_there = request.policies.iter().any(|policy| policy.name == NOTICE);
    if request.settings.notice().is_some() && request.intent == Intent::Drain && !is_there {
        request.policies.push(PolicyInfo {
            name: NOTICE.to_owned(),
            phases: vec![
                HookPhase::BeforeCordon,
                HookPhase::BeforeDrain,
                HookPhase::BeforeWave,
            ],
            ..PolicyInfo::default()
        });
    }
    request
}

/// Whom this process has told. A process that continues the drain knows it by the hook's state.
#[derive(Clone, Debug, Default)]
pub(super) struct Notices(Arc<Mutex<Memory>>);

#[derive(Debug, Default)]
struct Memory {
    /// By workload.
    told: BTreeMap<Uid, Notice>,
    /// The controllers that people know, by those of the pods.
    owners: BTreeMap<Uid, Controller>,
    /// Those with pods that were to leave when the drain began are among them.
    began: bool,
}

#[derive(Clone, Debug)]
struct Notice {
    /// When it was first tried to tell the workload.
    at: Time,
    /// Why the Event is not written yet.
    missing: Option<String>,
}

/// A workload with its pods that are to leave.
struct Workload<'a> {
    /// `None`: a pod without a controller, which is the workload itself.
    controller: Option<Controller>,
    pods: Vec<&'a Pod>,
}

/// One step of a hook.
pub(super) struct Step {
    pub(super) cluster: Cluster,
    pub(super) clock: Clock,
    pub(super) notices: Notices,
    pub(super) request: Request,
    /// When the drain began.
    pub(super) started: Time,
    pub(super) phase: HookPhase,
    /// What the last step returned.
    pub(super) state: Vec<u8>,
    /// The pods that are to leave.
    pub(super) pods: Vec<Pod>,
}

impl Step {
    /// Takes the step. Returns its outcome, and a message if there is one.
    pub(super) async fn take(self) -> (StepOutcome, Option<PolicyMessage>) {
        match self.phase {
            HookPhase::BeforeCordon => (self.fits(), None),
            _ => self.notify().await,
        }
    }

    /// A drain that would end before its first pod leaves is refused while nothing has changed.
    fn fits(&self) -> StepOutcome {
        let left = self
            .request
            .deadline
            .map(|deadline| deadline.since(self.clock.now()));
        let refusal =
            left.and_then(|left| notice_refusal(&self.request.settings, left, !self.pods.is_empty()));
        refusal.map_or(StepOutcome::Done, |message| StepOutcome::Failed {
            message,
            retry_after: None,
        })
    }

    async fn notify(self) -> (StepOutcome, Option<PolicyMessage>) {
        let now = self.clock.now();
        let mut memory = self.notices.0.lock().await;
        let since = (!memory.began).then(|| self.told_since()).flatten();
        memory.began |= self.phase == HookPhase::BeforeDrain;
        let Memory { told, owners, .. } = &mut *memory;
        self.read_owners(owners).await;
        let workloads = self.workloads(owners);
        for (uid, workload) in &workloads {
            let at = since.filter(|at| workload.was_there(self.clock.wall_at(*at)));
            let missing = at.is_none().then(|| "no answer".to_owned());
            let at = at.unwrap_or(now);
            told.entry(uid.clone()).or_insert(Notice { at, missing });
        }
        let written = self.tell_all(&workloads, told).await;
        let own = workloads
            .iter()
            .filter_map(|(uid, workload)| Some((workload.name(), told.get(uid)?)));
        self.outcome(&own.collect(), written, now)
    }

    /// Waits for the workload that was told last.
    fn outcome(
        &self,
        own: &BTreeMap<String, &Notice>,
        written: usize,
        now: Time,
    ) -> (StepOutcome, Option<PolicyMessage>) {
        let times = || own.values().map(|notice| notice.at);
        let (Some(first), Some(last)) = (times().min(), times().max()) else {
            return (StepOutcome::Done, None);
        };
        let missing = own
            .iter()
            .find_map(|(name, notice)| Some((name, notice.missing.as_ref()?)));
        let left = (last + self.request.settings.notify_before).since(now);
        if left.is_zero() {
            let not_told =
                missing.map(|(name, error)| format!("{name} was not told that its pods leave: {error}"));
            return (StepOutcome::Done, not_told.map(|note| message(NOT_TOLD, note)));
        }
        let outcome = StepOutcome::Pending {
            state: self.clock.wall_at(first).as_millis().to_be_bytes().to_vec(),
            again_after: if missing.is_some() { AGAIN.min(left) } else { left },
            progress: missing.map_or_else(
                || format!("{} told that pods leave", count(own.len())),
                |(name, error)| format!("{name} is not told yet: {error}"),
            ),
            waiting_for: Vec::new(),
        };
        let told = (written > 0).then(|| {
            let (workloads, left) = (count(written), HumanDuration(left));
            let note = format!("{workloads} told that pods of this node leave in {left} at the earliest");
            message(TOLD, note)
        });
        (outcome, told)
    }

    /// When another process of this drain told the workloads that had pods then; `None`: none did.
    fn told_since(&self) -> Option<Time> {
        match <[u8; 8]>::try_from(self.state.as_slice()) {
            Ok(wall) => {
                let wall = Time::from_millis(u64::from_be_bytes(wall));
                Some(self.clock.moment_of_wall(wall))
            }
            Err(_) => (self.phase != HookPhase::BeforeDrain).then_some(self.started),
        }
    }

    /// Adds the controllers that people know, by those of the pods.
    async fn read_owners(&self, owners: &mut BTreeMap<Uid, Controller>) {
        let until = Instant::now() + ANSWERED_WITHIN;
        let controllers = self
            .pods
            .iter()
            .filter_map(|pod| Some((pod.controller.as_ref()?, &pod.id.namespace)));
        let unread = controllers.filter(|(own, _)| !owners.contains_key(&own.uid));
        let unread: BTreeMap<&Uid, _> = unread.map(|pair| (&pair.0.uid, pair)).collect();
        let reads = unread.into_values().map(|(own, namespace)| {
            let read = timeout_at(until, self.cluster.top_controller(namespace, own));
            // Whoever may not read it still tells the owner of the pod.
            read.map(|top| {
                let top = top.ok().and_then(Result::ok);
                (own.uid.clone(), top.unwrap_or_else(|| own.clone()))
            })
        });
        let reads: Vec<_> = reads.collect();
        let read: Vec<_> = stream::iter(reads).buffer_unordered(AT_ONCE).collect().await;
        owners.extend(read);
    }

    /// By the UID of the controller that people know, or of the pod itself.
    fn workloads(&self, owners: &BTreeMap<Uid, Controller>) -> BTreeMap<Uid, Workload<'_>> {
        let mut workloads: BTreeMap<Uid, Workload<'_>> = BTreeMap::new();
        for pod in &self.pods {
            let own = pod.controller.as_ref();
            let controller = own.and_then(|own| owners.get(&own.uid)).cloned();
            let uid = controller
                .as_ref()
                .map_or(&pod.id.uid, |controller| &controller.uid);
            let workload = workloads.entry(uid.clone()).or_insert(Workload {
                controller,
                pods: Vec::new(),
            });
            workload.pods.push(pod);
        }
        workloads
    }

    /// Writes what is not written yet, and returns how many were. What has no answer in time is tried again.
    async fn tell_all(
        &self,
        workloads: &BTreeMap<Uid, Workload<'_>>,
        notices: &mut BTreeMap<Uid, Notice>,
    ) -> usize {
        let missing = workloads.iter().filter_map(|(uid, workload)| {
            let notice = notices.get(uid)?;
            notice.missing.as_ref()?;
            Some((uid, workload, notice.at))
        });
        let telling = missing.map(|(uid, workload, at)| {
            let told = self.tell(workload, at);
            told.map(move |told| (uid.clone(), told.err().map(|error| error.to_string())))
        });
        let telling: Vec<_> = telling.collect();
        let mut telling = stream::iter(telling).buffer_unordered(AT_ONCE);
        let limit = self.request.settings.notify_before.min(ANSWERED_WITHIN);
        let until = Instant::now() + limit;
        let mut written = 0;
        while let Ok(Some((uid, missing))) = timeout_at(until, telling.next()).await {
            written += usize::from(missing.is_none());
            if let Some(notice) = notices.get_mut(&uid) {
                notice.missing = missing;
            }
        }
        written
    }

    async fn tell(&self, workload: &Workload<'_>, at: Time) -> Result<(), WriteError> {
        let Request { node, name, .. } = &self.request;
        let left = (at + self.request.settings.notify_before).since(self.clock.now());
        let names: BTreeSet<&str> = workload.pods.iter().map(|pod| pod.id.name.as_str()).collect();
        let pods = named(names, MOST_NAMES);
        let left = HumanDuration(left);
        let note = format!("leaves node {node} in {left} at the earliest (drain {name}): {pods}");
        let event = KubernetesEvent::of_node(node, Severity::Normal, LEAVES, note);
        match (&workload.controller, workload.pods.first()) {
            (Some(controller), Some(pod)) => {
                let namespace = &pod.id.namespace;
                self.cluster
                    .emit_about_controller(&event, namespace, controller)
                    .await
            }
            (None, Some(pod)) => self.cluster.emit_about_pod(&event, &pod.id).await,
            (_, None) => Ok(()),
        }
    }
}

impl Workload<'_> {
    /// It certainly had a pod on the node at this time of the wall clock: the API server rounds creations down to seconds.
    fn was_there(&self, wall: Time) -> bool {
        let created = |pod: &Pod| pod.created + Duration::from_secs(1);
        self.pods.iter().any(|pod| created(pod) <= wall)
    }

    fn name(&self) -> String {
        let namespace = self.pods.first().map_or("", |pod| &pod.id.namespace);
        match (&self.controller, self.pods.first()) {
            (Some(controller), _) => format!("{} {namespace}/{}", controller.kind, controller.name),
            (None, Some(pod)) => format!("pod {}", pod.id),
            (None, None) => String::new(),
        }
    }
}

fn count(workloads: usize) -> String {
    match workloads {
        1 => "1 workload was".to_owned(),
        more => format!("{more} workloads were"),
    }
}

fn message(reason: &str, note: String) -> PolicyMessage {
    PolicyMessage {
        policy: NOTICE.to_owned(),
        warning: reason == NOT_TOLD,
        reason: reason.to_owned(),
        note,
    }
}

#[cfg(test)]
mod tests;
