//! What a policy author implements.

use crate::{Call, Description, Draft, Drain, Node, Outcome, Phase, Problem};

/// Who a policy is. Every policy implements it.
pub trait Policy {
    /// What the host and its operator must know before they load it; [`description!`](crate::description) fills in
    /// the crate's name and version.
    fn describe() -> Description;

    /// Everything that is wrong with the configuration. The host asks when it loads the policy, and does not load
    /// it unless the answer is empty.
    fn check_config() -> Vec<Problem> {
        Vec::new()
    }
}

/// Which pods leave, and in which order.
///
/// A pure function: the host runs it again for the same input and expects the same plan. So there is no clock but
/// [`Drain::now`], and [`cluster`](crate::cluster) refuses every call.
pub trait Planner: Policy {
    /// Edits the plan of the policy before, or, for the first one, that of `kubectl drain`. An error refuses the
    /// whole drain before anything is changed; it is shown to people.
    fn plan(drain: &Drain, node: &Node, draft: &mut Draft<'_>) -> Result<(), String>;
}

/// What must happen around a drain.
///
/// A step never waits: it looks, does what can be done now, and says when to be called again. Nothing lives between
/// steps but the bytes it hands to [`Pending::state`](crate::Pending), so a restart or a new version of the policy
/// is no event. After a crash of the host the same step may be called once more.
pub trait Hooks: Policy {
    /// The moments at which the host is to call [`step`](Self::step).
    fn phases() -> Vec<Phase>;

    /// One step.
    fn step(call: &Call) -> Outcome;
}
