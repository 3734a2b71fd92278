//! The volumes of the node's pods: each is detached some time after its last pod, or never. Checks what a drain that
//! waits for them reports.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scupper_engine::{
    Answer, AttachedVolume, Checkpoint, Drain, Notice, Phase, Pod, Request, Task, Time, VolumeClaim,
    VolumeWait, VolumesLeft,
};

use crate::cluster::{Change, Cluster, NODE};
use crate::rng::Rng;
use crate::scenario::Mood;
use crate::server::Done;
use crate::timers::{Chore, Fault, Stream, Timer};
use crate::violation::{Checked, broken};
use crate::world::World;

/// A process that starts when the wait is already over lists once; timers may be late.
const ONE_LOOK: Duration = Duration::from_secs(5);
const MINUTE: u64 = 60_000;

/// How long a drain of this world waits for volumes. Only in a wild world may it fail because of them.
pub(crate) fn wait(rng: &mut Rng, mood: Mood) -> Option<VolumeWait> {
    let waits = mood != Mood::Calm && rng.chance(300);
    // Also long ones, so that a process may die while it waits.
    let shortest = if rng.chance(300) { 1_000 } else { 2 * MINUTE };
    waits.then(|| VolumeWait {
        at_most: Duration::from_millis(rng.between(shortest, 10 * MINUTE)),
        or_fail: mood == Mood::Wild && rng.chance(300),
    })
}

/// What is attached to the node.
#[derive(Debug)]
pub(crate) struct Volumes {
    rng: Rng,
    mood: Mood,
    /// By the attachment's name.
    attached: BTreeMap<String, Attached>,
}

/// One attached volume.
#[derive(Debug)]
struct Attached {
    claim: Option<VolumeClaim>,
    since: u64,
}

impl Volumes {
    pub(crate) const fn new(rng: Rng, mood: Mood) -> Self {
        Self {
            rng,
            mood,
            attached: BTreeMap::new(),
        }
    }

    /// A pod starts on the node: some have a volume, and some share one.
    fn attach(&mut self, now: u64, pod: &mut Pod) {
        if pod.volume_claims.is_empty() && self.rng.chance(400) {
            let name = if self.rng.chance(100) {
                "shared"
            } else {
                pod.id.name.as_str()
            };
            pod.volume_claims.push(format!("data-{name}"));
        }
        for claim in claims_of(pod) {
            let attachment = format!("csi-{claim}");
            let fresh = Attached {
                claim: Some(claim),
                since: now,
            };
            self.attached.entry(attachment).or_insert(fresh);
        }
    }

    /// How long after its last use a volume is detached; `None`: never.
    fn detached_after(&mut self) -> Option<u64> {
        match self.rng.below(10) {
            0 if self.mood == Mood::Wild => None,
            0 | 1 => Some(self.rng.span(20_000, 15 * MINUTE)),
            _ => Some(self.rng.span(500, 30_000)),
        }
    }

    fn list(&self) -> Vec<AttachedVolume> {
        let volume = |(name, attached): (&String, &Attached)| AttachedVolume {
            attachment: name.clone(),
            volume: format!("pv-{name}"),
            claim: attached.claim.clone(),
            attacher: String::new(),
            problem: String::new(),
        };
        self.attached.iter().map(volume).collect()
    }
}

fn claims_of(pod: &Pod) -> impl Iterator<Item = VolumeClaim> + use<'_> {
    pod.volume_claims.iter().map(|name| VolumeClaim {
        namespace: pod.id.namespace.clone(),
        name: name.clone(),
    })
}

impl Cluster {
    /// A pod is created; if it is on this node, its volumes are attached.
    pub(crate) fn attach_volumes(&mut self, now: u64, pod: &mut Pod) {
        if pod.node == NODE
            && let Some(volumes) = &mut self.volumes
        {
            volumes.attach(now, pod);
            self.changes.push(Change::Volumes);
        }
    }

    /// A volume that no pod uses, left attached by an earlier pod.
    pub(crate) fn attach_stray(&mut self, now: u64) {
        let Some(volumes) = &mut self.volumes else { return };
        if !volumes.rng.chance(150) {
            return;
        }
        let name = String::from("csi-stray");
        let stray = Attached {
            claim: None,
            since: now,
        };
        volumes.attached.insert(name.clone(), stray);
        if let Some(after) = volumes.detached_after() {
            self.changes.push(Change::Later(now + after, Chore::Detach(name)));
        }
    }

