//! Decides by namespace how pods leave: at once, when they have ended, or after a time. These are the modes of NVSentinel's
//! node-drainer, with caps.

mod rules;

use scupper_sdk::{
    Call, Description, Draft, Drain, Grant, Hooks, Node, Outcome, Phase, Planner, Pod, Policy, Problem,
    Verdict, config, description, facts, hold,
};

use crate::rules::{Rule, rules};

/// How the names of waves that wait begin.
const WAVES: &str = "namespaces";

struct NamespaceModes;

scupper_sdk::export!(NamespaceModes with planner, hooks);

impl Policy for NamespaceModes {
    fn describe() -> Description {
        let description =
            description!("Evicts pods at once, when they have ended or after a time, by namespace")
                .config_schema(include_str!("../config.schema.json"));
        if rules().unwrap_or_default().iter().any(Rule::reads_labels) {
            description.wants(Grant::facts_of_namespaces())
        } else {
            description
        }
    }

    fn check_config() -> Vec<Problem> {
        config::check(&["rules", "system-namespaces"], rules())
    }
}

impl Planner for NamespaceModes {
    fn plan(drain: &Drain, _node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
        let rules = rules()?;
        let (mut held, mut awaited) = (Vec::new(), Vec::new());
        for pod in draft.running() {
            let Some(rule) = rule_of(&rules, pod)? else {
                continue;
            };
            let hold = rule.hold.map(|hold| hold.of_pod(pod, drain));
            if !draft.tighten(pod, rule.verdict, hold, rule.reason(pod, drain)) {
                continue;
            }
            held.extend(rule.hold.map(|hold| (pod, hold)));
            if rule.verdict == Verdict::AwaitCompletion {
                awaited.push(pod);
            }
        }
        draft.hold(WAVES, drain, held);
        // What waits without a limit must not delay what has one.
        draft.await_last(awaited);
        Ok(())
    }
}

impl Hooks for NamespaceModes {
    fn phases() -> Vec<Phase> {
        let waits = |rule: &Rule| rule.hold.is_some();
        if rules().unwrap_or_default().iter().any(waits) {
            vec![Phase::BeforeWave]
        } else {
            Vec::new()
        }
    }

    fn step(call: &Call) -> Outcome {
        hold::step(WAVES, call, |_| Some("still runs".to_owned()))
    }
}

/// The first rule that matches; `None`: no rule names the pod.
fn rule_of<'r>(rules: &'r [Rule], pod: &Pod) -> Result<Option<&'r Rule>, facts::Error> {
    for rule in rules {
        if rule.matches(pod)? {
            return Ok(Some(rule));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
