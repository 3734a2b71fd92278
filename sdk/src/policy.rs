//! What a policy author implements.

use crate::{Call, Description, Draft, Drain, Finding, Node, Outcome, Phase, Problem};

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

/// Whether a drain could succeed: looks at what the policy depends on (a token, a right, the node's name elsewhere).
///
/// Optional. The driver asks when it has loaded the policy, `scupper doctor` when a person does. It is shown to people and
/// stops no drain.
///
/// ```
/// # use scupper_sdk::{*, http::{Request, Response}, testing::Host};
/// # struct Asks;
/// # impl Policy for Asks { fn describe() -> Description { description!("Asks").wants(Grant::http("GET", "https://jobs.example.com/")) } }
/// impl Surroundings for Asks {
///     fn check(_node: Option<&Node>) -> Vec<Finding> {
///         vec![match Request::get("https://jobs.example.com/ping").send() {
///             Ok(answer) if answer.status == 200 => Finding::ok("server", "it answers"),
///             Ok(answer) => Finding::error("server", format!("status {}", answer.status), "renew the token"),
///             Err(error) => Finding::error("server", error.to_string(), ""),
///         }]
///     }
/// }
/// scupper_sdk::export!(Asks with surroundings);
///
/// let host = Host::new();
/// host.on_request(|_| Ok(Response::new(200, "pong")));
/// assert_eq!(host.check::<Asks>(), [Finding::ok("server", "it answers")]);
/// ```
pub trait Surroundings: Policy {
    /// Looks and changes nothing. One call, with the limits of a step; [`http`](crate::http) is open to it, but not with
    /// PUT, PATCH or DELETE, and [`cluster`](crate::cluster) and [`events`](crate::events) are closed. Without a node only
    /// what concerns all nodes is looked at.
    fn check(node: Option<&Node>) -> Vec<Finding>;
}
