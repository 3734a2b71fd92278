//! The figures in the end's report: the cost of a drain, and since when something waits.

use std::time::Duration;

use crate::harness::{Host, START, budget, hooks, node, pod, request, uncordon_request};
use scupper_engine::{
    Answer, Budget, Checkpoint, Event, EvictAnswer, HookPhase, Outcome, Phase, Pod, Request, SavedHook,
    StepOutcome, Subject, Summary,
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
    assert_eq!(host.summary().totals.hook_wait.as_secs(), 40);
}

/// The process that finds this checkpoint and its hook under way, so many milliseconds after the start.
fn resumed(saved: &Checkpoint, millis: u64) -> Host {
    let mut node = node();
    node.unschedulable = true;
    node.checkpoint = Some(saved.clone());
    let mut host = Host::resume(with_hook(), saved.clone());
    host.wait(millis).begin_with(node, &[pod("a")], &[]);
    host
}

#[test]
fn a_hooks_cost_before_a_restart_counts_once() {
    let at = |state: &[u8]| StepOutcome::Pending {
        state: state.to_vec(),
        again_after: Duration::from_secs(5),
        progress: String::new(),
        waiting_for: Vec::new(),
    };
    let mut first = Host::new(with_hook());
    first.begin(&[pod("a")]).written("cordon");
    first.stepped("step", at(b"1")).written("save").wait(20_000);
    first.stepped("step", at(b"2")).skip();
    let saved = first.last_checkpoint();
    assert_eq!(saved.counts.totals.hook_wait.as_secs(), 20);
    // Another process continues the hook 10 s later, and it finishes after 5 s more.
    let mut second = resumed(&saved, 30_000);
    second.wait(5_000).stepped("step", StepOutcome::Done).skip();
    let saved = second.last_checkpoint();
    assert_eq!(saved.counts.totals.hook_wait.as_secs(), 35);
    // A third process knows of the hook only what was saved.
    let mut third = resumed(&saved, 200_000);
    third.accepted("evict a").gone(&["a"]).listed(&[]).written("save");
    assert_eq!(third.summary().totals.hook_wait.as_secs(), 35);
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
    let mut host = resumed(&saved, 61_000);
    host.notices();
    host.stepped("step", pending("1 job runs"))
        .reports_last("hook slurm before-drain for 1m00s: 1 job runs");
    host.wait(10_000)
        .handle(Event::Cancel {
            reason: "enough".to_owned(),
        })
        .written("uncordon");
    assert_eq!(host.summary().totals.hook_wait.as_secs(), 70, "of both processes");
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
            .handle(grow(&budget(1)))
            .accepted("evict a");
        host.wait((later + second - first) * 1000);
    } else {
        host.wait(first * 1000)
            .handle(grow(&budget(1)))
            .accepted("evict a");
        host.wait((later - first) * 1000).answer("evict b", exhausted());
        host.wait(second * 1000);
    }
    host.handle(grow(&other)).accepted("evict b");
    host.gone(&["a", "b"]).listed(&[]).written("save");
    host.summary().totals.budget_wait.as_secs()
}

#[test]
fn budget_waits_of_several_pods_count_each_moment_once() {
    assert_eq!(budgets(3, 5, 4), 7, "one after the other");
    assert_eq!(budgets(3, 1, 4), 5, "both for two seconds of it");
}

/// One pod evicted, one refused by a budget and still there, one hook done.
fn half_done() -> Host {
    let mut host = Host::new(Request {
        deadline: Some(START + Duration::from_secs(60)),
        ..with_hook()
    });
    host.begin(&[pod("a"), pod("b")]).written("cordon");
    host.stepped("step", StepOutcome::Done).written("save");
    host.accepted("evict a")
        .gone(&["a"])
        .answer("evict b", exhausted());
    host
}

/// Lets everything succeed until the drain has ended.
fn ended(mut host: Host) -> (&'static str, Summary) {
    for _ in 0..100 {
        for write in ["save", "uncordon", "forget"] {
            if host.asks(write) {
                host.written(write);
            }
        }
        if host.asks("step") {
            host.stepped("step", StepOutcome::Done);
        }
        if host.asks("list-pods") {
            host.listed(&[]);
        }
        host.wait(1_000);
    }
    let name = host.drain.outcome().map_or("", Outcome::name);
    (name, host.summary())
}

/// The host compares each summary with the sum of the commands, answers and notices that it has seen.
#[test]
fn the_summary_of_every_end_is_the_sum_of_what_was_reported() {
    let after = |event: Event| {
        let mut host = half_done();
        host.handle(event);
        ended(host)
    };
    let reason = || "enough".to_owned();
    let drained = {
        let mut host = half_done();
        host.wait(30_000).accepted("evict b").gone(&["b"]);
        ended(host)
    };
    let exceeded = {
        let mut host = half_done();
        host.wait(60_000);
        ended(host)
    };
    let refused = |outcome| {
        let mut host = Host::new(with_hook());
        host.begin(&[pod("a")]).written("cordon").stepped("step", outcome);
        ended(host)
    };
    let blocked = {
        let bare = Pod {
            controller: None,
            ..pod("bare")
        };
        let mut host = Host::new(request());
        host.begin(&[bare, pod("a")]);
        ended(host)
    };
    let uncordoned = {
        let mut host = Host::new(uncordon_request());
        host.begin(&[pod("a")]);
        ended(host)
    };
    let no_node = {
        let mut host = Host::new(request());
        host.handle(Event::Node(None));
        ended(host)
    };
    let failed = StepOutcome::Failed {
        message: "no".to_owned(),
        retry_after: None,
    };
    let ends = [
        drained,
        exceeded,
        after(Event::Cancel { reason: reason() }),
        after(Event::Lost { reason: reason() }),
        refused(failed),
        blocked,
        uncordoned,
        no_node,
    ];
    let rows = ends.map(|(name, it)| {
        let pods = (it.totals.gone, it.remaining, it.totals.waves);
        (
            name,
            pods,
            (
                it.totals.evictions,
                it.totals.budget_refusals,
                it.totals.hook_steps,
            ),
        )
    });
    let expected = [
        ("Drained", (2, 0, 1), (3, 1, 1)),
        ("DeadlineExceeded", (1, 1, 1), (2, 1, 1)),
        ("Cancelled", (1, 1, 1), (2, 1, 1)),
        ("Lost", (1, 1, 1), (2, 1, 1)),
        ("PolicyFailed", (0, 1, 0), (0, 0, 1)),
        ("Blocked", (0, 2, 0), (0, 0, 0)),
        ("Uncordoned", (0, 0, 0), (0, 0, 0)),
        ("Failed", (0, 0, 0), (0, 0, 0)),
    ];
    assert_eq!(rows, expected);
}
