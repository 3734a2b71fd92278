//! The figures in the end's report: the cost of a drain, and since when something waits.

use crate::harness::{Host, START, budget, hooks, node, pod, request};
use scupper_engine::{
    Answer, Budget, Duration, Event, EvictAnswer, HookPhase, Phase, Request, SavedHook, StepOutcome, Subject,
};

fn with_hook() -> Request {
    Request {
        policies: vec![hooks("slurm", &[HookPhase::BeforeDrain])],
        ..request()
    }
}

fn pending(progress: &str) -> StepOutcome {
    StepOutcome::Pending {
        state: Vec::new(),
        again_after: Duration::from_secs(5),
        progress: progress.to_owned(),
        waiting_for: Vec::new(),
    }
}

fn exhausted() -> Answer {
    Answer::Evict(EvictAnswer::BudgetExhausted {
        budget: "pdb".to_owned(),
        message: "needs 2 and has 2".to_owned(),
    })
}

#[test]
fn a_drain_that_ends_inside_its_hook_reports_how_long_the_hook_blocked_it() {
    let mut host = Host::new(Request {
        deadline: Some(START + Duration::from_secs(40)),
        ..with_hook()
    });
    host.begin(&[pod("a")]).written("cordon");
    host.stepped("step", pending("1 job runs"))
        .wait(40_000)
        .written("save");
    assert_eq!(host.summary().hook_wait.as_secs(), 40);
}

#[test]
fn a_hook_that_continues_after_a_restart_has_waited_since_it_began() {
    let mut host = Host::new(with_hook());
    host.begin(&[pod("a")]).written("cordon").skip();
    let mut saved = host.last_checkpoint();
    saved.phase = Phase::Holding;
    let started = START + Duration::from_secs(1);
    saved.hooks = vec![SavedHook {
        policy: "slurm".to_owned(),
        phase: HookPhase::BeforeDrain,
        subject: Subject::Node,
        state: b"7".to_vec(),
        state_version: None,
        started,
    }];
    let mut node = node();
    node.unschedulable = true;
    node.checkpoint = Some(saved.clone());
    let mut host = Host::resume(with_hook(), saved);
    host.wait(61_000).begin_with(node, &[pod("a")], &[]);
    host.notices();
    host.stepped("step", pending("1 job runs"))
        .tells_last("hook slurm before-drain for 1m00s: 1 job runs");
    host.wait(10_000)
        .hear(Event::Cancel {
            reason: "enough".to_owned(),
        })
        .written("uncordon");
    assert_eq!(host.summary().hook_wait.as_secs(), 70, "of both processes");
}

/// The time for which budgets blocked, where two pods are refused for this many seconds, the second one that much
/// later.
fn budgets(first: u64, later: u64, second: u64) -> u64 {
    let other = Budget {
        namespace: "other".to_owned(),
        ..budget(1)
    };
    let mut b = pod("b");
    b.id.namespace = "other".to_owned();
    let mut host = Host::new(request());
    host.begin_with(node(), &[pod("a"), b], &[budget(1), other.clone()]);
    host.written("cordon");
    let grow = |of: &Budget| {
        Event::BudgetApplied(Budget {
            disruptions_allowed: 2,
            ..of.clone()
        })
    };
    host.answer("evict a", exhausted());
    if later < first {
        host.wait(later * 1000).answer("evict b", exhausted());
        host.wait((first - later) * 1000)
            .hear(grow(&budget(1)))
            .accepted("evict a");
        host.wait((later + second - first) * 1000);
    } else {
        host.wait(first * 1000).hear(grow(&budget(1))).accepted("evict a");
        host.wait((later - first) * 1000).answer("evict b", exhausted());
        host.wait(second * 1000);
    }
    host.hear(grow(&other)).accepted("evict b");
    host.gone(&["a", "b"]).listed(&[]).written("save");
    host.summary().budget_wait.as_secs()
}

#[test]
fn budget_waits_of_several_pods_count_each_moment_once() {
    assert_eq!(budgets(3, 5, 4), 7, "one after the other");
    assert_eq!(budgets(3, 1, 4), 5, "both for two seconds of it");
}
