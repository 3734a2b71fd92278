//! Compares a drain with a scenario's expectations.

use std::collections::{BTreeMap, BTreeSet};

use scupper_engine::{HumanDuration, Outcome, Plan, StepOutcome, Verdict};

use super::form::{EndForm, ExpectForm, PlanForm, WaitingForm, WaveForm};
use super::runner::{HookAnswer, ScenarioRunner};
use super::values::{Text, matches};

/// A difference from an expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The line of the expectation.
    pub line: u64,
    /// The subject of the difference.
    pub what: String,
    /// The expected value.
    pub expected: String,
    /// The actual value.
    pub actual: String,
}

/// Collects the differences of one line.
pub(super) struct Assertions {
    line: u64,
    pub(super) found: Vec<Difference>,
}

impl Assertions {
    pub(super) const fn new(line: u64) -> Self {
        Self {
            line,
            found: Vec::new(),
        }
    }

    pub(super) fn differ(
        &mut self,
        what: impl Into<String>,
        expected: impl Into<String>,
        actual: impl Into<String>,
    ) {
        self.found.push(Difference {
            line: self.line,
            what: what.into(),
            expected: expected.into(),
            actual: actual.into(),
        });
    }

    fn same(&mut self, what: &str, expected: &str, actual: &str) {
        if expected != actual {
            self.differ(what, expected, actual);
        }
    }

    /// The plan, or why there is none.
    pub(super) fn plan(&mut self, form: &PlanForm, runner: &ScenarioRunner) {
        match (&runner.plan, &runner.outcome) {
            (Some(plan), _) => self.plan_itself(form, plan, runner),
            (None, Some(Outcome::Blocked { pods })) => {
                let refused: BTreeMap<String, String> = pods
                    .iter()
                    .map(|blocker| (blocker.pod.to_string(), blocker.reason.clone()))
                    .collect();
                if let Some(expected) = &form.refuse {
                    let actual = refused.keys().cloned().collect();
                    self.names("refuse", expected, &actual);
                } else {
                    self.differ("the plan", "one that holds", reported(&refused));
                }
                self.reasons(&form.reasons, &refused);
            }
            (None, outcome) => {
                // A planner that fails is retried, unless the operator's configuration says otherwise.
                let reported = || runner.story.last().map_or("none", |line| line.trim()).to_owned();
                let actual = outcome.as_ref().map_or_else(reported, ended);
                self.differ("the plan", "one that holds", actual);
            }
        }
    }

    fn plan_itself(&mut self, form: &PlanForm, plan: &Plan, runner: &ScenarioRunner) {
        let cluster = runner.cluster.lock();
        let name = |uid| cluster.model.name_of(uid);
        let of = |verdict: Verdict| -> BTreeSet<String> {
            let decisions = plan.decisions.iter();
            decisions
                .filter(|decision| decision.verdict == verdict)
                .map(|decision| name(&decision.pod))
                .collect()
        };
        for (what, expected, verdict) in [
            ("evict", &form.evict, Verdict::Evict),
            ("delete", &form.delete, Verdict::Delete),
            (
                "await-completion",
                &form.await_completion,
                Verdict::AwaitCompletion,
            ),
            ("keep", &form.keep, Verdict::Keep),
            ("refuse", &form.refuse, Verdict::Refuse),
        ] {
            if let Some(expected) = expected {
                self.names(what, expected, &of(verdict));
            }
        }
        if let Some(expected) = &form.waves {
            let actual: Vec<String> = plan
                .waves
                .iter()
                .map(|wave| wave_line(&wave.name, wave.pods.iter().map(name)))
                .collect();
            let names = |wave: &WaveForm| match &wave.pods {
                Some(pods) => wave_line(&wave.name, pods.iter().cloned()),
                None => wave_line(
                    &wave.name,
                    plan.waves
                        .iter()
                        .filter(|other| other.name == wave.name)
                        .flat_map(|other| other.pods.iter().map(name)),
                ),
            };
            let expected_lines: Vec<String> = expected.iter().map(names).collect();
            self.same("waves", &expected_lines.join("\n"), &actual.join("\n"));
            self.wave_limits(expected, plan);
        }
        let reasons = plan
            .decisions
            .iter()
            .map(|decision| (name(&decision.pod), decision.reason.clone()));
        self.reasons(&form.reasons, &reasons.collect());
    }

