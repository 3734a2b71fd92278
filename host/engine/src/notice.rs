//! What the engine reports: one closed stream for the terminal, the log, conditions, Events and metrics.

use alloc::string::String;
use alloc::vec::Vec;

use crate::{
    DeploymentRef, HookPhase, Outcome, Phase, Plan, PodRef, Reason, Removal, Subject, Summary, SurgeStep,
    Time, VolumesLeft, WaitingOn,
};

/// Something worth reporting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The drain has entered a phase.
    Phase(Phase),
    /// The plan that will be carried out.
    Planned(Plan),
    /// The node is cordoned, by us or by others before us.
    Cordoned {
        /// The cordon is ours.
        ours: bool,
    },
    /// A planner has failed and will be asked again. Until it answers there is no plan for the pods that wait for it.
    PlannerWaiting {
        /// Its policy.
        policy: String,
        /// Why it failed.
        message: String,
        /// When it is asked again.
        again: Time,
    },
    /// A hook has answered that it has not finished, or that it failed and will be tried again.
    HookWaiting {
        /// Its policy.
        policy: String,
        /// Its phase.
        phase: HookPhase,
        /// What it was called for.
        subject: Subject,
        /// When its first step was taken, which may have been in an earlier process.
        since: Time,
        /// Where it stands, or why it failed.
        progress: String,
        /// What it waits for.
        waiting_for: Vec<WaitingOn>,
    },
    /// A hook has finished.
    HookDone {
        /// Its policy.
        policy: String,
        /// Its phase.
        phase: HookPhase,
        /// What it was called for.
        subject: Subject,
    },
    /// A wave has begun.
    WaveStarted {
        /// Its name.
        name: String,
        /// Its place among the waves, from 1.
        number: u32,
        /// How many waves there are.
        of: u32,
        /// How many of its pods are still to leave.
        pods: u32,
    },
    /// A wave's time is over; the next one begins although pods of it are still there.
    WaveOverdue {
        /// Its name.
        name: String,
    },
    /// Why a pod is still there has changed.
    PodWaits {
        /// The pod.
        pod: PodRef,
        /// Why it is still there.
        reason: Reason,
    },
    /// The API server has accepted a pod's eviction or deletion.
    PodLeaving {
        /// The pod.
        pod: PodRef,
        /// What the API server has accepted.
        by: Removal,
    },
    /// A pod still stood shortly before the deadline, and was deleted past its wave and its disruption budget; or its
    /// grace period was shortened.
    Forced {
        /// The pod.
        pod: PodRef,
        /// The grace period that it gets.
        grace_seconds: u64,
        /// Why it still stood.
        reason: Reason,
    },
    /// A pod that was to leave is gone.
    PodGone {
        /// The pod.
        pod: PodRef,
        /// Pods that are still to leave.
        remaining: u32,
    },
    /// The pods are gone, and the drain waits for the node's volumes; again when what it waits for changes.
    AwaitsVolumes {
        /// What it waits for.
        left: VolumesLeft,
        /// When it began, which may have been in an earlier process.
        since: Time,
        /// When the wait ends at the latest.
        until: Time,
    },
    /// The wait for the node's volumes is over.
    VolumesSettled {
        /// What was still attached; `None`: all are detached.
        left: Option<VolumesLeft>,
    },
    /// A Deployment is surged so that its pods can leave the node.
    Surge {
        /// The Deployment.
        deployment: DeploymentRef,
        /// How far it has come.
        step: SurgeStep,
    },
    /// A pod came after the plan was made. The planners decide on it now.
    Newcomer {
        /// The pod.
        pod: PodRef,
    },
    /// Another client lifted the cordon: our mark is void.
    UncordonedByOthers,
    /// Our cordon is lifted.
    Uncordoned,
    /// A task failed and will be tried again.
    Retrying {
        /// What was tried: a task's name.
        task: String,
        /// Why it did not work.
        message: String,
    },
    /// It is over. Nothing comes after this.
    Finished {
        /// How it ended.
        outcome: Outcome,
        /// What it did and cost.
        summary: Summary,
    },
}
