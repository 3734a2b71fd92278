//! Feeds the notices of a drain to its trace, and checks the resulting spans.

use scupper_engine::{
    Answer, EvictAnswer, HookPhase, HookStep, Reason, SavedHook, StepOutcome, Subject, Task,
};
use tokio::sync::mpsc;

use scupper_report::fixture::{pod, request};

use super::*;
use crate::otlp::{OtlpSpan, StatusCode, Value};

const TRACE: u128 = 7;

fn at(second: u64) -> Time {
    Time::from_millis(second * 1000)
}

fn trace(left: Option<&Checkpoint>) -> (DrainTrace, mpsc::Receiver<OtlpSpan>) {
    let (traces, taken) = Traces::reported(1000);
    let when = (Clock::System, at(1));
    (DrainTrace::begin(&traces, TRACE, &request(), when, left), taken)
}

fn taken(queue: &mut mpsc::Receiver<OtlpSpan>) -> Vec<OtlpSpan> {
    std::iter::from_fn(|| queue.try_recv().ok()).collect()
}

fn names(spans: &[OtlpSpan]) -> Vec<&str> {
    spans.iter().map(|span| span.name.as_str()).collect()
}

fn attribute<'a>(span: &'a OtlpSpan, key: &str) -> Option<&'a Value> {
    let found = span.attributes.iter().find(|it| it.key == key)?;
    found.value.as_ref()?.value.as_ref()
}

fn evict(id: u64) -> Command {
    let (pod, grace_seconds) = (pod("web-1"), None);
    Command {
        id: CommandId(id),
        task: Task::Evict { pod, grace_seconds },
    }
}

fn step(id: u64) -> Command {
    let step = HookStep {
        policy: "slurm".into(),
        phase: HookPhase::BeforeDrain,
        subject: Subject::Node,
        state: b"secret state".to_vec(),
        leaving: Vec::new(),
    };
    Command {
        id: CommandId(id),
        task: Task::Step {
            step,
            state_version: None,
        },
    }
}

fn answer(id: u64, answer: EvictAnswer) -> Event {
    Event::Answer(CommandId(id), Answer::Evict(answer))
}

fn finished(outcome: Outcome) -> Notice {
    Notice::Finished {
        outcome,
        summary: Summary::default(),
    }
}

#[test]
fn a_pod_is_a_span_over_its_evictions_and_waits() {
    let (mut trace, mut queue) = trace(None);
    let message = String::new();
    let budget = String::from("web");
    let refused = EvictAnswer::BudgetExhausted {
        budget: budget.clone(),
        message: message.clone(),
    };
    let waits = |reason| Notice::PodWaits {
        pod: pod("web-1"),
        reason,
    };
    trace.asked(at(2), &evict(1));
    trace.observe(at(3), &answer(1, refused));
    trace.notice(at(3), &waits(Reason::BudgetExhausted { budget, message }));
    trace.asked(at(8), &evict(2));
    trace.observe(at(9), &answer(2, EvictAnswer::Accepted));
    trace.notice(at(9), &waits(Reason::Terminating { until: at(30) }));
    let gone = Notice::PodGone {
        pod: pod("web-1"),
        remaining: 0,
    };
    trace.notice(at(9), &gone);
    let spans = taken(&mut queue);
    // A wait of zero length is not traced.
    assert_eq!(names(&spans), ["evict", "evict", "wait BudgetExhausted", "pod"]);
    let [first, second, wait, stay] = &spans[..] else {
        panic!("{spans:?}")
    };
    for span in [first, second, wait] {
        assert_eq!(span.parent_span_id, stay.span_id);
        assert_eq!(span.trace_id, TRACE.to_be_bytes());
    }
    let times = |span: &OtlpSpan| (span.start_time_unix_nano, span.end_time_unix_nano);
    assert_eq!(times(wait), (3_000_000_000, 9_000_000_000));
    assert_eq!(times(stay), (2_000_000_000, 9_000_000_000));
    assert_eq!(
        attribute(first, "scupper.answer"),
        Some(&"budget-exhausted".into())
    );
    assert_eq!(attribute(first, "scupper.budget"), Some(&"web".into()));
    assert_eq!(first.status, None, "a budget that is kept is no error");
    assert_eq!(attribute(second, "k8s.pod.name"), Some(&"web-1".into()));
    assert_eq!(attribute(stay, "scupper.pod.requests"), Some(&2_u32.into()));
}

