//! Converts guests' answers to the engine's types: every text on one line, every list and state of bounded length.

use std::time::Duration;

use scupper_common::text::into_line;
use scupper_engine::{
    Decision, HookPhase, Plan, StepOutcome, Subject, Time, Uid, Verdict, WaitingOn, Wave, loosened, signed,
};

use super::bindings::exports::scupper::drain::hooks;
use super::bindings::scupper::drain::types;
use crate::load::flaws::is_blank;

/// Bytes of a decision's reason, as in `wit/`.
const REASON_BYTES: usize = 256;
/// Bytes of a UID; the API server's have 36.
const UID_BYTES: usize = 128;
/// Bytes of a wave's name.
const WAVE_NAME_BYTES: usize = 128;
/// Bytes of a message for users: a refusal, a failure.
const MESSAGE_BYTES: usize = 1024;
/// Bytes of a hook's progress.
const PROGRESS_BYTES: usize = 512;
/// Bytes of the object that a hook waits for, and of the awaited change.
const WAITING_BYTES: usize = 256;
/// The text for an empty progress.
const NO_PROGRESS: &str = "the policy does not say where it stands";
const NO_DETAIL: &str = "the policy does not say what it awaits";
/// How many objects a hook may wait for by name; the rest is counted.
const WAITING_FOR: usize = 100;
/// Bytes of a hook's state: all states of a drain share one annotation.
const STATE_BYTES: usize = 1024;

/// Converts a plan, unless it is longer than any plan for this many pods can be. The engine checks its validity.
pub(crate) fn plan(
    answer: types::PlanResult,
    pods: usize,
    draft: &Plan,
    policy: &str,
) -> Result<Plan, String> {
    let decisions = answer.decisions.len();
    let waves = answer.waves.len();
    let placed: usize = answer.waves.iter().map(|wave| wave.pods.len()).sum();
    for (count, what) in [
        (decisions, "decisions"),
        (waves, "waves"),
        (placed, "pods in waves"),
    ] {
        // One more than a valid plan has, so that the engine can still name a pod that was decided twice.
        if count > pods + 1 {
            return Err(format!("it answered with {count} {what} for {pods} pods"));
        }
    }
    let mut plan = Plan {
        decisions: answer.decisions.into_iter().map(decision).collect(),
        waves: answer.waves.into_iter().map(wave).collect(),
        loosened: draft.loosened.clone(),
        ..Plan::default()
    };
    plan.loosened.extend(loosened(&plan, draft, policy));
    Ok(signed(plan, draft, policy))
}

fn decision(decision: types::DecisionResult) -> Decision {
    Decision {
        pod: uid(decision.pod),
        verdict: verdict(decision.verdict),
        reason: into_line(decision.reason, REASON_BYTES),
        policy: String::new(),
    }
}

/// A UID without a pod on this node appears in messages to users.
fn uid(text: String) -> Uid {
    Uid::new(into_line(text, UID_BYTES))
}

fn wave(wave: types::WaveResult) -> Wave {
    Wave {
        name: into_line(wave.name, WAVE_NAME_BYTES),
        pods: wave.pods.into_iter().map(uid).collect(),
        max_parallel: wave.max_parallel,
        timeout: wave.timeout.map(Duration::from_millis),
        // With 0 the API server would forget a pod whose containers still run; drivers may not ask for that.
        max_grace_seconds: wave.max_grace_period_seconds.map(|seconds| seconds.max(1)),
        policy: String::new(),
    }
}

const fn verdict(verdict: types::Verdict) -> Verdict {
    match verdict {
        types::Verdict::Evict => Verdict::Evict,
        types::Verdict::Delete => Verdict::Delete,
        types::Verdict::AwaitCompletion => Verdict::AwaitCompletion,
        types::Verdict::Keep => Verdict::Keep,
        types::Verdict::Refuse => Verdict::Refuse,
    }
}

/// A text for users.
pub(crate) fn message(text: String) -> String {
    into_line(text, MESSAGE_BYTES)
}