    fn wave_limits(&mut self, expected: &[WaveForm], plan: &Plan) {
        for form in expected {
            let Some(wave) = plan.waves.iter().find(|wave| wave.name == form.name) else {
                continue;
            };
            let what = |limit: &str| format!("wave {}: {limit}", form.name);
            if form.max_parallel.is_some() && form.max_parallel != wave.max_parallel {
                let text =
                    |limit: Option<u32>| limit.map_or_else(|| "all".to_owned(), |limit| limit.to_string());
                self.differ(
                    what("max-parallel"),
                    text(form.max_parallel),
                    text(wave.max_parallel),
                );
            }
            if let Some(timeout) = form.timeout {
                let actual = wave
                    .timeout
                    .map_or_else(|| "none".to_owned(), |span| HumanDuration(span).to_string());
                self.same(&what("timeout"), &HumanDuration(timeout.0).to_string(), &actual);
            }
            if let Some(grace) = form.max_grace_period {
                let actual = wave
                    .max_grace_seconds
                    .map_or_else(|| "none".to_owned(), |secs| format!("{secs}s"));
                self.same(
                    &what("max-grace-period"),
                    &format!("{}s", grace.0.as_secs()),
                    &actual,
                );
            }
        }
    }

    fn names(&mut self, what: &str, expected: &[String], actual: &BTreeSet<String>) {
        let expected: BTreeSet<String> = expected.iter().cloned().collect();
        if expected != *actual {
            self.differ(what, listed(&expected), listed(actual));
        }
    }

    fn reasons(&mut self, expected: &BTreeMap<String, String>, actual: &BTreeMap<String, String>) {
        for (pod, pattern) in expected {
            self.text(
                &format!("the reason of {pod}"),
                pattern,
                actual.get(pod).map(String::as_str),
            );
        }
    }

    fn text(&mut self, what: &str, pattern: &str, actual: Option<&str>) {
        if !actual.is_some_and(|actual| matches(pattern, actual)) {
            self.differ(what, pattern, actual.unwrap_or("nothing"));
        }
    }

    /// A hook's answer.
    pub(super) fn answer(&mut self, form: &ExpectForm, answer: &HookAnswer) {
        let hook = format!("{} of {}", answer.phase, answer.policy);
        let actual = describe(&answer.outcome);
        match &answer.outcome {
            outcome if is_another_kind(form, outcome) => self.differ(hook, expected_answer(form), actual),
            StepOutcome::Done => {}
            StepOutcome::Pending {
                again_after,
                progress,
                waiting_for,
                ..
            } => {
                if form.pending.as_ref().is_some_and(|text| !matches(text, progress)) {
                    self.differ(hook, expected_answer(form), actual);
                }
                if let Some(span) = form.again_after {
                    self.same(
                        "again-after",
                        &HumanDuration(span.0).to_string(),
                        &HumanDuration(*again_after).to_string(),
                    );
                }
                if let Some(expected) = &form.waiting_for {
                    let pairs = waiting_for
                        .iter()
                        .map(|item| (item.what.clone(), item.detail.clone()));
                    self.waiting(expected, &pairs.collect());
                }
            }
            StepOutcome::Failed { message, retry_after } => {
                if form.failed.as_ref().is_some_and(|text| !matches(text, message)) {
                    self.differ(hook, expected_answer(form), actual);
                }
                if let Some(span) = form.retry_after {
                    let actual = retry_after
                        .map_or_else(|| "never".to_owned(), |span| HumanDuration(span).to_string());
                    self.same("retry-after", &HumanDuration(span.0).to_string(), &actual);
                }
            }
        }
        self.texts("sends", form.sends.as_deref(), &answer.sent);
        self.texts("emits", form.emits.as_deref(), &answer.emitted);
    }

    fn texts(&mut self, what: &str, expected: Option<&[Text]>, actual: &[String]) {
        let Some(expected) = expected else { return };
        let mut pairs = expected.iter().zip(actual);
        if expected.len() != actual.len() || !pairs.all(|(one, other)| matches(&one.0, other)) {
            let expected: Vec<&str> = expected.iter().map(|text| text.0.as_str()).collect();
            self.differ(what, expected.join("\n"), actual.join("\n"));
        }
    }

    fn waiting(&mut self, expected: &WaitingForm, actual: &BTreeMap<String, String>) {
        match expected {
            WaitingForm::Names(names) => self.names("waiting-for", names, &actual.keys().cloned().collect()),
            WaitingForm::Details(details) => {
                let fits = details.len() == actual.len()
                    && details
                        .iter()
                        .all(|(what, detail)| actual.get(what).is_some_and(|actual| matches(detail, actual)));
                if !fits {
                    self.differ("waiting-for", reported(details), reported(actual));
                }
            }
        }
    }