#[test]
fn a_process_that_continues_a_drain_uses_the_first_ones_identifiers() {
    let (mut first, mut queue) = trace(None);
    first.notice(at(1), &Notice::Phase(Phase::Holding));
    first.asked(at(2), &step(1));
    first.asked(at(2), &evict(2));
    let failed = StepOutcome::Failed {
        message: "no route".into(),
        retry_after: None,
    };
    let failed = Answer::Step {
        outcome: failed,
        state_version: None,
    };
    first.observe(at(3), &Event::Answer(CommandId(1), failed));
    first.observe(at(3), &answer(2, EvictAnswer::Accepted));
    drop(first);
    let before = taken(&mut queue);
    assert_eq!(names(&before), ["step slurm before-drain", "evict", "holding"]);
    assert_eq!(before[0].status.as_ref().unwrap().code(), StatusCode::Error);
    assert_eq!(before[0].status.as_ref().unwrap().message, "no route");
    assert_eq!(attribute(&before[2], "scupper.interrupted"), Some(&true.into()));
    assert!(!format!("{before:?}").contains("secret"), "{before:?}");

    let left = Checkpoint {
        id: "u-1".into(),
        name: "drain-worker-1".into(),
        trigger: "LifecycleEvent".into(),
        phase: Phase::Holding,
        own_cordon: true,
        hooks: vec![SavedHook {
            policy: "slurm".into(),
            phase: HookPhase::BeforeDrain,
            subject: Subject::Node,
            state: Vec::new(),
            state_version: None,
            started: at(2),
        }],
        ..Checkpoint::blank(Uid::new("n"), at(1))
    };
    let (mut next, mut queue) = trace(Some(&left));
    next.asked(at(60), &step(1));
    let done = Notice::HookDone {
        policy: "slurm".into(),
        phase: HookPhase::BeforeDrain,
        subject: Subject::Node,
    };
    next.notice(at(61), &done);
    next.asked(at(62), &evict(2));
    next.notice(at(63), &finished(Outcome::Drained));
    let after = taken(&mut queue);
    assert_eq!(names(&after), ["hook slurm before-drain", "pod", "drain"]);
    assert_eq!(before[0].parent_span_id, after[0].span_id);
    assert_eq!(after[0].start_time_unix_nano, 2_000_000_000);
    assert_eq!(before[1].parent_span_id, after[1].span_id);
    assert_eq!(before[2].parent_span_id, after[2].span_id);
    assert_eq!(after[2].start_time_unix_nano, 1_000_000_000);
    assert_eq!(after[2].events[0].name, "taken up again");
}

#[test]
fn how_it_ended_is_its_status() {
    let (mut trace, mut queue) = trace(None);
    trace.notice(at(2), &Notice::Phase(Phase::Evicting));
    trace.asked(at(2), &evict(1));
    let remaining = vec![pod("web-1")];
    trace.notice(at(9), &Notice::Phase(Phase::Finished));
    trace.notice(
        at(9),
        &finished(Outcome::DeadlineExceeded {
            remaining,
            held_up: None,
        }),
    );
    let spans = taken(&mut queue);
    assert_eq!(names(&spans), ["evicting", "pod", "drain"]);
    let drain = &spans[2];
    assert_eq!(
        attribute(drain, "scupper.outcome"),
        Some(&"DeadlineExceeded".into())
    );
    let status = drain.status.as_ref().unwrap();
    assert_eq!(status.code(), StatusCode::Error);
    assert!(status.message.contains("web-1"), "{status:?}");
    assert_eq!(attribute(&spans[1], "scupper.pod.remains"), Some(&true.into()));
    // No span follows the end, and dropping the trace adds none.
    drop(trace);
    assert!(taken(&mut queue).is_empty());
}

#[test]
fn a_task_repeated_for_a_day_is_counted_and_not_traced_each_time() {
    let (mut trace, mut queue) = trace(None);
    for number in 0..5000 {
        trace.asked(at(number), &step(number));
        let pending = Answer::Step {
            outcome: StepOutcome::Pending {
                state: Vec::new(),
                again_after: Duration::from_secs(1),
                progress: String::new(),
                waiting_for: Vec::new(),
            },
            state_version: None,
        };
        trace.observe(at(number), &Event::Answer(CommandId(number), pending));
    }
    trace.notice(at(5000), &finished(Outcome::Drained));
    let spans = taken(&mut queue);
    assert!(spans.len() < 40, "{}", spans.len());
    let hook = spans.iter().find(|span| span.name.starts_with("hook"));
    assert_eq!(
        attribute(hook.unwrap(), "scupper.hook.steps"),
        Some(&5000_u32.into())
    );
}
