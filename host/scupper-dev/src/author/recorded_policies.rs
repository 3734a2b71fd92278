//! Policies of a recorded drain without their components: they answer as they did then, and say what they were never asked.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use scupper_engine::{HookPhase, HookStep, HumanDuration, Plan, PlanAnswer, StepOutcome, Subject, Time};
use scupper_recording::PolicyAnswers;

use super::comparison::Unknown;

/// A hook that took less did not wait for anything: so long its calls took, which take no time where it is loaded.
const CALLS: Duration = Duration::from_secs(1);

/// Policies that are not loaded.
#[derive(Debug, Default)]
pub(super) struct RecordedPolicies {
    names: BTreeSet<String>,
    answers: PolicyAnswers,
    /// When each hook had its first step.
    begun: BTreeMap<(String, HookPhase, Subject), Time>,
    /// What they were asked and no recording has.
    pub(super) unknown: BTreeSet<Unknown>,
}

impl RecordedPolicies {
    pub(super) fn new(names: BTreeSet<String>, answers: PolicyAnswers) -> Self {
        Self {
            names,
            answers,
            ..Self::default()
        }
    }

    /// What the planner made of this draft; `None`: it is none of these policies.
    pub(super) fn plan(&mut self, policy: &str, draft: &Plan) -> Option<PlanAnswer> {
        if !self.names.contains(policy) {
            return None;
        }
        let answer = self.answers.plan(policy, draft).cloned();
        Some(answer.unwrap_or_else(|| {
            self.unknown.insert(Unknown::Plan(policy.to_owned()));
            PlanAnswer::Plan(draft.clone())
        }))
    }

    /// How the hook went on at this time; `None`: it is none of these policies.
    pub(super) fn step(&mut self, step: &HookStep, subject: &str, now: Time) -> Option<StepOutcome> {
        if !self.names.contains(&step.policy) {
            return None;
        }
        let of = if subject.is_empty() { "" } else { " of " };
        let hook = format!("the {} hook of policy {}{of}{subject}", step.phase, step.policy);
        let Some(answer) = self.answers.hook(step) else {
            self.unknown
                .insert(Unknown::Time(format!("how long {hook} takes")));
            return Some(StepOutcome::Done);
        };
        let name = (step.policy.clone(), step.phase, step.subject.clone());
        let took = Some(answer.took).filter(|took| *took >= CALLS);
        let left = took
            .unwrap_or_default()
            .saturating_sub(now.since(*self.begun.entry(name).or_insert(now)));
        if left > Duration::ZERO {
            return Some(StepOutcome::Pending {
                state: Vec::new(),
                again_after: left,
                progress: String::new(),
                waiting_for: Vec::new(),
            });
        }
        Some(answer.end.clone().unwrap_or_else(|| {
            let took = HumanDuration(answer.took);
            let unknown = format!("how long {hook} takes (more than {took})");
            self.unknown.insert(Unknown::Time(unknown));
            StepOutcome::Done
        }))
    }
}
