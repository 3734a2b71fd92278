//! The commands of the engine. The driver answers each with one [`Answer`](crate::Answer) that has its id.

use alloc::string::String;

use crate::{Checkpoint, DeploymentRef, HookStep, Plan, PodRef, SurgeMethod, Uid};

/// Ties an answer to its command. Never used twice within a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CommandId(pub u64);

/// Something to do, and the number its answer must carry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Command {
    /// For the answer.
    pub id: CommandId,
    /// The task.
    pub task: Task,
}

/// What to do. Every write of the node is for the node with this UID and must fail when another one has its name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Task {
    /// Ask a policy's planner. Its pods are those of the draft's decisions.
    Plan {
        /// The policy.
        policy: String,
        /// The draft of the one before.
        draft: Plan,
    },
    /// Take one step of a hook.
    Step {
        /// The step.
        step: HookStep,
        /// The version of the policy's state in this step; `None`: there is no state.
        state_version: Option<u32>,
    },
    /// Cordon the node and save the checkpoint, in one write that fails when the node has changed since `version`.
    Cordon {
        /// The node's UID.
        node: Uid,
        /// Says that the cordon is ours.
        checkpoint: Checkpoint,
        /// The node's resource version that this was decided on.
        version: String,
    },
    /// Save the checkpoint.
    Save {
        /// The node's UID.
        node: Uid,
        /// What is saved.
        checkpoint: Checkpoint,
    },
    /// Lift the cordon, if the checkpoint on the node still says that it is ours, and remove or replace the
    /// checkpoint, in one write.
    Uncordon {
        /// The node's UID.
        node: Uid,
        /// What stays on the node; `None`: nothing.
        checkpoint: Option<Checkpoint>,
        /// The node's resource version that this was decided on.
        version: String,
    },
    /// Remove the checkpoint and leave the cordon as it is.
    Forget {
        /// The node's UID.
        node: Uid,
    },
    /// Evict one pod, by its UID.
    Evict {
        /// The pod.
        pod: PodRef,
        /// Overrides its own grace period.
        grace_seconds: Option<u64>,
    },
    /// Delete one pod, by its UID, past its budgets.
    Delete {
        /// The pod.
        pod: PodRef,
        /// Overrides its own grace period.
        grace_seconds: Option<u64>,
    },
    /// List the node's pods afresh, not from a cache.
    ListPods,
    /// List the volumes that are attached to the node afresh, not from a cache. Once an answer has shown some, changes
    /// are reported as [`Event::Volumes`](crate::Event::Volumes).
    ListVolumes,
    /// Choose the Deployments to surge among those whose pods a budget holds just now, as before the drain.
    ChooseSurges {
        /// The agreed plan, with the pods that came later.
        plan: Plan,
    },
    /// Restart a Deployment by a rollout, or raise its replicas by one, unless this drain has done so before. Answered as
    /// writes of the node are; while another drain or a rollout has the Deployment, with
    /// [`Answer::Busy`](crate::Answer::Busy).
    Surge {
        /// The Deployment.
        deployment: DeploymentRef,
        /// This drain, by its [`surge_mark`](crate::surge_mark), by which a second surge is avoided.
        drain: String,
        /// How.
        method: SurgeMethod,
    },
    /// Take back the replica by which this drain has raised a Deployment, if the replicas are as the drain left them; a
    /// raise that arrives later must fail. Answered as writes of the node are.
    TakeBack {
        /// The Deployment.
        deployment: DeploymentRef,
        /// The drain that raised it, by its [`surge_mark`](crate::surge_mark).
        drain: String,
    },
}

/// How a pod is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// Through the Eviction API.
    Evict,
    /// By a deletion, past its budgets.
    Delete,
}

impl Removal {
    /// In one word, for people and programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Evict => "evict",
            Self::Delete => "delete",
        }
    }
}

impl Task {
    /// The pod this evicts or deletes.
    pub fn removes(&self) -> Option<&PodRef> {
        match self {
            Self::Evict { pod, .. } | Self::Delete { pod, .. } => Some(pod),
            _ => None,
        }
    }

    /// The node this writes.
    pub fn written_node(&self) -> Option<&Uid> {
        match self {
            Self::Cordon { node, .. }
            | Self::Save { node, .. }
            | Self::Uncordon { node, .. }
            | Self::Forget { node } => Some(node),
            _ => None,
        }
    }

    /// All names of tasks, for reports.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Plan { .. } => "plan",
            Self::Step { .. } => "step",
            Self::Cordon { .. } => "cordon",
            Self::Save { .. } => "save",
            Self::Uncordon { .. } => "uncordon",
            Self::Forget { .. } => "forget",
            Self::Evict { .. } => "evict",
            Self::Delete { .. } => "delete",
            Self::ListPods => "list-pods",
            Self::ListVolumes => "list-volumes",
            Self::ChooseSurges { .. } => "choose-surges",
            Self::Surge { .. } => "surge",
            Self::TakeBack { .. } => "take-back",
        }
    }
}
