//! The stand-in as a test sees it.

use std::{cell::RefCell, rc::Rc, time::Duration};

use super::{
    HookRun, Planned,
    state::{self, State},
};
use crate::{
    Call, Condition, Decision, Finding, Hooks, Node, Outcome, Phase, Plan, Planner, Pod, Policy, Subject,
    Surroundings, Verdict, Wave,
    export::glue,
    http::{Error, Request, Response},
    log::Level,
    outcome::milliseconds,
};

/// How much state the host keeps for a hook.
const STATE_BYTES: usize = 1024;

/// A node, its pods, a configuration and a drain, for one test.
#[derive(Debug)]
pub struct Host(());

impl Host {
    /// A schedulable node without pods, a policy without configuration, and a drain named `maintenance` that began
    /// just now.
    #[expect(
        clippy::new_without_default,
        reason = "it resets the thread's stand-in; a default should do nothing"
    )]
    pub fn new() -> Self {
        state::with(|state| *state = State::default());
        Self(())
    }

    /// Configures the policy.
    pub fn config(&self, key: &str, value: &str) {
        state::with(|state| state.config.insert(key.to_owned(), value.to_owned()));
    }

    /// These are the pods on the node now.
    pub fn pods(&self, pods: impl IntoIterator<Item = Pod>) {
        // Making a pod asks the stand-in what time it is, so they are made first.
        let pods = pods.into_iter().collect();
        state::with(|state| state.pods = pods);
    }

    /// The node is cordoned, by the driver (`own`) or by somebody else.
    pub fn cordon(&self, own: bool) {
        state::with(|state| {
            state.node.unschedulable = true;
            state.node.own_cordon = own;
        });
    }

    /// The node takes pods again.
    pub fn uncordon(&self) {
        state::with(|state| {
            state.node.unschedulable = false;
            state.node.own_cordon = false;
        });
    }

    /// Somebody sets an annotation of the node.
    pub fn annotate_node(&self, key: &str, value: &str) {
        state::with(|state| state::set(&mut state.node.annotations, key, value));
    }

    /// Somebody gives the node a condition.
    pub fn node_condition(&self, condition: Condition) {
        state::with(|state| {
            state
                .node
                .conditions
                .retain(|other| other.type_ != condition.type_);
            state.node.conditions.push(condition);
        });
    }

    /// The drain has this name from now on, and another id: it is another drain.
    pub fn drain_named(&self, name: &str) {
        state::with(|state| {
            name.clone_into(&mut state.drain.name);
            state.drain.id = format!("uid-of-{name}");
            state.drain.found_drained = false;
            state.drain.held = false;
            state.hooks.clear();
        });
    }

    /// An earlier drain of the driver had drained the node, and it has been cordoned since.
    pub fn found_drained(&self) {
        state::with(|state| state.drain.found_drained = true);
    }

    /// The drain ended without being done and its cordon stays: what `on-cancel` hears from now on.
    pub fn held(&self) {
        state::with(|state| state.drain.held = true);
    }

    /// The drain must have ended so long from now.
    pub fn deadline_in(&self, left: Duration) {
        state::with(|state| {
            state.drain.deadline = Some(state.drain.now.saturating_add(milliseconds(left)));
        });
    }

    /// The node has this label.
    pub fn label_node(&self, key: &str, value: &str) {
        state::with(|state| state::set(&mut state.node.labels, key, value));
    }

    /// The node is called this.
    pub fn node_named(&self, name: &str) {
        state::with(|state| name.clone_into(&mut state.node.name));
    }

    /// Time passes.
    pub fn advance(&self, by: Duration) {
        state::with(|state| state.drain.now = state.drain.now.saturating_add(milliseconds(by)));
    }

    /// The API server answers nothing but this error; `None`: it works again.
    pub fn outage(&self, message: Option<&str>) {
        state::with(|state| state.outage = message.map(str::to_owned));
    }

    /// Requests are answered like this. They are shown with the names of secrets, as the policy made them; whether the
    /// policy wants what it asks for is checked before.
    ///
    /// ```
    /// # use scupper_sdk::{*, http::{Request, Response}, testing::Host};
    /// # struct Asks;
    /// # impl Policy for Asks { fn describe() -> Description { description!("Asks").wants(Grant::http("GET", "https://jobs.example.com/")) } }
    /// # impl Hooks for Asks {
    /// #     fn phases() -> Vec<Phase> { vec![Phase::BeforeDrain] }
    /// fn step(_call: &Call) -> Outcome {
    ///     match Request::get("https://jobs.example.com/running").send() {
    ///         Ok(response) if response.text() == "0" => Outcome::Done,
    ///         Ok(response) => Outcome::pending(format!("{} jobs run", response.text())).into(),
    ///         Err(error) => Outcome::failed(error.to_string()).into(),
    ///     }
    /// }
    /// # }
    /// let host = Host::new();
    /// host.on_request(|request| {
    ///     assert_eq!(request.url, "https://jobs.example.com/running");
    ///     Ok(Response::new(200, "0"))
    /// });
    /// assert_eq!(host.step::<Asks>(Phase::BeforeDrain, Subject::Node), Outcome::Done);
    /// ```
    pub fn on_request(&self, answer: impl FnMut(&Request) -> Result<Response, Error> + 'static) {
        state::with(|state| state.server = Some(Rc::new(RefCell::new(answer))));
    }

    /// Asks the planner, with a draft that evicts every pod but those of DaemonSets and mirror pods.
    ///
    /// # Panics
    /// When the plan is one that the host would not take.
    pub fn plan<P: Planner>(&self) -> Result<Planned, String> {
        self.plan_after::<P>(&self.draft())
    }

    /// Asks the planner, with the draft of a policy before it.
    ///
    /// # Panics
    /// When the plan is one that the host would not take.
    pub fn plan_after<P: Planner>(&self, draft: &Planned) -> Result<Planned, String> {
        let (drain, node, pods) = state::with(|state| {
            state.grants = None;
            (state.drain.clone(), state.node.clone(), state.pods.clone())
        });
        let plan = glue::make_plan::<P>(&drain, &node, &pods, draft.plan().clone())?;
        let planned = Planned::new(plan, pods);
        planned.assert_valid();
        Ok(planned)
    }

    /// The first draft, before any policy.
    pub fn draft(&self) -> Planned {
        let pods = state::with(|state| state.pods.clone());
        let decide = |pod: &Pod| {
            let (verdict, reason) = match pod {
                _ if pod.mirror => (Verdict::Keep, "mirror pod"),
                _ if pod.is_controlled_by("DaemonSet") => (Verdict::Keep, "managed by a DaemonSet"),
                _ => (Verdict::Evict, "evictable"),
            };
            Decision {
                pod: pod.uid.clone(),
                verdict,
                reason: reason.to_owned(),
                policy: "kubectl".to_owned(),
            }
        };
        let decisions: Vec<_> = pods.iter().map(decide).collect();
        let leaving = decisions.iter().filter(|decision| decision.verdict.leaves());
        let waves = vec![Wave::new(
            "all",
            leaving.map(|decision| decision.pod.clone()).collect(),
        )];
        let plan = crate::Draft::new(&pods, Plan { decisions, waves }).finish();
        Planned::new(plan, pods)
    }

    /// Takes steps of a hook until it is through or has failed for good, but not more than so many. Time passes between
    /// them as each step asks for.
    ///
    /// # Panics
    /// When a step leaves more state behind than the host keeps.
    pub fn run_hook<H: Hooks>(&self, phase: Phase, subject: Subject, max_steps: usize) -> HookRun {
        let began = self.now();
        let mut outcomes = Vec::new();
        while outcomes.len() < max_steps {
            let outcome = self.step::<H>(phase, subject.clone());
            let again = match &outcome {
                Outcome::Done => None,
                Outcome::Pending(pending) => Some(pending.again_after),
                Outcome::Failed(failure) => failure.retry_after,
            };
            outcomes.push(outcome);
            match again {
                Some(millis) => self.advance(Duration::from_millis(millis)),
                None => break,
            }
        }
        let took = Duration::from_millis(self.now().saturating_sub(began));
        HookRun { outcomes, took }
    }

    /// What the next step of a hook would be called with. What the step before left behind is taken out of the stand-in.
    pub fn call(&self, phase: Phase, subject: Subject) -> Call {
        state::with(|state| {
            let at = state
                .hooks
                .iter()
                .position(|(p, s, _)| *p == phase && *s == subject);
            let left_behind = at.map(|at| state.hooks.swap_remove(at).2);
            Call {
                phase,
                subject,
                drain: state.drain.clone(),
                node: state.node.clone(),
                pods: state.pods.clone(),
                state: left_behind.unwrap_or_default(),
            }
        })
    }

    /// Takes one step of a hook. As the host does, it gives back what the last step of the same hook left behind,
    /// and grants what the policy wants.
    ///
    /// # Panics
    /// When the step leaves more state behind than the host keeps.
    pub fn step<H: Hooks>(&self, phase: Phase, subject: Subject) -> Outcome {
        // A policy may want what its configuration says, and ask the stand-in for that.
        let wants = <H as Policy>::describe().wants;
        state::with(|state| state.grants = Some(wants));
        let call = self.call(phase, subject.clone());
        let outcome = glue::step::<H>(&call);
        let keeps = match &outcome {
            Outcome::Pending(pending) => Some(pending.state.clone()),
            // What is tried again goes on from where it was.
            Outcome::Failed(failure) if failure.retry_after.is_some() => Some(call.state),
            Outcome::Failed(_) | Outcome::Done => None,
        };
        if let Some(kept) = keeps {
            let bytes = kept.len();
            assert!(
                bytes <= STATE_BYTES,
                "the step leaves {bytes} bytes of state, the host keeps {STATE_BYTES}"
            );
            state::with(|state| state.hooks.push((phase, subject, kept)));
        }
        outcome
    }

    /// Asks what the policy finds in its surroundings, with the node.
    pub fn check<P: Surroundings>(&self) -> Vec<Finding> {
        let node = state::with(|state| state.node.clone());
        Self::check_at::<P>(Some(&node))
    }

    /// The same where no node is named.
    pub fn check_without_node<P: Surroundings>(&self) -> Vec<Finding> {
        Self::check_at::<P>(None)
    }

    fn check_at<P: Surroundings>(node: Option<&Node>) -> Vec<Finding> {
        let wants = <P as Policy>::describe().wants;
        state::with(|state| {
            state.grants = Some(wants);
            state.checks = true;
        });
        let findings = glue::check::<P>(node);
        state::with(|state| state.checks = false);
        findings
    }

    /// The value of an annotation of the node.
    pub fn node_annotation(&self, key: &str) -> Option<String> {
        state::with(|state| state.node.annotation(key).map(str::to_owned))
    }

    /// A pod of the node as it is now, by `namespace/name`.
    pub fn pod(&self, full_name: &str) -> Option<Pod> {
        state::with(|state| {
            state
                .pods
                .iter()
                .find(|pod| pod.full_name() == full_name)
                .cloned()
        })
    }

    /// The moment that the policy is told.
    pub fn now(&self) -> crate::Timestamp {
        state::with(|state| state.drain.now)
    }

    /// The Events that the policy emitted so far, as lines like `Warning NobodyHeld of node-1: it is empty`.
    pub fn events(&self) -> Vec<String> {
        state::with(|state| state.events.clone())
    }

    /// What the policy wrote so far.
    pub fn log(&self) -> Vec<(Level, String)> {
        state::with(|state| state.log.clone())
    }
}
