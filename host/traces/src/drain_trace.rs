//! Traces one drain: the drain itself, its phases, waves and hooks, each pod from its first eviction attempt until it
//! is gone, its waiting times, and every command on the way.
//!
//! A drain can outlive its process. Spans that a restart may cut in two (the drain, a hook, a pod) have an id that the
//! next process derives again; the process that sees the end exports them. Earlier child spans keep the right parent.

use std::collections::BTreeMap;
use std::time::Duration;

use scupper_engine::{
    Answer, Checkpoint, Command, CommandId, Event, Notice, Outcome, Phase, PodRef, Reason, Request, Summary,
    Task, Time, Uid,
};

use super::command_span;
use super::exporter::Traces;
use super::pod_span::{HookKey, WorkSpan};
use super::span::{OpenSpan, SpanId, SpanResult};
use scupper_common::clock::Clock;

/// Shorter waits are not traced: reasons that last only a moment interest no reader.
const SHORTEST_WAIT: Duration = Duration::from_millis(10);

/// Exports one drain as a trace. If it is dropped before the drain has ended, the process that continues the drain
/// exports the rest.
pub struct DrainTrace {
    traces: Traces,
    trace: u128,
    clock: Clock,
    /// `None`: the drain has ended.
    drain: Option<OpenSpan>,
    phase: Option<OpenSpan>,
    wave: Option<OpenSpan>,
    hooks: BTreeMap<HookKey, WorkSpan>,
    pods: BTreeMap<Uid, WorkSpan>,
    questions: BTreeMap<CommandId, OpenSpan>,
    /// The start times of hooks that an earlier process began.
    hook_starts: BTreeMap<HookKey, Time>,
}

impl DrainTrace {
    /// Starts the trace of a drain that began at this time, possibly in another process, which wrote the checkpoint
    /// `left`.
    pub fn begin(
        traces: &Traces,
        trace: u128,
        request: &Request,
        (clock, started): (Clock, Time),
        left: Option<&Checkpoint>,
    ) -> Self {
        let name = request.intent.name();
        let mut drain = OpenSpan::begin(SpanId::of(trace, &[name]), None, name, started)
            .with("k8s.node.name", &request.node)
            .with("scupper.drain.name", &request.name)
            .with("scupper.drain.id", &request.id)
            .with("scupper.drain.trigger", &request.trigger);
        if let Some(left) = left {
            let phase = left.phase.name().into();
            drain.add_event(clock.now(), "taken up again", vec![("scupper.phase", phase)]);
        }
        let hooks = left.into_iter().flat_map(|left| &left.hooks);
        let hook_starts = hooks.map(|hook| {
            let of = (hook.policy.clone(), hook.phase, hook.subject.clone());
            (of, hook.started)
        });
        Self {
            traces: traces.clone(),
            trace,
            clock,
            drain: Some(drain),
            phase: None,
            wave: None,
            hooks: BTreeMap::new(),
            pods: BTreeMap::new(),
            questions: BTreeMap::new(),
            hook_starts: hook_starts.collect(),
        }
    }

    /// Records a command.
    pub fn asked(&mut self, now: Time, command: &Command) {
        let Some(root) = self.id() else {
            return;
        };
        let stay = match &command.task {
            Task::Step { step, .. } => {
                Some(self.hook(now, (step.policy.clone(), step.phase, step.subject.clone())))
            }
            task => task.removes().map(|pod| self.pod(now, pod)),
        };
        let parent = match stay {
            Some(stay) => stay.ask(),
            None => Some(root),
        };
        let question = parent.and_then(|parent| command_span::asked(&command.task, parent, now));
        if let Some(question) = question {
            self.questions.insert(command.id, question);
        }
    }

    /// Records an event of the engine.
    pub fn observe(&mut self, now: Time, event: &Event) {
        if let Event::Answer(id, answer) = event {
            self.answered(now, *id, answer);
        }
    }

    fn answered(&mut self, now: Time, id: CommandId, answer: &Answer) {
        if let Some(mut question) = self.questions.remove(&id) {
            let went = command_span::answered(&mut question, answer);
            self.end(question, now, went);
        }
    }