    /// A pod is gone: its volumes follow.
    pub(crate) fn release_volumes(&mut self, now: u64, pod: &Pod) {
        let Some(volumes) = self.volumes.as_mut().filter(|_| pod.node == NODE) else {
            return;
        };
        for claim in claims_of(pod) {
            if let Some(after) = volumes.detached_after() {
                let chore = Chore::Detach(format!("csi-{claim}"));
                self.changes.push(Change::Later(now + after, chore));
            }
        }
    }

    /// The attach-detach controller detaches a volume, unless a pod uses it again.
    pub(crate) fn detach(&mut self, attachment: &str) {
        let Some(volumes) = &mut self.volumes else { return };
        let claim = volumes.attached.get(attachment).and_then(|it| it.claim.clone());
        let mut pods = self.pods.values().map(|truth| &truth.pod);
        let is_used = pods.any(|pod| pod.node == NODE && claims_of(pod).any(|its| Some(its) == claim));
        if !is_used && volumes.attached.remove(attachment).is_some() {
            self.changes.push(Change::Volumes);
        }
    }

    pub(crate) fn attached_volumes(&self) -> Vec<AttachedVolume> {
        self.volumes.as_ref().map(Volumes::list).unwrap_or_default()
    }
}

impl World {
    pub(crate) fn list_volumes(&mut self) -> Done {
        let message = String::from("scripted");
        let unavailable = self.rng.chance(self.scenario.faults.list_unavailable);
        let answer = match (self.is_forbidden(), unavailable) {
            (true, _) => Answer::Forbidden { message },
            (_, true) => Answer::Unavailable { message },
            _ => Answer::Volumes(self.cluster.attached_volumes()),
        };
        Done {
            answer,
            delay: 0,
            snapshot: Some(self.now),
        }
    }

    /// The driver begins to watch volumes once a list has shown some.
    pub(crate) fn watch_volumes(&mut self, answer: &Answer) {
        let shows_some = matches!(answer, Answer::Volumes(volumes) if !volumes.is_empty());
        if shows_some && !self.streams.contains_key(&Stream::Volumes) {
            self.streams
                .insert(Stream::Volumes, crate::world::Channel::default());
            let at = self.now + self.rng.span(50, 3_000);
            let (incarnation, stream) = (self.incarnation, Stream::Volumes);
            self.queue.push(at, Timer::List { incarnation, stream });
            // Otherwise hardly any process would die while it waits.
            if self.rng.chance(250) {
                let at = self.now + self.rng.span(1_000, MINUTE);
                self.queue.push(at, Timer::Fault(Fault::Crash));
            }
        }
    }
}

/// What the drain has reported and learned about volumes.
#[derive(Debug, Default)]
pub(crate) struct VolumeRecord {
    /// When the previous process began to wait.
    resumed: Option<Time>,
    /// When this process first asked for a list.
    first_list: Option<Time>,
    /// The drain has reported that it waits.
    waits: bool,
    /// What it reported as still attached when it stopped waiting.
    left: Option<VolumesLeft>,
    /// When the API server took the list of the last answer.
    listed: Option<u64>,
    /// Claims of pods that the drain has known since then.
    used: BTreeSet<VolumeClaim>,
    /// When the wait ended: with the last answer, or when the drain reported it.
    settled: Option<u64>,
    is_reported: bool,
    /// It has waited since the node last looked empty: a wait that is over at once makes no list old.
    has_waited: bool,
}

impl VolumeRecord {
    pub(crate) fn resumed(now: Time, checkpoint: Option<&Checkpoint>) -> Self {
        let since = checkpoint.and_then(|mark| mark.volumes_since);
        Self {
            resumed: since.map(|since| since.min(now)),
            ..Self::default()
        }
    }

    pub(crate) fn command(&mut self, now: Time, task: &Task) {
        if *task == Task::ListVolumes {
            self.first_list.get_or_insert(now);
            self.has_waited = true;
        }
    }

