//! Tells the owners of pods that these are to leave, some time before (`drain.notify-before`): a planner and hooks of the
//! host, behind all policies.
//!
//! The planner refuses a drain whose deadline comes before its first eviction, and `before-cordon` does if hooks of policies
//! have taken the time. It is not called where the node is cordoned already. `before-drain` writes an Event about each
//! workload with pods that are to leave, and waits. `before-wave` does the same for workloads whose first pod came later. A
//! hook waits for the workloads of its first step. Those that come meanwhile get an Event and do not prolong the wait, or a
//! drain to which they keep coming would never begin. A workload gets one Event in a drain, whichever process writes it: its
//! name says so. One that cannot be written is tried again, ever more rarely, until the wait is over; it holds the drain no
//! longer than that.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _, stream};
use scupper_engine::{
    Controller, Drain, HookPhase, HookStep, HumanDuration, Intent, Plan, PlanAnswer, Pod, PolicyInfo,
    Request, StepOutcome, Time, Uid, named,
};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use crate::RunnerDeps;
use scupper_cluster::{Cluster, KubernetesEvent, Severity, WriteError};
use scupper_common::clock::Clock;
use scupper_forecast::{NOTICE, notice_refusal};
use scupper_report::PolicyMessage;

const TOLD: &str = "WorkloadsNotified";
const NOT_TOLD: &str = "WorkloadsNotNotified";
/// The reason of the Events about workloads.
const LEAVES: &str = "PodsLeaveNode";

/// How long to wait before an Event is tried again that could not be written; doubled after each further failure.
const AGAIN: Duration = Duration::from_secs(1);
/// The longest such wait.
const LONGEST: Duration = Duration::from_secs(60);
/// How long a step may take to write its Events.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);
/// Owners that are read, and Events that are written, at once.
const AT_ONCE: usize = 8;
/// The most pods to name in an Event.
const MOST_NAMES: usize = 5;

