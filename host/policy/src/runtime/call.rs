//! The driver's calls to a policy.

use std::sync::Arc;

use scupper_engine::{HookStep, Node, Plan, Pod, Time, Uid};

use crate::Facts;

/// The drain that a policy is called for.
#[derive(Clone, Copy, Debug)]
pub struct DrainInfo<'a> {
    /// Unique for each drain.
    pub id: &'a str,
    /// Its name for users.
    pub name: &'a str,
    /// Its trigger.
    pub trigger: &'a str,
    /// When it began.
    pub started: Time,
    /// An earlier drain by Scupper had already emptied the node.
    pub found_drained: bool,
    /// The drain ended without completing, and its cordon stays.
    pub held: bool,
    /// The operator has declared that the machine is off (`--node-is-off`).
    pub machine_is_off: bool,
    /// Its deadline.
    pub deadline: Option<Time>,
    /// The time of the call; a policy has no other clock.
    pub now: Time,
    /// The driver's own pod, if it runs in one on this node.
    pub own_pod: Option<&'a Uid>,
    /// The facts of its current plan; `None`: the call has facts of its own.
    pub facts: Option<&'a Arc<Facts>>,
}

/// A call of a policy's planner.
#[derive(Clone, Copy, Debug)]
pub struct PlanCall<'a> {
    /// The policy's name.
    pub policy: &'a str,
    /// The drain.
    pub drain: DrainInfo<'a>,
    /// The node.
    pub node: &'a Node,
    /// The pods to decide on: those of the draft's decisions.
    pub pods: &'a [&'a Pod],
    /// The plan of the previous policy in the chain.
    pub draft: &'a Plan,
}

/// One step of a hook.
#[derive(Clone, Copy, Debug)]
pub struct StepCall<'a> {
    /// The step, with the policy's name and the state of its previous step.
    pub step: &'a HookStep,
    /// The drain.
    pub drain: DrainInfo<'a>,
    /// The node.
    pub node: &'a Node,
    /// All pods on the node.
    pub pods: &'a [&'a Pod],
}
