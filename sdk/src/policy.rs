//! The traits that a policy author implements.

use crate::{Call, Description, Draft, Drain, Finding, Node, Outcome, Phase, Problem};

/// What a policy is. Every policy implements it.
pub trait Policy {
    /// What the operator and the host must know before the policy is loaded. [`description!`](crate::description) fills in
    /// the crate's name and version.
    fn describe() -> Description;

    /// Everything that is wrong with the configuration. The host loads the policy only if the list is empty.
    fn check_config() -> Vec<Problem> {
        Vec::new()
    }
}

/// Which pods leave, and in which order.
///
/// A pure function: the host may run it again with the same input and expects the same plan. So its only clock is
/// [`Drain::now`], and calls of [`cluster`](crate::cluster), [`events`](crate::events) and [`http`](crate::http) fail.
pub trait Planner: Policy {
    /// Edits the plan of the previous policy; the first policy gets the plan of `kubectl drain`. An error refuses the whole
    /// drain before anything is changed, and is shown to people.
    fn plan(drain: &Drain, node: &Node, draft: &mut Draft<'_>) -> Result<(), String>;
}

/// What must happen around a drain.
///
/// A step never waits. It does what can be done now, and says when to call it again. Between steps only the bytes in
/// [`Pending::state`](crate::Pending) survive, so the driver may restart or replace the policy at any time. After a crash
/// the host may call the same step once more.
pub trait Hooks: Policy {
    /// The phases of a drain in which the host calls [`step`](Self::step).
    fn phases() -> Vec<Phase>;

    /// Takes one step.
    fn step(call: &Call) -> Outcome;
}

/// Checks what drains depend on: a token, a permission, the node's name in another system.
///
/// Optional. The driver runs the checks after it has loaded the policy; `scupper doctor` runs them on demand. People see
/// the findings; no drain is stopped.
///
/// ```
/// # use scupper_sdk::{*, http::{Request, Response}, testing::Host};
/// # struct Jobs;
/// # impl Policy for Jobs { fn describe() -> Description { description!("Jobs").wants(Grant::http("GET", "https://jobs.example.com/")) } }
/// impl Surroundings for Jobs {
///     fn check(_node: Option<&Node>) -> Vec<Finding> {
///         vec![match Request::get("https://jobs.example.com/ping").send() {
///             Ok(answer) if answer.status == 200 => Finding::ok("server", "reachable"),
///             Ok(answer) => Finding::error("server", format!("status {}", answer.status), "renew the token"),
///             Err(error) => Finding::error("server", error.to_string(), ""),
///         }]
///     }
/// }
/// scupper_sdk::export!(Jobs with surroundings);
///
/// let host = Host::new();
/// host.on_request(|_| Ok(Response::new(200, "pong")));
/// assert_eq!(host.check::<Jobs>(), [Finding::ok("server", "reachable")]);
/// ```
pub trait Surroundings: Policy {
    /// Checks, and changes nothing. One call, with the limits of a step. It may send requests, but not PUT, PATCH or DELETE;
    /// calls of [`cluster`](crate::cluster) and [`events`](crate::events) fail. Without a node, check only what concerns all
    /// nodes.
    fn check(node: Option<&Node>) -> Vec<Finding>;
}
