//! Hostile guests: each bound is hit, holds, and is named in what people are told; meanwhile the driver goes on.

use std::sync::Arc;
use std::time::Duration;

use scupper::policy::{CallFault, Limits, LoadFault, OnFailure, Policies, PolicySpec, Remedy};
use scupper_engine::{HookPhase, PlanAnswer, StepOutcome, Uid};

use crate::logs::Lines;
use crate::support::{
    FakeCluster, draft, failed_plan, grant, load, load_spec, plan, plan_for, pod, refused, runtime, short,
    spec, step,
};

/// The policy `p` from a guest, with limits that are reached sooner.
async fn load_short(name: &str) -> Policies {
    load_spec(PolicySpec {
        limits: short(),
        ..spec(name)
    })
    .await
    .unwrap()
}

/// Runs a call while another task on the same thread wakes up every millisecond. Gives the answer, the CPU time it
/// took, and how much of it went by between two wake-ups in nine of ten cases. CPU time, because on a busy machine
/// the whole process waits, which says nothing about the guest.
async fn beside<T: Send + 'static>(
    call: impl Future<Output = T> + Send + 'static,
) -> (T, Duration, Duration) {
    let begun = cpu_time();
    let call = tokio::spawn(call);
    let mut gaps = Vec::new();
    while !call.is_finished() {
        let asleep = cpu_time();
        tokio::time::sleep(Duration::from_millis(1)).await;
        gaps.push(cpu_time() - asleep);
    }
    gaps.sort_unstable();
    let most = gaps.get(gaps.len() * 9 / 10).copied().unwrap_or_default();
    (call.await.unwrap(), cpu_time() - begun, most)
}

/// How long this thread has been running.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap())
}

#[tokio::test]
async fn spins_in_plan() {
    let policies = load_short("spins_in_plan").await;
    let (message, took, gap) = beside(async move { failed_plan(&policies).await }).await;
    assert_eq!(
        message,
        "policy `p` failed in make-plan: it used more than its 300 ms of CPU time"
    );
    assert!(took < Duration::from_millis(600), "it took {took:?}");
    assert!(gap < Duration::from_millis(50), "another task waited for {gap:?}");
}

#[tokio::test]
async fn spins_in_step() {
    let policies = load_short("spins_in_step").await;
    let step = async move { step(&policies, HookPhase::BeforeDrain, b"").await };
    let (outcome, took, gap) = beside(step).await;
    let StepOutcome::Failed { message, retry_after } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(
        message,
        "policy `p` failed in step: it used more than its 300 ms of CPU time"
    );
    assert_eq!(retry_after, Some(scupper_engine::Duration::from_secs(10)));
    assert!(took < Duration::from_millis(600), "it took {took:?}");
    assert!(gap < Duration::from_millis(50), "another task waited for {gap:?}");
}

#[tokio::test]
async fn spins_in_describe() {
    let (fault, text) = refused("spins_in_describe").await;
    assert!(
        matches!(&fault, LoadFault::Call(error) if matches!(error.fault, CallFault::Overrun(_))),
        "{text}"
    );
    assert!(
        text.ends_with("policy `p` failed in describe: it used more than its 250 ms of CPU time"),
        "{text}"
    );
}

#[tokio::test]
async fn spins_at_start() {
    let (fault, text) = refused("spins_at_start").await;
    assert!(
        matches!(&fault, LoadFault::Call(error) if matches!(error.fault, CallFault::Overrun(_))),
        "{text}"
    );
}

#[tokio::test]
async fn spins_in_alloc() {
    let message = failed_plan(&load_short("spins_in_alloc").await).await;
    assert!(
        message.ends_with("it used more than its 300 ms of CPU time"),
        "{message}"
    );
}

#[tokio::test]
async fn many_spinners_share_the_workers() {
    let policies = Arc::new(load_short("spins_in_plan").await);
    let calls = (0..8).map(|_| {
        let policies = Arc::clone(&policies);
        tokio::spawn(async move { failed_plan(&policies).await })
    });
    for call in calls.collect::<Vec<_>>() {
        assert!(call.await.unwrap().contains("CPU time"));
    }
    let echo = load("echo").await;
    assert!(matches!(plan(&echo, 3).await, PlanAnswer::Plan(_)));
}

