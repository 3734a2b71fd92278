//! The span of a part of a drain that another process may see end: a hook, or a pod to be evicted.

use scupper_engine::{HookPhase, PodRef, Reason, Subject, Time};

use super::command_span;
use super::span::{OpenSpan, SpanId};

/// Maximum number of commands and of waits with a span of their own, per hook or pod. Scupper tries to evict a pod that
/// is held for a day thousands of times.
const MAX_CHILD_SPANS: u32 = 32;

/// A hook, by its policy, phase and subject.
pub(super) type HookKey = (String, HookPhase, Subject);

/// The span of a hook or a pod, and its current wait.
pub(super) struct WorkSpan {
    pub(super) span: OpenSpan,
    wait: Option<OpenSpan>,
    asked: u32,
    waited: u32,
}

impl WorkSpan {
    /// Opens the span of a hook.
    pub(super) fn of_hook(trace: u128, drain: Option<SpanId>, hook: &HookKey, started: Time) -> Self {
        let (policy, phase, subject) = hook;
        let phase = phase.to_string();
        let (kind, of) = match subject {
            Subject::Node => ("node", ""),
            Subject::Wave(name) => ("wave", name.as_str()),
            Subject::Pod(uid) => ("pod", uid.as_str()),
        };
        let id = SpanId::of(trace, &["hook", policy, &phase, kind, of]);
        let mut span = OpenSpan::begin(id, drain, format!("hook {policy} {phase}"), started)
            .with("scupper.policy", policy)
            .with("scupper.hook.phase", &phase);
        match subject {
            Subject::Node => {}
            Subject::Wave(name) => span.set_attribute("scupper.wave.name", name),
            Subject::Pod(uid) => span.set_attribute("k8s.pod.uid", uid.as_str()),
        }
        Self::of(span)
    }

    /// Opens the span of a pod.
    pub(super) fn of_pod(trace: u128, drain: Option<SpanId>, pod: &PodRef, started: Time) -> Self {
        let id = SpanId::of(trace, &["pod", pod.uid.as_str()]);
        Self::of(command_span::of_pod(
            OpenSpan::begin(id, drain, "pod", started),
            pod,
        ))
    }

    const fn of(span: OpenSpan) -> Self {
        Self {
            span,
            wait: None,
            asked: 0,
            waited: 0,
        }
    }

    /// Counts one more command; returns the parent of its span, or `None` beyond the limit.
    pub(super) const fn ask(&mut self) -> Option<SpanId> {
        self.asked += 1;
        if self.asked > MAX_CHILD_SPANS {
            return None;
        }
        Some(self.span.id)
    }

    /// Starts a wait. Returns the span of the previous wait.
    pub(super) fn waits(&mut self, now: Time, reason: &Reason) -> Option<OpenSpan> {
        let before = self.wait.take();
        // During an eviction request the span of the command shows the wait.
        if *reason != Reason::EvictionRequested && self.waited < MAX_CHILD_SPANS {
            self.waited += 1;
            let (id, of) = (SpanId::random(), Some(self.span.id));
            let wait = OpenSpan::begin(id, of, format!("wait {}", reason.name()), now);
            self.wait = Some(wait.with("scupper.reason", &reason.to_string()));
        }
        before
    }

    /// Ends the span: returns it with the number of commands, and the span of the last wait.
    pub(super) fn leave(mut self, asked: &str) -> (OpenSpan, Option<OpenSpan>) {
        self.span.set_attribute(asked, self.asked);
        (self.span, self.wait)
    }
}
