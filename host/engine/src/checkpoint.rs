//! What must survive the process: kept in one annotation of the node, so it stays small. Everything else is
//! recomputed from the API.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use crate::hook::is_of_host;
use crate::{HookPhase, Intent, Node, Outcome, Phase, Pod, Raised, Subject, Time, Totals, Uid};

/// Policies that must undo something at the next uncordon, each with the reason why it has not: in its own words where it
/// has given some; empty while nothing has been tried.
pub type ToUndo = BTreeMap<String, String>;

/// The saved state of a drain.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Checkpoint {
    /// The node it was written for: what it says of the cordon is not about another node of the same name.
    pub node: Uid,
    /// The request's id.
    pub id: String,
    /// The request's name.
    pub name: String,
    /// The request's trigger.
    pub trigger: String,
    /// Drain or uncordon.
    pub intent: Intent,
    /// Its phase.
    pub phase: Phase,
    /// When it began.
    pub started: Time,
    /// When it must have ended.
    pub deadline: Option<Time>,
    /// A digest of the pods that the request names; `None`: it means all of the node.
    pub only_pods: Option<u64>,
    /// The cordon on the node is ours.
    pub own_cordon: bool,
    /// It is ours from an earlier drain: giving this one up does not lift it.
    pub inherited: bool,
    /// A command cordoned the node ahead of its drain, which has not come to its own cordon: the next drain of the node
    /// makes this cordon its own, and lifts it if it ends before.
    pub ahead: bool,
    /// A drain of ours had drained the node already when this one found it, or, once this one is over, this one has. A
    /// request that names its pods never drains a node.
    pub drained: bool,
    /// While rolling back: why the request was withdrawn. `None`: it ended otherwise.
    pub cancelled: Option<String>,
    /// Once it has ended without being done: whether its cordon was to stay, and with it what policies changed. `None`: it
    /// has not, or it was cancelled.
    pub held: Option<bool>,
    /// What policies must undo at the next uncordon: what earlier drains have left and, once this one is over, this one.
    pub to_undo: ToUndo,
    /// Once it has ended and kept its cordon: those of them whose part an earlier drain has left. Giving this drain up undoes
    /// nothing of it.
    pub left_before: BTreeSet<String>,
    /// Hooks that have begun and not finished.
    pub hooks: Vec<SavedHook>,
    /// Hooks that have finished. Bounded by the pods of the node.
    pub done: Vec<(String, HookPhase, Subject)>,
    /// How often controllers have re-created evicted pods, by `namespace/name`. Bounded; the most frequent stay.
    pub returns: BTreeMap<String, u32>,
    /// Pods that came to the cordoned node and stay. Bounded.
    pub stays: BTreeSet<Uid>,
    /// This drain has ended well before: a process that resumes it never rolls it back.
    pub ended_well: bool,
    /// Deployments whose replicas are to be taken back.
    pub raised: Vec<Raised>,
    /// Since when the drain waits for the node's volumes.
    pub volumes_since: Option<Time>,
    /// What it had begun.
    pub begun: Box<Begun>,
    /// The counts when it was saved.
    pub counts: Counts,
}

/// What a drain had begun when it was saved. A process that resumes it begins nothing of this anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Begun {
    /// Since when the node has been cordoned.
    pub cordon: Option<Time>,
    /// Since when pods have been evicted.
    pub evictions: Option<Time>,
    /// The waves that have begun and still have pods, and until when each holds up the next one; `None`: until its pods are
    /// gone. Bounded by the pods of the node.
    pub waves: BTreeMap<String, Option<Time>>,
    /// Pods that came when their wave had begun, and for which its hooks have not finished.
    pub late: BTreeSet<Uid>,
    /// The policies that the agreed plan follows: a process without them would plan otherwise.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "BTreeSet::is_empty"))]
    pub planners: BTreeSet<String>,
}

/// What a drain had done when it was saved. A process that resumes it continues the count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Counts {
    /// When it was counted.
    pub at: Time,
    /// Pods that were to leave and were still there: those of them that are gone later have left meanwhile.
    pub leaving: u32,
    /// The creation of the newest pod that the plan named: younger ones have come since. By the API server's clock alone.
    pub newest: Time,
    /// What it had done; its waves are those that were over.
    pub totals: Totals,
}