/// Converts a step's outcome, unless its state is too long to store.
pub(crate) fn outcome(outcome: hooks::Outcome) -> Result<StepOutcome, String> {
    match outcome {
        hooks::Outcome::Done => Ok(StepOutcome::Done),
        hooks::Outcome::Failed(failure) => Ok(StepOutcome::Failed {
            message: message(failure.message),
            retry_after: failure.retry_after.map(Duration::from_millis),
        }),
        hooks::Outcome::Pending(pending) if pending.state.len() > STATE_BYTES => Err(format!(
            "its state has {} bytes, and {STATE_BYTES} are kept",
            pending.state.len()
        )),
        hooks::Outcome::Pending(pending) => Ok(StepOutcome::Pending {
            state: pending.state,
            again_after: Duration::from_millis(pending.again_after),
            progress: into_line(or(pending.progress, NO_PROGRESS), PROGRESS_BYTES),
            waiting_for: waiting_for(pending.waiting_for),
        }),
    }
}

fn or(text: String, instead: &str) -> String {
    if is_blank(&text) { instead.to_owned() } else { text }
}

/// Drops entries without a name: they cannot be reported.
fn waiting_for(mut list: Vec<hooks::WaitingOn>) -> Vec<WaitingOn> {
    list.retain(|item| !is_blank(&item.what));
    let more = list.len().saturating_sub(WAITING_FOR);
    let item = |item: hooks::WaitingOn| WaitingOn {
        what: into_line(item.what, WAITING_BYTES),
        detail: into_line(or(item.detail, NO_DETAIL), WAITING_BYTES),
        since: item.since.map(Time::from_millis),
    };
    let mut waiting: Vec<WaitingOn> = list.into_iter().take(WAITING_FOR).map(item).collect();
    if more > 0 {
        // Replaces the last entry, so that the list stays within its bound.
        waiting.pop();
        waiting.push(WaitingOn {
            what: format!("{} more", more + 1),
            detail: String::new(),
            since: None,
        });
    }
    waiting
}

/// A phase, for a guest.
pub(crate) const fn to_phase(phase: HookPhase) -> hooks::Phase {
    match phase {
        HookPhase::BeforeCordon => hooks::Phase::BeforeCordon,
        HookPhase::BeforeDrain => hooks::Phase::BeforeDrain,
        HookPhase::BeforeWave => hooks::Phase::BeforeWave,
        HookPhase::BeforeEvict => hooks::Phase::BeforeEvict,
        HookPhase::AfterDrain => hooks::Phase::AfterDrain,
        HookPhase::OnCancel => hooks::Phase::OnCancel,
        HookPhase::BeforeUncordon => hooks::Phase::BeforeUncordon,
        HookPhase::AfterUncordon => hooks::Phase::AfterUncordon,
    }
}

/// A phase, from a guest.
pub(crate) const fn from_phase(phase: hooks::Phase) -> HookPhase {
    match phase {
        hooks::Phase::BeforeCordon => HookPhase::BeforeCordon,
        hooks::Phase::BeforeDrain => HookPhase::BeforeDrain,
        hooks::Phase::BeforeWave => HookPhase::BeforeWave,
        hooks::Phase::BeforeEvict => HookPhase::BeforeEvict,
        hooks::Phase::AfterDrain => HookPhase::AfterDrain,
        hooks::Phase::OnCancel => HookPhase::OnCancel,
        hooks::Phase::BeforeUncordon => HookPhase::BeforeUncordon,
        hooks::Phase::AfterUncordon => HookPhase::AfterUncordon,
    }
}

/// The subject of a hook's call.
pub(crate) fn subject(subject: &Subject) -> hooks::Subject<'_> {
    match subject {
        Subject::Node => hooks::Subject::Node,
        Subject::Wave(name) => hooks::Subject::Wave(name),
        Subject::Pod(uid) => hooks::Subject::Pod(uid.as_str()),
    }
}