/// Adds the planner and the hooks to a drain whose settings want notices.
#[must_use]
pub(crate) fn planned(mut request: Request) -> Request {
    let is_there = request.policies.iter().any(|policy| policy.name == NOTICE);
    if request.settings.notice().is_some() && request.intent == Intent::Drain && !is_there {
        request.policies.push(PolicyInfo {
            name: NOTICE.to_owned(),
            planner: true,
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

/// Answers for the planner: a drain that would end before its first pod leaves is refused while nothing has changed.
pub(crate) fn plan(drain: &Drain, now: Time, draft: Plan) -> PlanAnswer {
    let leaves = |pod: &Pod| {
        let decision = draft.decision(&pod.id.uid);
        decision.is_some_and(|decision| decision.verdict.leaves()) && !pod.is_finished()
    };
    let has_leaving_pods = drain.pods_to_plan().iter().any(leaves);
    let refusal = refusal(drain.request(), now, has_leaving_pods).filter(|_| drain.is_untouched());
    match refusal {
        Some(message) => PlanAnswer::Refused { message },
        None => PlanAnswer::Plan(draft),
    }
}

fn refusal(request: &Request, now: Time, has_leaving_pods: bool) -> Option<String> {
    let left = request.deadline?.since(now);
    notice_refusal(&request.settings, left, has_leaving_pods)
}

/// Whom this process has told. A process that continues the drain knows it by the hook's state and the Events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notices(Arc<Mutex<Memory>>);

#[derive(Debug, Default)]
struct Memory {
    /// By workload.
    told: BTreeMap<Uid, Notice>,
    /// The controllers that people know, by those of the pods.
    owners: BTreeMap<Uid, Controller>,
    /// Those with pods that were to leave when the drain began are among them.
    began: bool,
    /// The times in the hooks' states. Each is read once: the wall clock may be set later.
    times: BTreeMap<Vec<u8>, Time>,
}

#[derive(Clone, Debug)]
struct Notice {
    /// When it was first tried to tell the workload.
    at: Time,
    /// The Event is not written yet.
    missing: Option<Missing>,
}

#[derive(Clone, Debug)]
struct Missing {
    why: String,
    tries: u32,
    /// When it is tried again; `None`: never, the API server will not take it.
    again: Option<Time>,
}

/// A workload with its pods that are to leave.
struct Workload<'a> {
    /// `None`: a pod without a controller, which is the workload itself.
    controller: Option<Controller>,
    pods: Vec<&'a Pod>,
}

/// One step of a hook.
pub(crate) struct Step {
    cluster: Cluster,
    clock: Clock,
    notices: Notices,
    request: Request,
    /// When the drain began.
    started: Time,
    phase: HookPhase,
    /// What the last step returned.
    state: Vec<u8>,
    /// The pods that are to leave, without those that have finished.
    pods: Vec<Pod>,
}

impl Step {
    /// The step that the engine asks for. `started`: when the drain began.
    pub(crate) fn of(
        deps: &RunnerDeps,
        drain: &Drain,
        notices: &Notices,
        started: Time,
        step: &HookStep,
    ) -> Self {
        let leaving: BTreeSet<_> = step.leaving.iter().collect();
        let pods = drain
            .pods()
            .filter(|pod| leaving.contains(&pod.id.uid) && !pod.is_finished());
        Self {
            cluster: deps.cluster.clone(),
            clock: deps.clock,
            notices: notices.clone(),
            request: drain.request().clone(),
            started,
            phase: step.phase,
            state: step.state.clone(),
            pods: pods.cloned().collect(),
        }
    }

    /// Takes the step. Returns its outcome, and a message if there is one.
    pub(crate) async fn take(self) -> (StepOutcome, Option<PolicyMessage>) {
        match self.phase {
            HookPhase::BeforeCordon => (self.fits(), None),
            _ => self.notify().await,
        }
    }

    fn fits(&self) -> StepOutcome {
        let refusal = refusal(&self.request, self.clock.now(), !self.pods.is_empty());
        refusal.map_or(StepOutcome::Done, |message| StepOutcome::Failed {
            message,
            retry_after: None,
        })
    }

    async fn notify(self) -> (StepOutcome, Option<PolicyMessage>) {
        let now = self.clock.now();
        let mut memory = self.notices.0.lock().await;
        let Memory {
            told,
            owners,
            began,
            times,
        } = &mut *memory;
        let waits_since = self.saved_time(times);
        let told_before = (!*began).then(|| self.told_before(waits_since)).flatten();
        *began |= self.phase == HookPhase::BeforeDrain;
        self.read_owners(owners).await;
        let workloads = self.workloads(owners);
        for (uid, workload) in &workloads {
            let at = told_before.filter(|at| workload.was_there(self.clock.wall_at(*at)));
            let missing = at.is_none().then(|| Missing::not_tried(now));
            let at = at.unwrap_or(now);
            told.entry(uid.clone()).or_insert(Notice { at, missing });
        }
        let last = |told: &BTreeMap<Uid, Notice>| {
            let times = workloads.keys().filter_map(|uid| Some(told.get(uid)?.at));
            times.max()
        };
        let Some(latest) = last(told) else {
            return (StepOutcome::Done, None);
        };
        let written = self
            .tell_all(&workloads, told, waits_since.unwrap_or(latest))
            .await;
        let since = waits_since.or_else(|| last(told)).unwrap_or(latest);
        let state = self.clock.wall_at(since).as_millis().to_be_bytes().to_vec();
        times.insert(state.clone(), since);
        let own = workloads
            .iter()
            .filter_map(|(uid, workload)| Some((workload.name(), told.get(uid)?)));
        self.outcome(&own.collect(), written, (state, since), now)
    }

    /// Waits for the workload that was told last of those in the hook's first step, which was at this time.
    fn outcome(
        &self,
        own: &BTreeMap<String, &Notice>,
        written: usize,
        (state, since): (Vec<u8>, Time),
        now: Time,
    ) -> (StepOutcome, Option<PolicyMessage>) {
        let missing = own
            .iter()
            .find_map(|(name, notice)| Some((name, &notice.missing.as_ref()?.why)));
        let left = (since + self.request.settings.notify_before).since(now);
        if left.is_zero() {
            let not_told =
                missing.map(|(name, error)| format!("{name} was not told that its pods leave: {error}"));
            return (StepOutcome::Done, not_told.map(|note| message(NOT_TOLD, note)));
        }
        let again = own.values().filter_map(|notice| notice.missing.as_ref()?.again);
        let outcome = StepOutcome::Pending {
            state,
            again_after: again.min().map_or(left, |again| again.since(now).min(left)),
            progress: missing.map_or_else(
                || format!("{} told that pods leave", count(own.len())),
                |(name, error)| format!("{name} is not told: {error}"),
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

    /// Since when the hook waits; `None`: this is its first step.
    fn saved_time(&self, times: &mut BTreeMap<Vec<u8>, Time>) -> Option<Time> {
        let wall = <[u8; 8]>::try_from(self.state.as_slice()).ok()?;
        let read = || {
            self.clock
                .moment_of_wall(Time::from_millis(u64::from_be_bytes(wall)))
        };
        Some(*times.entry(self.state.clone()).or_insert_with(read))
    }

    /// When another process of this drain told the workloads that had pods then; `None`: none did.
    fn told_before(&self, waits_since: Option<Time>) -> Option<Time> {
        match self.phase {
            HookPhase::BeforeDrain => waits_since,
            _ => Some(self.started),
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

    /// Writes what is due, and returns how many were. What has no answer in time is tried again. `since`: when the hook began
    /// to wait.
    async fn tell_all(
        &self,
        workloads: &BTreeMap<Uid, Workload<'_>>,
        notices: &mut BTreeMap<Uid, Notice>,
        since: Time,
    ) -> usize {
        let now = self.clock.now();
        let mut due = Vec::new();
        for (uid, workload) in workloads {
            let Some(notice) = notices.get_mut(uid) else {
                continue;
            };
            let Some(missing) = notice.missing.as_mut().filter(|missing| missing.is_due(now)) else {
                continue;
            };
            missing.is_tried(now);
            // Its own wave waits for it later.
            let is_later = self.phase == HookPhase::BeforeDrain;
            due.push((uid, workload, if is_later { notice.at } else { since }));
        }
        let telling = due.into_iter().map(|(uid, workload, since)| {
            let told = self.tell(uid, workload, since);
            told.map(move |told| (uid, told))
        });
        let telling: Vec<_> = telling.collect();
        let mut telling = stream::iter(telling).buffer_unordered(AT_ONCE);
        let limit = self.request.settings.notify_before.min(ANSWERED_WITHIN);
        let until = Instant::now() + limit;
        let mut written = 0;
        while let Ok(Some((uid, told))) = timeout_at(until, telling.next()).await {
            let Some(notice) = notices.get_mut(uid) else {
                continue;
            };
            match told {
                Ok(before) => {
                    notice.missing = None;
                    match before.map(|wall| self.clock.moment_of_wall(wall)) {
                        Some(before) => notice.at = before.max(self.started).min(notice.at),
                        None => written += 1,
                    }
                }
                Err(error) => {
                    if let Some(missing) = &mut notice.missing {
                        missing.failed(&error);
                    }
                }
            }
        }
        written
    }

    /// Writes the Event, unless another process of this drain has written it. Returns when it has, by the wall clock.
    async fn tell(
        &self,
        uid: &Uid,
        workload: &Workload<'_>,
        since: Time,
    ) -> Result<Option<Time>, WriteError> {
        let Request { node, name, id, .. } = &self.request;
        let Some(pod) = workload.pods.first() else {
            return Ok(None);
        };
        let left = (since + self.request.settings.notify_before).since(self.clock.now());
        let names: BTreeSet<&str> = workload.pods.iter().map(|pod| pod.id.name.as_str()).collect();
        let pods = named(names, MOST_NAMES);
        let left = HumanDuration(left);
        let note = format!("leaves node {node} in {left} at the earliest (drain {name}): {pods}");
        let event = KubernetesEvent::of_node(node, Severity::Normal, LEAVES, note);
        let controller = workload.controller.as_ref();
        self.cluster
            .emit_once(&event, &event_name(uid, id), controller, &pod.id)
            .await
    }
}

/// The name of the Event about this workload in this drain.
fn event_name(workload: &Uid, drain: &str) -> String {
    let name = format!("scupper-{workload}-{drain}").to_lowercase();
    name.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-")
}

impl Missing {
    fn not_tried(now: Time) -> Self {
        Self {
            why: "no answer".to_owned(),
            tries: 0,
            again: Some(now),
        }
    }

    fn is_due(&self, now: Time) -> bool {
        self.again.is_some_and(|again| again <= now)
    }

    fn is_tried(&mut self, now: Time) {
        self.again = Some(now + AGAIN.saturating_mul(1 << self.tries.min(6)).min(LONGEST));
        self.tries = self.tries.saturating_add(1);
    }

    fn failed(&mut self, error: &WriteError) {
        self.why = error.to_string();
        self.again = self.again.filter(|_| !error.is_final());
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