/// A hook that is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SavedHook {
    /// Its policy.
    pub policy: String,
    /// Its phase.
    pub phase: HookPhase,
    /// The subject of the hook's call.
    pub subject: Subject,
    /// The state that its last step returned.
    pub state: Vec<u8>,
    /// Which version of the policy's state that is: another one may not be able to read it. `None`: there is no state.
    pub state_version: Option<u32>,
    /// When its first step was taken.
    pub started: Time,
}

impl Counts {
    /// The pod had been decided on when this was saved.
    pub fn knew(&self, pod: &Pod) -> bool {
        pod.created <= self.newest
    }
}

impl Checkpoint {
    /// Of a drain of this node that has done nothing and whose request says nothing.
    pub fn blank(node: Uid, started: Time) -> Self {
        Self {
            node,
            id: String::new(),
            name: String::new(),
            trigger: String::new(),
            intent: Intent::Drain,
            phase: Phase::Planning,
            started,
            deadline: None,
            only_pods: None,
            own_cordon: false,
            inherited: false,
            ahead: false,
            drained: false,
            cancelled: None,
            held: None,
            to_undo: ToUndo::new(),
            left_before: BTreeSet::new(),
            hooks: Vec::new(),
            done: Vec::new(),
            returns: BTreeMap::new(),
            stays: BTreeSet::new(),
            ended_well: false,
            raised: Vec::new(),
            volumes_since: None,
            begun: Box::default(),
            counts: Counts::default(),
        }
    }

    /// With what an earlier drain has left on the node: what policies must undo, and replicas that it could not take back.
    #[must_use]
    pub fn keeping(self, before: Option<&Self>) -> Self {
        let Some(before) = before else {
            return self;
        };
        Self {
            to_undo: before.left_to_undo(),
            raised: before.raised.clone(),
            ..self
        }
    }

    /// How it is to end, where that was known when it was saved.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        match (&self.phase, &self.cancelled) {
            (Phase::RollingBack, Some(reason)) => Some(Outcome::Cancelled {
                reason: reason.clone(),
            }),
            (Phase::RollingBack, None) => Some(Outcome::Lost {
                reason: String::from("the driver restarted while rolling back"),
            }),
            _ => None,
        }
    }

    /// Where a process resumes that has just gained the right to work on the node. `node` was read after that and is
    /// the only truth about this request; `None`: the node does not exist. `remembered` was read before, when another
    /// process may still have been working: it only counts if its node no longer exists, so that the request does not
    /// begin again on another node of the same name.
    pub fn to_go_on_from(request: &str, remembered: Option<Self>, node: Option<&Node>) -> Option<Self> {
        let of_request = |mark: &Self| mark.id == request;
        let remembered = remembered.filter(of_request);
        let written_for = remembered.as_ref().map(|mark| mark.node.clone());
        match node {
            Some(node) if written_for.is_none_or(|uid| uid == node.uid) => {
                node.checkpoint.clone().filter(of_request)
            }
            _ => remembered,
        }
    }

    /// This drain has ended, with its cordon if that is on the node, or a drain before it had drained the node: another
    /// drain that is given up leaves the cordon. One that was made ahead of a drain has no other owner than that drain.
    pub(crate) const fn leaves_its_cordon(&self) -> bool {
        !self.ahead && (self.drained || self.ended_well || !self.is_under_way())
    }

    /// What policies must undo if no process continues this drain: if it never ended, also those whose hooks have begun.
    pub fn left_to_undo(&self) -> ToUndo {
        let mut left = self.to_undo.clone();
        let hooks = self.hooks.iter().map(|hook| (&hook.policy, hook.phase));
        let begun = hooks.chain(self.done.iter().map(|(policy, phase, _)| (policy, *phase)));
        let acted = begun.filter(|(policy, phase)| !phase.undoes() && !is_of_host(policy));
        for (policy, _) in acted.filter(|_| self.is_under_way()) {
            left.entry(policy.clone()).or_default();
        }
        left
    }

    /// The drain has not ended.
    pub const fn is_under_way(&self) -> bool {
        !self.phase.is_last()
    }
}