    /// Records a notice.
    pub fn notice(&mut self, now: Time, notice: &Notice) {
        match notice {
            // The outcome comes with the notice about the end.
            Notice::Phase(Phase::Finished) => self.end_phase(now),
            Notice::Phase(phase) => {
                self.end_phase(now);
                self.phase = self.child(phase.to_string(), now);
            }
            Notice::WaveStarted {
                name, number, pods, ..
            } => {
                self.end_wave(now);
                let wave = self.child("wave", now);
                let wave = wave.map(|it| it.with("scupper.wave.name", name));
                let wave = wave.map(|it| it.with("scupper.wave.number", *number));
                self.wave = wave.map(|it| it.with("scupper.wave.pods", *pods));
            }
            Notice::HookWaiting {
                policy,
                phase,
                subject,
                progress,
                ..
            } => {
                let stay = self.hook(now, (policy.clone(), *phase, subject.clone()));
                stay.span
                    .add_event(now, "waiting", vec![("scupper.progress", progress.into())]);
            }
            Notice::HookDone {
                policy,
                phase,
                subject,
            } => {
                let hook = (policy.clone(), *phase, subject.clone());
                let ended = self.hooks.remove(&hook);
                self.leave(ended, now, SpanResult::Ok, "scupper.hook.steps");
            }
            // The plan may keep this pod, and then no further notice mentions it.
            Notice::PodWaits {
                pod,
                reason: Reason::NotPlanned | Reason::PlannerFailed { .. },
            } if !self.pods.contains_key(&pod.uid) => {}
            // The pod is not part of the drain.
            Notice::PodWaits { pod, reason } if reason.stays() && !self.pods.contains_key(&pod.uid) => {}
            Notice::PodWaits { pod, reason } => {
                let before = self.pod(now, pod).waits(now, reason);
                self.end_wait(before, now);
            }
            Notice::PodGone { pod, .. } => {
                let ended = self.pods.remove(&pod.uid);
                self.leave(ended, now, SpanResult::Ok, "scupper.pod.requests");
            }
            Notice::Finished { outcome, summary } => self.finished(now, outcome, summary),
            notice => self.add_notice(now, notice),
        }
    }

    /// Adds a notice about the drain itself to its span.
    fn add_notice(&mut self, now: Time, notice: &Notice) {
        let Some(drain) = &mut self.drain else {
            return;
        };
        let (name, attributes) = match notice {
            Notice::Cordoned { ours } => ("cordoned", vec![("scupper.cordon.ours", (*ours).into())]),
            Notice::Uncordoned => ("uncordoned", Vec::new()),
            Notice::UncordonedByOthers => ("uncordoned by others", Vec::new()),
            Notice::WaveOverdue { name } => ("wave overdue", vec![("scupper.wave.name", name.into())]),
            Notice::AwaitsVolumes { left, .. } => {
                let attached = u32::try_from(left.attached().len()).unwrap_or(u32::MAX);
                (
                    "awaits volumes",
                    vec![("scupper.volumes.attached", attached.into())],
                )
            }
            Notice::VolumesSettled { left } => (
                "volumes settled",
                vec![("scupper.volumes.detached", left.is_none().into())],
            ),
            Notice::Forced {
                pod, grace_seconds, ..
            } => (
                "forced",
                vec![
                    ("k8s.namespace.name", (&pod.namespace).into()),
                    ("k8s.pod.name", (&pod.name).into()),
                    (
                        "scupper.grace_seconds",
                        u32::try_from(*grace_seconds).unwrap_or(u32::MAX).into(),
                    ),
                ],
            ),
            Notice::Surge { deployment, step } => {
                let of = vec![
                    ("k8s.namespace.name", (&deployment.namespace).into()),
                    ("k8s.deployment.name", (&deployment.name).into()),
                    ("scupper.surge.step", step.name().into()),
                ];
                ("surge", of)
            }
            Notice::Newcomer { pod } => {
                let pod = vec![
                    ("k8s.namespace.name", (&pod.namespace).into()),
                    ("k8s.pod.name", (&pod.name).into()),
                ];
                ("newcomer", pod)
            }
            _ => return,
        };
        drain.add_event(now, name, attributes);
    }