    /// The current state of the cluster.
    pub(super) fn cluster(&mut self, form: &ExpectForm, runner: &ScenarioRunner) {
        let cluster = runner.cluster.lock();
        self.annotations("the node", &form.annotations, &cluster.model.node.annotations);
        if let Some(cordoned) = form.cordoned
            && cordoned != cluster.model.node.unschedulable
        {
            let text = |cordoned: bool| if cordoned { "cordoned" } else { "not cordoned" };
            self.differ("the node", text(cordoned), text(!cordoned));
        }
        for name in &form.here {
            if cluster.model.pod(name).is_none() {
                self.differ(name, "here", "gone");
            }
        }
        for name in &form.gone {
            let was_here = || cluster.model.gone().any(|gone| gone.to_string() == *name);
            if cluster.model.pod(name).is_some() {
                self.differ(name, "gone", "here");
            } else if !was_here() {
                self.differ(name, "gone", "it was never here");
            }
        }
        for (name, expected) in &form.pods {
            match cluster.model.pod(name) {
                Some(pod) => self.annotations(name, &expected.annotations, &pod.annotations),
                None => self.differ(name, "here", "gone"),
            }
        }
    }

    fn annotations(
        &mut self,
        of: &str,
        expected: &BTreeMap<String, Option<String>>,
        actual: &BTreeMap<String, String>,
    ) {
        for (key, expected) in expected {
            let what = format!("annotation {key} of {of}");
            let actual = actual.get(key).map(String::as_str);
            match expected {
                Some(pattern) => self.text(&what, pattern, actual),
                None => {
                    if let Some(actual) = actual {
                        self.differ(what, "none", actual);
                    }
                }
            }
        }
    }

    /// The end of the drain.
    pub(super) fn end(&mut self, EndForm(form): &EndForm, runner: &ScenarioRunner) {
        let actual = runner
            .outcome
            .as_ref()
            .map_or_else(|| "it goes on".to_owned(), ended);
        let (name, message) = match &runner.outcome {
            Some(outcome) => (outcome.name(), outcome.to_string()),
            None => ("", String::new()),
        };
        let named = form.outcome.is_empty() || form.outcome == name;
        let reported = form
            .message
            .as_ref()
            .is_none_or(|pattern| matches(pattern, &message));
        if !(named && reported) {
            let expected = match &form.message {
                Some(message) => format!("{}: {message}", form.outcome),
                None => form.outcome.clone(),
            };
            self.differ("the end", expected, actual);
        }
        if let Some(within) = form.within
            && runner.took() > within.0
        {
            self.differ(
                "the end",
                format!("within {}", HumanDuration(within.0)),
                format!("after {}", HumanDuration(runner.took())),
            );
        }
    }
}

fn wave_line(name: &str, pods: impl Iterator<Item = String>) -> String {
    pods.fold(format!("{name}:"), |line, pod| format!("{line} {pod}"))
}

fn listed(names: &BTreeSet<String>) -> String {
    if names.is_empty() {
        return "nothing".to_owned();
    }
    names.iter().cloned().collect::<Vec<_>>().join(", ")
}

fn reported(details: &BTreeMap<String, String>) -> String {
    let lines: Vec<String> = details
        .iter()
        .map(|(what, detail)| format!("{what}: {detail}"))
        .collect();
    if lines.is_empty() {
        "nothing".to_owned()
    } else {
        lines.join("\n")
    }
}

fn ended(outcome: &Outcome) -> String {
    format!("{}: {outcome}", outcome.name())
}

/// A hook's answer as text.
pub(super) fn describe(outcome: &StepOutcome) -> String {
    match outcome {
        StepOutcome::Done => "done".to_owned(),
        StepOutcome::Pending { progress, .. } => format!("pending: {progress}"),
        StepOutcome::Failed { message, .. } => format!("failed: {message}"),
    }
}

/// An answer of which something is expected that this kind has not.
const fn is_another_kind(form: &ExpectForm, outcome: &StepOutcome) -> bool {
    let pending = form.pending.is_some() || form.waiting_for.is_some() || form.again_after.is_some();
    let failed = form.failed.is_some() || form.retry_after.is_some();
    match outcome {
        StepOutcome::Done => pending || failed,
        StepOutcome::Pending { .. } => form.done || failed,
        StepOutcome::Failed { .. } => form.done || pending,
    }
}

fn expected_answer(form: &ExpectForm) -> String {
    match form {
        ExpectForm {
            pending: Some(text), ..
        } => format!("pending: {text}"),
        ExpectForm {
            failed: Some(text), ..
        } => format!("failed: {text}"),
        _ if form.waiting_for.is_some() || form.again_after.is_some() => "pending".to_owned(),
        _ if form.retry_after.is_some() => "failed".to_owned(),
        _ => "done".to_owned(),
    }
}
