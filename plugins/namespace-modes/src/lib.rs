//! Decides by namespace how pods leave: at once, when they have ended, or after a time. These are the modes of NVSentinel's
//! node-drainer, with caps.

mod rules;

use scupper_sdk::{
    Call, Description, Draft, Drain, Grant, Hold, Hooks, Node, Outcome, Phase, Planner, Pod, Policy, Problem,
    config, description, facts, hold,
};

use crate::rules::{Mode, Rule, rules};

/// The last wave: pods that leave only when they have ended.
const COMPLETION: &str = "completion";

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
        // A finished pod has nothing to wait for, and the driver's own pod is the driver's matter.
        for pod in draft
            .leaving()
            .into_iter()
            .filter(|pod| !pod.is_finished() && !pod.driver)
        {
            let Some(mode) = mode_of(&rules, pod)? else {
                continue;
            };
            let reason = format!("namespace {}: {}", pod.namespace, mode.reason(drain));
            match mode {
                Mode::Immediate => draft.evict(pod, reason),
                Mode::Keep | Mode::System => draft.keep(pod, reason),
                Mode::AllowCompletion(None) => {
                    draft.await_completion(pod, reason);
                    awaited.push(pod);
                }
                Mode::AllowCompletion(Some(hold)) => {
                    draft.evict(pod, reason);
                    held.push((pod, hold));
                }
                Mode::DeleteAfterTimeout(hold) => {
                    draft.delete(pod, reason);
                    held.push((pod, hold));
                }
            }
        }
        // In this order: what waits without a limit must not delay what has one.
        draft.hold(drain, held);
        for pod in awaited {
            draft.move_to_wave(pod, COMPLETION);
        }
        Ok(())
    }
}

impl Hooks for NamespaceModes {
    fn phases() -> Vec<Phase> {
        let waits = |rule: &Rule| rule.mode.hold().is_some();
        if rules().unwrap_or_default().iter().any(waits) {
            vec![Phase::BeforeWave]
        } else {
            Vec::new()
        }
    }

    fn step(call: &Call) -> Outcome {
        let rules = match rules() {
            Ok(rules) => rules,
            Err(problem) => return problem.into(),
        };
        let hold_of = |pod: &Pod| -> Result<Option<Hold>, facts::Error> {
            Ok(mode_of(&rules, pod)?.and_then(Mode::hold))
        };
        hold::step(call, hold_of, |_| Some("still runs".to_owned()))
    }
}

/// The mode of the first rule that matches; `None`: no rule names the pod.
fn mode_of(rules: &[Rule], pod: &Pod) -> Result<Option<Mode>, facts::Error> {
    for rule in rules {
        if rule.matches(pod)? {
            return Ok(Some(rule.mode));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
