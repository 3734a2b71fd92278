//! Everything the running process has received: events, answers and its own checkpoint. None of its conclusions.

use std::collections::{BTreeMap, BTreeSet};

use scupper_engine::{Answer, CommandId, Event, EvictAnswer, Node, Pod, Task, Time, Uid};

use crate::cluster::Cluster;

#[derive(Debug, Default)]
pub(crate) struct Knowledge {
    /// Pods that were reported and not disproved since.
    pub(crate) there: BTreeMap<Uid, Pod>,
    /// Pods that were reported gone.
    pub(crate) disproved: BTreeSet<Uid>,
    /// Pods that the watch reported gone.
    pub(crate) buried: BTreeSet<Uid>,
    /// Pods whose deletion was reported, by the watch or by an accepted eviction.
    pub(crate) deleting: BTreeSet<Uid>,
    /// Pods whose containers were reported as ended.
    pub(crate) finished: BTreeSet<Uid>,
    /// The reported state of the node with the highest version, unless only our own save reported that version.
    pub(crate) cordoned: Option<(u64, bool)>,
    /// That state has a cordon that was made ahead of the drain.
    pub(crate) is_ahead: bool,
    /// The cordon was seen lifted.
    pub(crate) saw_uncordon: bool,
    /// The node was seen without a cordon: one that is made then is none that a command has made ahead of the drain.
    saw_open: bool,
    pub(crate) node_told_gone: bool,
    pub(crate) heard_node: bool,
    pub(crate) heard_pods: bool,
    pub(crate) heard_budgets: bool,
    /// Cancelled or lost, and since when.
    pub(crate) stopped: Option<u64>,
    pub(crate) paused: Option<u64>,
    pub(crate) deadline: Option<u64>,
    /// The deadline as it was last moved, also after the drain was stopped: the last write is tried until then.
    pub(crate) last_deadline: Option<u64>,
    /// The latest answered list: when it was taken.
    pub(crate) fresh_list: Option<u64>,
    /// The node this process knows.
    pub(crate) node_uid: Option<Uid>,
    /// Counts events about pods, to order them against lists.
    heard: u64,
    told_at: BTreeMap<Uid, u64>,
    lists: BTreeMap<CommandId, u64>,
}

impl Knowledge {
    /// `node_uid`: the node that an earlier process has handled.
    pub(crate) fn new(deadline: Option<Time>, node_uid: Option<Uid>) -> Self {
        Self {
            node_uid,
            deadline: deadline.map(Time::as_millis),
            last_deadline: deadline.map(Time::as_millis),
            ..Self::default()
        }
    }

    pub(crate) const fn is_complete(&self) -> bool {
        self.heard_node && self.heard_pods && self.heard_budgets
    }

    pub(crate) fn is_cordoned(&self) -> bool {
        self.cordoned.is_some_and(|(_, cordoned)| cordoned)
    }

    /// Evictions are no longer allowed.
    pub(crate) fn is_over(&self, now: u64) -> bool {
        self.stopped.is_some() || self.deadline.is_some_and(|deadline| now >= deadline)
    }

    /// A list is requested: later events may be newer than it.
    pub(crate) fn asks_for_list(&mut self, id: CommandId) {
        self.lists.insert(id, self.heard);
    }

    /// Processes an event before its delivery; `asked` is the task it answers.
    pub(crate) fn observe(
        &mut self,
        now: u64,
        event: &Event,
        asked: Option<&(CommandId, Task)>,
        snapshot: Option<u64>,
        truth: &Cluster,
    ) {
        match event {
            Event::Node(node) => self.observe_node(node.as_ref()),
            Event::Pods(pods) => {
                self.heard_pods = true;
                self.observe_list(pods, u64::MAX, truth);
            }
            Event::PodApplied(pod) => self.observe_pod(pod),
            Event::PodDeleted(uid) => {
                self.buried.insert(uid.clone());
                self.disprove(uid);
            }
            Event::Budgets(_) => self.heard_budgets = true,
            Event::Deadline(deadline) => {
                self.last_deadline = deadline.map(Time::as_millis);
                // A deadline moved at the last moment counts as moved.
                if self.stopped.is_none() {
                    self.deadline = self.last_deadline;
                }
            }
            Event::Cancel { .. } | Event::Lost { .. } => {
                self.stopped.get_or_insert(now);
            }
            Event::Pause => {
                self.paused.get_or_insert(now);
            }
            Event::Answer(_, answer) => {
                if let Some((id, task)) = asked {
                    self.observe_answer(*id, task, answer, snapshot, truth);
                }
            }
            _ => {}
        }
    }

