//! The host in memory, as a test uses it.

use std::{cell::RefCell, rc::Rc, time::Duration};

use super::{
    HookRun, Planned,
    state::{self, State},
};
use crate::{
    Call, Condition, Decision, Description, Finding, Hooks, Node, Outcome, Phase, Plan, Planner, Pod, Policy,
    Subject, Surroundings,
    draft::EXPLAINS,
    export::glue,
    http::{Error, Request, Response},
    log::Level,
    outcome::milliseconds,
};

/// The host's limit for the state of a hook.
const STATE_BYTES: usize = 1024;

/// A node, its pods, a configuration and a drain, for one test.
#[derive(Debug)]
pub struct Host(());

impl Host {
    /// A schedulable node without pods, a policy without configuration, and a drain named `maintenance` that began
    /// just now.
    #[expect(
        clippy::new_without_default,
        reason = "it resets the thread's state; a default should do nothing"
    )]
    pub fn new() -> Self {
        state::with(|state| *state = State::default());
        Self(())
    }

    /// Sets a key of the policy's configuration.
    pub fn config(&self, key: &str, value: &str) {
        state::with(|state| state.config.insert(key.to_owned(), value.to_owned()));
    }

    /// Sets the pods on the node.
    pub fn pods(&self, pods: impl IntoIterator<Item = Pod>) {
        // Building a pod reads the time from the state, so the pods are built before the state is borrowed.
        let pods = pods.into_iter().collect();
        state::with(|state| state.pods = pods);
    }

    /// Cordons the node; `own` says that the cordon is the driver's.
    pub fn cordon(&self, own: bool) {
        state::with(|state| {
            state.node.unschedulable = true;
            state.node.own_cordon = own;
        });
    }

    /// Uncordons the node.
    pub fn uncordon(&self) {
        state::with(|state| {
            state.node.unschedulable = false;
            state.node.own_cordon = false;
        });
    }

    /// Sets an annotation of the node.
    pub fn annotate_node(&self, key: &str, value: &str) {
        state::with(|state| state::set(&mut state.node.annotations, key, value));
    }

    /// Sets a condition of the node.
    pub fn node_condition(&self, condition: Condition) {
        state::with(|state| {
            state
                .node
                .conditions
                .retain(|other| other.type_ != condition.type_);
            state.node.conditions.push(condition);
        });
    }

    /// Begins another drain, with this name and another id.
    pub fn drain_named(&self, name: &str) {
        state::with(|state| {
            name.clone_into(&mut state.drain.name);
            state.drain.id = format!("uid-of-{name}");
            state.drain.found_drained = false;
            state.drain.held = false;
            state.hooks.clear();
        });
    }

    /// Begins the drain now.
    pub fn drain_began(&self) {
        state::with(|state| state.drain.started = state.drain.now);
    }

    /// Sets [`Drain::found_drained`](crate::Drain): an earlier drain has emptied the node, which stayed cordoned.
    pub fn found_drained(&self) {
        state::with(|state| state.drain.found_drained = true);
    }

    /// Sets [`Drain::held`](crate::Drain): the drain failed, and its cordon stays.
    pub fn held(&self) {
        state::with(|state| state.drain.held = true);
    }

    /// Declares that the machine is off, as `--node-is-off` does.
    pub fn machine_is_off(&self) {
        state::with(|state| state.machine_is_off = true);
    }

    /// Moves the node into the cluster with this UID of the namespace `kube-system`.
    pub fn cluster_uid(&self, uid: &str) {
        state::with(|state| uid.clone_into(&mut state.cluster_uid));
    }

    /// Sets the drain's deadline, relative to now.
    pub fn deadline_in(&self, remaining: Duration) {
        state::with(|state| {
            state.drain.deadline = Some(state.drain.now.saturating_add(milliseconds(remaining)));
        });
    }

    /// Sets a label of the node.
    pub fn label_node(&self, key: &str, value: &str) {
        state::with(|state| state::set(&mut state.node.labels, key, value));
    }

    /// Renames the node.
    pub fn node_named(&self, name: &str) {
        state::with(|state| name.clone_into(&mut state.node.name));
    }

    /// Advances the time.
    pub fn advance(&self, by: Duration) {
        state::with(|state| state.drain.now = state.drain.now.saturating_add(milliseconds(by)));
    }

    /// Makes every call to the API server fail with this message; `None` ends the outage.
    pub fn outage(&self, message: Option<&str>) {
        state::with(|state| state.outage = message.map(str::to_owned));
    }

    /// Makes every change of a pod (`namespace/name`) fail with this message, as an admission webhook does that denies it;
    /// `None` ends that.
    ///
    /// # Panics
    /// If `pod` is not `namespace/name`.
    pub fn deny_changes(&self, pod: &str, message: Option<&str>) {
        let uid = super::pod(pod).uid;
        state::with(|state| match message {
            Some(message) => {
                state.denied.insert(uid, message.to_owned());
            }
            None => {
                state.denied.remove(&uid);
            }
        });
    }

    /// Answers requests. A request arrives as the policy built it, with names instead of secrets, and only if the policy
    /// wants the grants that it needs.
    ///
    /// ```
    /// # use scupper_sdk::{*, http::{Request, Response}, testing::Host};
    /// # struct Jobs;
    /// # impl Policy for Jobs { fn describe() -> Description { description!("Jobs").wants(Grant::http("GET", "https://jobs.example.com/")) } }
    /// # impl Hooks for Jobs {
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
    /// assert_eq!(host.step::<Jobs>(Phase::BeforeDrain, Subject::Node), Outcome::Done);
    /// ```
    pub fn on_request(&self, answer: impl FnMut(&Request) -> Result<Response, Error> + 'static) {
        state::with(|state| state.server = Some(Rc::new(RefCell::new(answer))));
    }

    /// Runs the planner, with a draft that evicts every pod except mirror pods and those of DaemonSets.
    ///
    /// # Panics
    /// If the plan is invalid.
    pub fn plan<P: Planner>(&self) -> Result<Planned, String> {
        self.plan_after::<P>(&self.draft())
    }

    /// Runs the planner, with the draft of a previous policy. A plan for which a fact could not be read is an error, as
    /// the host makes it again.
    ///
    /// # Panics
    /// If the plan is invalid.
    pub fn plan_after<P: Planner>(&self, draft: &Planned) -> Result<Planned, String> {
        let Description { name, wants, .. } = <P as Policy>::describe();
        let (drain, node, pods) = state::with(|state| {
            (state.grants, state.wants, state.unread, state.hook) = (None, wants, None, None);
            (state.drain.clone(), state.node.clone(), state.pods.clone())
        });
        let plan = glue::make_plan::<P>(&drain, &node, &pods, draft.plan().clone());
        if let Some(why) = state::with(|state| state.unread.take()) {
            return Err(format!("a fact that it asked for could not be read: {why}"));
        }
        let mut plan = plan?;
        sign(&mut plan, draft.plan(), &name);
        let planned = Planned::new(plan, pods);
        planned.assert_valid();
        state::with(|state| state.plan = Some(planned.plan().clone()));
        Ok(planned)
    }

    /// The first draft, before any policy.
    pub fn draft(&self) -> Planned {
        let pods = state::with(|state| state.pods.clone());
        let plan = state::draft(&pods);
        Planned::new(plan, pods)
    }

    /// Calls a hook until it is done or has failed for good, but at most `max_steps` times. Between two steps it advances
    /// the time as the step asks for.
    ///
    /// # Panics
    /// As [`step`](Self::step).
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

    /// The call of a hook's next step, for which the plan is the last one that the test has made, or else the first draft. It
    /// takes the state that the previous step saved out of the host.
    pub fn call(&self, phase: Phase, subject: Subject) -> Call {
        state::with(|state| {
            let at = state
                .hooks
                .iter()
                .position(|(p, s, _)| *p == phase && *s == subject);
            let saved = at.map(|at| state.hooks.swap_remove(at).2);
            state.hook = Some((phase, subject.clone()));
            Call {
                phase,
                subject,
                drain: state.drain.clone(),
                node: state.node.clone(),
                pods: state.pods.clone(),
                state: saved.unwrap_or_default(),
            }
        })
    }

    /// Takes one step of a hook, with the state that the hook's previous step saved, and with all grants that the policy
    /// wants.
    ///
    /// # Panics
    /// If the step returns more state than the host keeps, or if no host calls it so: `phases` does not name the phase, or
    /// the subject is that of another one.
    pub fn step<H: Hooks>(&self, phase: Phase, subject: Subject) -> Outcome {
        assert!(
            <H as Hooks>::phases().contains(&phase),
            "no host calls the hook {phase:?}: `phases` does not name it"
        );
        let fits = match (phase, &subject) {
            (Phase::BeforeWave, Subject::Wave(_)) | (Phase::BeforeEvict, Subject::Pod(_)) => true,
            (Phase::BeforeWave | Phase::BeforeEvict, _) => false,
            (_, subject) => matches!(subject, Subject::Node),
        };
        assert!(fits, "no host calls the hook {phase:?} for {subject:?}");
        // `describe` may read the configuration, so it runs before the state is borrowed.
        let wants = <H as Policy>::describe().wants;
        state::with(|state| {
            state.wants.clone_from(&wants);
            state.grants = Some(wants);
        });
        let call = self.call(phase, subject.clone());
        let outcome = glue::step::<H>(&call);
        let keeps = match &outcome {
            Outcome::Pending(pending) => Some(pending.state.clone()),
            // A retried step gets the same state again.
            Outcome::Failed(failure) if failure.retry_after.is_some() => Some(call.state),
            Outcome::Failed(_) | Outcome::Done => None,
        };
        if let Some(kept) = keeps {
            let bytes = kept.len();
            assert!(
                bytes <= STATE_BYTES,
                "the step returned {bytes} bytes of state, the host keeps {STATE_BYTES}"
            );
            state::with(|state| state.hooks.push((phase, subject, kept)));
        }
        outcome
    }

    /// Runs the policy's checks, with the node.
    pub fn check<P: Surroundings>(&self) -> Vec<Finding> {
        let node = state::with(|state| state.node.clone());
        Self::check_at::<P>(Some(&node))
    }

    /// Runs the policy's checks without a node.
    pub fn check_without_node<P: Surroundings>(&self) -> Vec<Finding> {
        Self::check_at::<P>(None)
    }

    fn check_at<P: Surroundings>(node: Option<&Node>) -> Vec<Finding> {
        let wants = <P as Policy>::describe().wants;
        state::with(|state| {
            state.wants.clone_from(&wants);
            state.grants = Some(wants);
            (state.checks, state.hook) = (true, None);
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

    /// The current time, which the policy sees as [`Drain::now`](crate::Drain).
    pub fn now(&self) -> crate::Timestamp {
        state::with(|state| state.drain.now)
    }

    /// The Events that the policy emitted so far, as lines like `Warning JobNotAwaited of node-1: job 42 still runs`.
    pub fn events(&self) -> Vec<String> {
        state::with(|state| state.events.clone())
    }

    /// The lines that the policy logged so far.
    pub fn log(&self) -> Vec<(Level, String)> {
        state::with(|state| state.log.clone())
    }
}

/// Signs what a policy decided in a draft, as the host does: an explanation decides nothing.
pub fn sign(plan: &mut Plan, draft: &Plan, policy: &str) {
    for decision in &mut plan.decisions {
        let is_same = |old: &Decision| {
            let why = decision.reason.strip_suffix(old.reason.as_str());
            old.pod == decision.pod
                && old.verdict == decision.verdict
                && why.is_some_and(|why| why.is_empty() || why.ends_with(EXPLAINS))
        };
        if !draft.decisions.iter().any(is_same) {
            policy.clone_into(&mut decision.policy);
        }
    }
}