    pub(crate) fn answered(&mut self, now: u64, answer: &Answer, snapshot: Option<u64>) {
        if matches!(answer, Answer::Volumes(_)) {
            if !self.is_reported {
                self.settled = Some(now);
            }
            self.listed = snapshot;
            self.used.clear();
        }
    }

    /// When the drain must have stopped waiting.
    fn end(&self, wait: VolumeWait) -> Option<Time> {
        let first_list = self.first_list?;
        let since = self.resumed.unwrap_or(first_list);
        Some((since + wait.at_most).max(first_list + ONE_LOOK))
    }

    /// `now`: according to the process, and the true time.
    pub(crate) fn notice(&mut self, now: (Time, u64), notice: &Notice, request: &Request) -> Checked {
        let (now, true_now) = now;
        match notice {
            Notice::AwaitsVolumes { .. } => (self.waits, self.has_waited) = (true, true),
            Notice::VolumesSettled { left } => {
                self.waits = false;
                (self.settled, self.is_reported) = (self.has_waited.then_some(true_now), true);
                self.left.clone_from(left);
                let wait = request.settings.wait_for_volumes;
                let since = self.resumed.or(self.first_list);
                let end = since.zip(wait).map(|(since, wait)| since + wait.at_most);
                let is_early = end.is_none_or(|end| now < end) && request.deadline.is_none();
                if left.is_some() && is_early {
                    return broken(6, "stops waiting for volumes before its time");
                }
            }
            Notice::Phase(phase) => {
                self.waits = false;
                if *phase == Phase::Detaching {
                    self.left = None;
                    (self.settled, self.is_reported, self.has_waited) = (None, false, false);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// After an event.
    pub(crate) fn check(&mut self, now: Time, drain: &Drain, cordoned: bool) -> Checked {
        if self.listed.is_some() {
            self.used.extend(drain.pods().flat_map(claims_of));
        }
        let Some(wait) = drain.request().settings.wait_for_volumes else {
            return Ok(());
        };
        let waits = self.waits && cordoned && drain.phase() == Phase::Detaching && drain.outcome().is_none();
        if waits && self.end(wait).is_some_and(|end| now >= end) {
            let invariant = if self.resumed.is_some() { 8 } else { 6 };
            return broken(invariant, "waits for volumes for longer than it may");
        }
        Ok(())
    }

    /// A wait for a volume that a remaining pod uses would never end.
    pub(crate) fn names_no_used_volume(notice: &Notice, drain: &Drain) -> Checked {
        let Notice::AwaitsVolumes { left, .. } = notice else {
            return Ok(());
        };
        let used: BTreeSet<_> = drain.pods().flat_map(claims_of).collect();
        let mut claims = left.attached().iter().filter_map(|volume| volume.claim.as_ref());
        match claims.find(|claim| used.contains(claim)) {
            Some(claim) => broken(6, format!("waits for {claim}, which a pod uses that stays")),
            None => Ok(()),
        }
    }

    /// Invariant 3: pods that came while the drain waited count.
    pub(crate) fn is_listed_since(&self, fresh_list: Option<u64>) -> Checked {
        match self
            .settled
            .filter(|settled| fresh_list.is_none_or(|list| list < *settled))
        {
            Some(_) => broken(
                3,
                "drained, and the last list is older than the end of the wait for volumes",
            ),
            None => Ok(()),
        }
    }

    /// Invariant 3: every volume that the outcome does not name is detached.
    pub(crate) fn drained(&self, request: &Request, truth: &Cluster) -> Checked {
        let Some(volumes) = &truth.volumes else {
            return Ok(());
        };
        if request.settings.wait_for_volumes.is_none() || self.left.is_some() {
            return Ok(());
        }
        let Some(listed) = self.listed else {
            return broken(3, "drained, and the volumes were never listed");
        };
        let mut attached = volumes.attached.iter();
        let forgotten = attached.find(|(_, volume)| {
            let is_used = volume
                .claim
                .as_ref()
                .is_some_and(|claim| self.used.contains(claim));
            volume.since < listed && !is_used
        });
        match forgotten {
            Some((name, _)) => broken(
                3,
                format!("drained, and {name} is attached, of which it says nothing"),
            ),
            None => Ok(()),
        }
    }
}