    fn observe_node(&mut self, node: Option<&Node>) {
        self.heard_node = true;
        let Some(node) = node else {
            self.node_told_gone = true;
            return;
        };
        if self.node_uid.as_ref().is_some_and(|uid| *uid != node.uid) {
            self.node_told_gone = true;
        }
        self.node_uid.get_or_insert_with(|| node.uid.clone());
        let version = node.resource_version.parse().unwrap_or(0);
        if self.cordoned.is_none_or(|(known, _)| version >= known) {
            self.saw_uncordon |= self.is_cordoned() && !node.unschedulable;
            self.cordoned = Some((version, node.unschedulable));
            let is_ahead = node.checkpoint.as_ref().is_some_and(|mark| mark.ahead);
            self.saw_open |= !node.unschedulable;
            self.is_ahead = is_ahead && node.unschedulable && !self.saw_open;
        }
    }

    fn observe_answer(
        &mut self,
        id: CommandId,
        task: &Task,
        answer: &Answer,
        snapshot: Option<u64>,
        truth: &Cluster,
    ) {
        match (task, answer) {
            (_, Answer::NodeGone) => self.node_told_gone = true,
            (Task::Cordon { .. }, Answer::Written { version }) => self.wrote(version, true),
            (Task::Uncordon { .. }, Answer::Written { version }) => self.wrote(version, false),
            (Task::ListPods, Answer::Pods(pods)) => {
                self.fresh_list = snapshot.or(self.fresh_list);
                let mark = self.lists.remove(&id).unwrap_or(0);
                self.observe_list(pods, mark, truth);
            }
            (task, Answer::Evict(answer)) => {
                let Some(pod) = task.removes() else {
                    return;
                };
                match answer {
                    EvictAnswer::Accepted => {
                        self.deleting.insert(pod.uid.clone());
                    }
                    EvictAnswer::NotFound | EvictAnswer::UidMismatch { .. }
                        if !truth.pods.contains_key(&pod.uid) =>
                    {
                        self.disproved.insert(pod.uid.clone());
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn wrote(&mut self, version: &str, cordoned: bool) {
        let version = version.parse().unwrap_or(0);
        if self.cordoned.is_none_or(|(known, _)| version >= known) {
            self.cordoned = Some((version, cordoned));
        }
    }

    fn observe_list(&mut self, pods: &[Pod], mark: u64, truth: &Cluster) {
        let listed: BTreeSet<&Uid> = pods.iter().map(|pod| &pod.id.uid).collect();
        let missing = self.there.keys().filter(|uid| {
            let older = self.told_at.get(*uid).is_none_or(|reported| *reported <= mark);
            older && !listed.contains(uid) && !truth.pods.contains_key(*uid)
        });
        let missing: Vec<Uid> = missing.cloned().collect();
        for uid in missing {
            self.disprove(&uid);
        }
        for pod in pods {
            self.observe_pod(pod);
        }
    }

    fn observe_pod(&mut self, pod: &Pod) {
        let uid = &pod.id.uid;
        // Of a pod whose UID an answer has disproved, the drain still believes the watch until a list says the same.
        if self.disproved.contains(uid) && !self.there.contains_key(uid) {
            return;
        }
        let namesake = self.there.values().find(|other| {
            other.id.uid != *uid && other.id.name == pod.id.name && other.id.namespace == pod.id.namespace
        });
        // Of two pods with one name the younger one exists, whichever was reported last.
        if let Some(other) = namesake {
            let older = if other.created > pod.created {
                uid
            } else {
                &other.id.uid
            }
            .clone();
            self.disprove(&older);
            if older == *uid {
                return;
            }
        }
        if pod.deletion.is_some() {
            self.deleting.insert(uid.clone());
        }
        if pod.is_finished() {
            self.finished.insert(uid.clone());
        }
        self.heard += 1;
        self.told_at.insert(uid.clone(), self.heard);
        // A pod does not come back to life, and deletions are never reverted: such events are old.
        if !self.finished.contains(uid) || pod.is_finished() {
            let reported = self.there.get(uid).and_then(|known| known.deletion);
            let deletion = pod.deletion.or(reported);
            self.there.insert(
                uid.clone(),
                Pod {
                    deletion,
                    ..pod.clone()
                },
            );
        }
    }

    fn disprove(&mut self, uid: &Uid) {
        self.there.remove(uid);
        self.disproved.insert(uid.clone());
    }
}