    fn finished(&mut self, now: Time, outcome: &Outcome, summary: &Summary) {
        self.end_phase(now);
        let went = || match outcome.is_success() {
            true => SpanResult::Ok,
            false => SpanResult::Error(outcome.to_string()),
        };
        for (_, hook) in std::mem::take(&mut self.hooks) {
            self.leave(Some(hook), now, SpanResult::Unset, "scupper.hook.steps");
        }
        for (_, mut pod) in std::mem::take(&mut self.pods) {
            pod.span.set_attribute("scupper.pod.remains", true);
            self.leave(Some(pod), now, went(), "scupper.pod.requests");
        }
        if let Some(mut drain) = self.drain.take() {
            drain.set_attribute("scupper.outcome", outcome.name());
            drain.set_attribute("scupper.pods.gone", summary.totals.gone);
            drain.set_attribute("scupper.pods.kept", summary.kept);
            drain.set_attribute("scupper.pods.remaining", summary.remaining);
            drain.set_attribute("scupper.evictions", summary.totals.evictions);
            drain.set_attribute(
                "scupper.evictions.refused_by_budget",
                summary.totals.budget_refusals,
            );
            drain.set_attribute("scupper.hook.steps", summary.totals.hook_steps);
            self.end(drain, now, went());
        }
    }

    /// The span of a running hook; opens it if it is new.
    fn hook(&mut self, now: Time, hook: HookKey) -> &mut WorkSpan {
        let (trace, drain) = (self.trace, self.id());
        let started = self.hook_starts.get(&hook).copied().unwrap_or(now);
        let begin = |hook: &HookKey| WorkSpan::of_hook(trace, drain, hook, started);
        self.hooks.entry(hook).or_insert_with_key(begin)
    }

    /// The span of a pod to be evicted; opens it if it is new.
    fn pod(&mut self, now: Time, pod: &PodRef) -> &mut WorkSpan {
        let (trace, drain) = (self.trace, self.id());
        let begin = || WorkSpan::of_pod(trace, drain, pod, now);
        self.pods.entry(pod.uid.clone()).or_insert_with(begin)
    }

    fn id(&self) -> Option<SpanId> {
        self.drain.as_ref().map(|drain| drain.id)
    }

    fn child(&self, name: impl Into<String>, now: Time) -> Option<OpenSpan> {
        let drain = self.id()?;
        Some(OpenSpan::begin(SpanId::random(), Some(drain), name, now))
    }

    fn leave(&self, stay: Option<WorkSpan>, now: Time, went: SpanResult, asked: &str) {
        if let Some(stay) = stay {
            let (span, wait) = stay.leave(asked);
            self.end_wait(wait, now);
            self.end(span, now, went);
        }
    }

    fn end_wait(&self, wait: Option<OpenSpan>, now: Time) {
        if let Some(wait) = wait.filter(|wait| now.since(wait.started()) >= SHORTEST_WAIT) {
            self.end(wait, now, SpanResult::Unset);
        }
    }

    fn end_phase(&mut self, now: Time) {
        self.end_wave(now);
        if let Some(phase) = self.phase.take() {
            self.end(phase, now, SpanResult::Unset);
        }
    }

    fn end_wave(&mut self, now: Time) {
        if let Some(wave) = self.wave.take() {
            self.end(wave, now, SpanResult::Unset);
        }
    }

    fn end(&self, span: OpenSpan, now: Time, went: SpanResult) {
        self.traces.take(span.end(self.trace, now, went));
    }
}

impl Drop for DrainTrace {
    fn drop(&mut self) {
        // No other process can end these two spans.
        for span in [&mut self.phase, &mut self.wave].into_iter().flatten() {
            span.set_attribute("scupper.interrupted", true);
        }
        self.end_phase(self.clock.now());
    }
}

#[cfg(test)]
#[path = "drain_trace/tests.rs"]
mod tests;