#[tokio::test]
async fn the_wall_ends_what_waits_for_the_cluster_and_costs_no_cpu() {
    let limits = Limits {
        step_wall: Duration::from_millis(700),
        step_cpu: Duration::from_millis(100),
        ..short()
    };
    let mut spec = PolicySpec {
        limits,
        ..spec("annotates")
    };
    spec.grants = vec![
        grant("node-annotations:drain.example.com/"),
        grant("pod-annotations:drain.example.com/"),
    ];
    let cluster = Arc::new(FakeCluster {
        silent: true,
        ..FakeCluster::default()
    });
    let policies = Policies::load(&runtime(), &[spec], cluster).await.unwrap();
    let outcome = step(&policies, HookPhase::BeforeDrain, b"look").await;
    let StepOutcome::Failed { message, .. } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(
        message,
        "policy `p` failed in step: it did not answer within 0.7 s"
    );
}

#[tokio::test]
async fn a_panic_of_the_driver_itself_becomes_an_answer() {
    let mut spec = spec("annotates");
    spec.grants = vec![
        grant("node-annotations:drain.example.com/"),
        grant("pod-annotations:drain.example.com/"),
    ];
    let cluster = Arc::new(FakeCluster {
        panics: true,
        ..FakeCluster::default()
    });
    let policies = Policies::load(&runtime(), &[spec], cluster).await.unwrap();
    for _ in 0..2 {
        let outcome = step(&policies, HookPhase::BeforeDrain, b"look").await;
        let StepOutcome::Failed { message, .. } = outcome else {
            panic!("{outcome:?}")
        };
        assert!(message.ends_with("this is a bug in the driver"), "{message}");
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_leaves_nothing_behind() {
    let policies = load("spins_in_plan").await;
    for _ in 0..5 {
        let dropped = tokio::time::timeout(Duration::from_millis(50), plan(&policies, 1)).await;
        assert!(dropped.is_err());
    }
    assert!(matches!(plan(&load("echo").await, 1).await, PlanAnswer::Plan(_)));
}

#[tokio::test]
async fn eats_memory() {
    let policies = load("eats_memory").await;
    let before = resident_kib();
    for _ in 0..6 {
        let message = failed_plan(&policies).await;
        assert_eq!(
            message,
            "policy `p` failed in make-plan: it wanted more than its 64 MiB of memory"
        );
    }
    // Six times 64 MiB would be 384; other tests of this process run meanwhile.
    let grown = resident_kib().saturating_sub(before);
    assert!(grown < 250 * 1024, "the driver has grown by {grown} KiB");
}

/// This process's resident memory.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn huge_memory() {
    let (fault, text) = refused("huge_memory").await;
    assert!(matches!(fault, LoadFault::Needs { .. }), "{text}");
    assert!(
        text.contains("bytes of memory to begin with, and its limit is 67108864"),
        "{text}"
    );
}

#[tokio::test]
async fn more_instances_tables_and_memories_than_allowed() {
    for (limits, bound) in [
        (
            Limits {
                instances: 0,
                ..short()
            },
            "instance count too high",
        ),
        (
            Limits {
                table_elements: 1,
                ..short()
            },
            "table elements",
        ),
        (
            Limits {
                memories: 0,
                ..short()
            },
            "its limit is 0",
        ),
    ] {
        let loaded = load_spec(PolicySpec {
            limits,
            ..spec("echo")
        })
        .await;
        let Err(error) = loaded else {
            panic!("loaded in spite of {bound}")
        };
        let text = crate::support::chain(&error);
        assert!(text.contains(bound), "`{bound}` is missing in: {text}");
    }
}

#[tokio::test]
async fn panics() {
    let policies = load("panics").await;
    let message = failed_plan(&policies).await;
    assert!(
        message.starts_with("policy `p` failed in make-plan: "),
        "{message}"
    );
    assert!(
        message.contains("unreachable") && message.contains("look_up_the_impossible"),
        "{message}"
    );
    let outcome = step(&policies, HookPhase::BeforeDrain, b"").await;
    let StepOutcome::Failed { message, retry_after } = outcome else {
        panic!("{outcome:?}")
    };
    assert!(
        message.contains("in panics::look_up_the_impossible, called by"),
        "{message}"
    );
    assert_eq!(retry_after, Some(scupper_engine::Duration::from_secs(10)));
    // The next call finds a fresh instance.
    assert!(failed_plan(&policies).await.contains("look_up_the_impossible"));
}

#[tokio::test]
async fn a_failure_becomes_what_the_operator_wants() {
    for remedy in [Remedy::Refuse, Remedy::Ignore, Remedy::Hold] {
        let policies = load_spec(PolicySpec {
            on_failure: OnFailure::said(Some(remedy), Some(remedy)),
            ..spec("panics")
        });
        let policies = policies.await.unwrap();
        let planned = plan_for(&policies, &[pod(1)]).await;
        let stepped = step(&policies, HookPhase::BeforeDrain, b"").await;
        let again = Some(scupper_engine::Duration::from_secs(10));
        match remedy {
            Remedy::Ignore => {
                assert_eq!(planned, PlanAnswer::Plan(draft(&[pod(1)])));
                assert_eq!(stepped, StepOutcome::Done);
            }
            Remedy::Refuse | Remedy::Hold => {
                let wanted = again.filter(|_| remedy == Remedy::Hold);
                assert!(
                    matches!(planned, PlanAnswer::Failed { retry_after, .. } if retry_after == wanted),
                    "{planned:?}"
                );
                assert!(
                    matches!(stepped, StepOutcome::Failed { retry_after, .. } if retry_after == wanted),
                    "{stepped:?}"
                );
            }
        }
    }
    // A refusal is no failure.
    for planner in [Remedy::Ignore, Remedy::Hold] {
        let on_failure = OnFailure::said(Some(planner), None);
        let refuses = load_spec(PolicySpec {
            on_failure,
            ..spec("refuse")
        });
        let answer = plan(&refuses.await.unwrap(), 1).await;
        assert!(matches!(answer, PlanAnswer::Refused { .. }), "{answer:?}");
    }
}

#[tokio::test]
async fn recurses() {
    let message = failed_plan(&load("recurses").await).await;
    assert!(
        message.contains("call stack exhausted") && message.contains("deeper"),
        "{message}"
    );
}

#[tokio::test]
async fn huge_plan() {
    let message = failed_plan(&load("huge_plan").await).await;
    assert!(message.ends_with("carried more than 4 MiB"), "{message}");
}

#[tokio::test]
async fn huge_words() {
    let message = failed_plan(&load("huge_words").await).await;
    assert!(message.ends_with("carried more than 4 MiB"), "{message}");
}

#[tokio::test]
async fn too_many_decisions() {
    let PlanAnswer::Failed { message, .. } = plan(&load("too_many_decisions").await, 4).await else {
        panic!("a plan")
    };
    assert!(
        message.ends_with("it answered with 12 decisions for 4 pods"),
        "{message}"
    );
}

#[tokio::test]
async fn bad_plan_is_left_to_the_engine() {
    let PlanAnswer::Plan(answer) = plan_for(&load("bad_plan").await, &[pod(1)]).await else {
        panic!("no plan")
    };
    let stranger = answer.decisions.last().unwrap();
    assert_eq!(
        (&stranger.pod, stranger.policy.as_str()),
        (&Uid(r"nobody\u{1b}[2J".to_owned()), "p")
    );
}

#[tokio::test]
async fn huge_state() {
    let policies = load("huge_state").await;
    let StepOutcome::Pending { state, .. } = step(&policies, HookPhase::BeforeDrain, b"").await else {
        panic!("1024 bytes are too many")
    };
    assert_eq!(state.len(), 1024);
    let outcome = step(&policies, HookPhase::BeforeDrain, b"x").await;
    let StepOutcome::Failed { message, .. } = outcome else {
        panic!("{outcome:?}")
    };
    assert!(
        message.ends_with("its state has 1025 bytes, and 1024 are kept"),
        "{message}"
    );
}

#[tokio::test]
async fn floods_log() {
    let log = Lines::collect();
    let policies = load("floods_log").await;
    assert!(matches!(plan(&policies, 1).await, PlanAnswer::Plan(_)));
    let text = log.of("p");
    let lines: Vec<&String> = text
        .iter()
        .filter(|line| line.contains(r"\n\u{1b}[31mred"))
        .collect();
    // Fifty at once, and ten for every second the flood lasted.
    assert!((50..=120).contains(&lines.len()), "{} lines", lines.len());
    assert!(lines.iter().all(|line| line.len() < 1300), "a line is too long");
    assert!(
        !text.iter().any(|line| line.contains('\u{1b}')),
        "a control character came through"
    );
    assert!(
        text.iter().any(|line| line.contains("lines were dropped")),
        "nobody was told"
    );
}
