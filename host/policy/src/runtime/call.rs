//! What the driver asks a policy.

use scupper_engine::{HookStep, Node, Plan, Pod, Time, Uid};

/// The drain a policy is asked about.
#[derive(Clone, Copy, Debug)]
pub struct DrainInfo<'a> {
    /// Tells this drain from every other one.
    pub id: &'a str,
    /// What people call it.
    pub name: &'a str,
    /// Who asked for it.
    pub trigger: &'a str,
    /// When it began.
    pub started: Time,
    /// An earlier drain of ours had drained the node already.
    pub found_drained: bool,
    /// It ended without being done, and its cordon stays.
    pub held: bool,
    /// When it must have ended.
    pub deadline: Option<Time>,
    /// The moment of the call; a policy has no other clock.
    pub now: Time,
    /// The driver's own pod, when it runs in one on this node.
    pub own_pod: Option<&'a Uid>,
}

/// Asks a policy's planner.
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
    /// The plan of the policy before.
    pub draft: &'a Plan,
}

/// Takes one step of a hook.
#[derive(Clone, Copy, Debug)]
pub struct StepCall<'a> {
    /// The step, with the policy's name and the state it left behind.
    pub step: &'a HookStep,
    /// The drain.
    pub drain: DrainInfo<'a>,
    /// The node.
    pub node: &'a Node,
    /// All pods on the node.
    pub pods: &'a [&'a Pod],
}
