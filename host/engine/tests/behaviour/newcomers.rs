//! Pods that arrive after the plan, and events that arrive late, twice or out of order.

use std::time::Duration;

use crate::harness::{Host, PodPhase, START, controller, ending, hooks, node, planner, pod, request};
use scupper_engine::{
    Answer, Event, EvictAnswer, HookPhase, Outcome, PlanAnswer, Pod, PodRef, Request, StepOutcome, Time, Uid,
    Wave,
};

/// Another pod of this name.
fn again(name: &str, uid: &str, created: u64) -> Pod {
    let id = PodRef {
        uid: Uid::new(uid),
        ..pod(name).id
    };
    Pod {
        id,
        created: Time::from_millis(created),
        ..pod(name)
    }
}

fn of(controller_name: &str, name: &str) -> Pod {
    Pod {
        controller: Some(controller("ReplicaSet", controller_name)),
        ..pod(name)
    }
}

fn draining(pods: &[Pod]) -> Host {
    let mut host = Host::new(request());
    host.begin(pods).written("cordon").skip();
    host
}

#[test]
fn newcomers_are_planned_together_once_it_is_quiet() {
    let mut host = draining(&[of("first", "a")]);
    for number in 0..3 {
        host.handle(Event::PodApplied(of("other", &format!("n{number}"))))
            .wait(900)
            .does("");
    }
    host.waits("ns/a EvictionRequested\nns/n0 NotPlanned\nns/n1 NotPlanned\nns/n2 NotPlanned");
    host.wait(100).does("evict n0\nevict n1\nevict n2");
    // A stream of events is cut after five seconds.
    for number in 3..9 {
        host.handle(Event::PodApplied(of("other", &format!("n{number}"))))
            .wait(900);
    }
    host.does("evict n3\nevict n4\nevict n5\nevict n6\nevict n7\nevict n8");
}

#[test]
fn kept_newcomers_do_not_matter_and_blocking_ones_do() {
    let daemon = Pod {
        controller: Some(controller("DaemonSet", "ds")),
        ..pod("daemon")
    };
    let bare = Pod {
        controller: None,
        ..pod("bare")
    };
    let mut host = draining(&[pod("a")]);
    host.accepted("evict a").gone(&["a"]).skip();
    host.handle(Event::PodApplied(daemon))
        .handle(Event::PodApplied(bare))
        .wait(1_000);
    host.waits("ns/bare Refused\nns/daemon Kept")
        .does("")
        .wait(600_000)
        .does("");
    // A list requested earlier says nothing about now.
    host.gone(&["bare"]).does("").listed(&[]).does("list-pods");
}

#[test]
fn a_newcomer_joins_its_wave_unless_that_has_ended() {
    let mut host = Host::new(Request {
        policies: vec![planner("p")],
        ..request()
    });
    let wave = |name: &str, pods: &[&str]| Wave {
        name: name.to_owned(),
        pods: pods.iter().map(|name| Uid::new(*name)).collect(),
        max_parallel: None,
        timeout: None,
        max_grace_seconds: None,
        policy: String::new(),
    };
    host.begin(&[pod("a"), pod("b")]).planned("p", |plan| {
        plan.waves = vec![wave("one", &["a"]), wave("two", &["b"])]
    });
    host.written("cordon")
        .does("evict a")
        .handle(Event::PodApplied(of("x", "n")))
        .wait(1_000);
    host.planned("p", |plan| {
        plan.waves = vec![wave("one", &["a", "b"]), wave("two", &["n"])]
    })
    .does("");
    host.waits("ns/a EvictionRequested\nns/b WaveNotStarted\nns/n WaveNotStarted");
    host.accepted("evict a")
        .gone(&["a"])
        .does("evict b\nevict n")
        .handle(Event::PodApplied(of("x", "late")))
        .wait(1_000);
    host.planned("p", |plan| plan.waves = vec![wave("one", &["late", "n", "b"])])
        .does("evict late");
}

#[test]
fn planners_that_fail_over_newcomers_are_asked_again() {
    let mut host = Host::new(Request {
        policies: vec![planner("p")],
        ..request()
    });
    host.begin(&[]).planned("p", |_| {}).written("cordon").skip();
    host.handle(Event::PodApplied(pod("n")))
        .wait(1_000)
        .does("plan p");
    host.answer(
        "plan p",
        Answer::Plan(PlanAnswer::Failed {
            message: "trapped".to_owned(),
            retry_after: None,
        }),
    );
    host.does("")
        .waits("ns/n PlannerFailed")
        .wait(5_000)
        .does("plan p")
        .planned("p", |_| {})
        .does("evict n");
}

/// A pod that the cordon does not keep from the node.
fn tolerating(pod: Pod) -> Pod {
    Pod {
        cordon_toleration: Some("node.kubernetes.io/unschedulable:NoSchedule".to_owned()),
        ..pod
    }
}

/// A pod of a StatefulSet that returns under its name.
fn db(round: u64) -> Pod {
    Pod {
        controller: Some(controller("StatefulSet", "db")),
        ..again("db-0", &format!("u{round}"), round)
    }
}

const STAYS: &str = "StatefulSet db came back to the cordoned node after an eviction (it tolerates \
                     node.kubernetes.io/unschedulable:NoSchedule); it stays, and the drain does not wait for it";

#[test]
fn a_returning_pod_that_tolerates_the_cordon_is_evicted_once_and_then_kept() {
    let mut host = draining(&[tolerating(db(0))]);
    host.accepted("evict u0").gone(&["u0"]);
    host.handle(Event::PodApplied(tolerating(db(1)))).notices();
    host.wait(1_000).waits("ns/db-0 KeepsComingBack");
    let reported = host.notices();
    assert!(reported.contains(&format!("u1 stays: {STAYS}")), "{reported}");
    // A list requested while the node looked empty says nothing about now.
    host.written("save").listed(&[tolerating(db(1))]);
    host.listed(&[tolerating(db(1))]).written("save finished");
    assert_eq!(host.drain.outcome(), Some(&Outcome::Drained));
    let stayed = host.summary().stayed.into_iter();
    let stayed: Vec<_> = stayed.map(|(pod, reason)| format!("{pod}: {reason}")).collect();
    assert_eq!(stayed, [format!("ns/db-0: {STAYS}")]);
}

#[test]
fn a_returning_pod_is_evicted_as_often_as_the_settings_allow() {
    let mut request = request();
    request.settings.returning_pod_evictions = 3;
    let mut host = Host::new(request);
    host.begin(&[tolerating(db(0))]).written("cordon").skip();
    for round in 0..3 {
        host.accepted(&format!("evict u{round}"))
            .gone(&[&format!("u{round}")])
            .handle(Event::PodApplied(tolerating(db(round + 1))))
            .wait(1_000)
            .written("save");
    }
    host.waits("ns/db-0 KeepsComingBack");
}

#[test]
fn pods_of_one_controller_are_each_evicted_as_often() {
    let mut request = request();
    request.settings.returning_pod_evictions = 2;
    let mut host = Host::new(request);
    let two = |round: u64| {
        ["a", "b"].map(|name| Pod {
            controller: Some(controller("StatefulSet", "db")),
            ..tolerating(again(name, &format!("{name}{round}"), round))
        })
    };
    host.begin(&two(0)).written("cordon").skip();
    for round in 0..2 {
        for name in ["a", "b"] {
            host.accepted(&format!("evict {name}{round}"));
        }
        host.gone(&[&format!("a{round}"), &format!("b{round}")]);
        for pod in two(round + 1) {
            host.handle(Event::PodApplied(pod));
        }
        host.wait(1_000).written("save");
    }
    host.waits("ns/a KeepsComingBack\nns/b KeepsComingBack");
}

#[test]
fn a_pod_that_a_late_scheduler_put_here_is_evicted_some_more_times() {
    let mut host = draining(&[db(0)]);
    for round in 0..4 {
        host.accepted(&format!("evict u{round}"))
            .gone(&[&format!("u{round}")])
            .handle(Event::PodApplied(db(round + 1)))
            .wait(1_000)
            .written("save");
    }
    host.waits("ns/db-0 KeepsComingBack");
}

#[test]
fn a_pod_that_another_client_deleted_is_evicted_when_it_comes_back() {
    let mut host = draining(&[pod("a"), tolerating(db(0))]);
    host.answer(
        "evict u0",
        Answer::Evict(EvictAnswer::BudgetExhausted {
            budget: "pdb".to_owned(),
            message: String::new(),
        }),
    );
    host.gone(&["u0"])
        .handle(Event::PodApplied(tolerating(db(1))))
        .wait(1_000)
        .does("evict u1");
}

#[test]
fn kept_pods_are_kept_after_a_restart_and_their_siblings_are_evicted() {
    let sibling = Pod {
        controller: Some(controller("StatefulSet", "db")),
        ..tolerating(pod("db-1"))
    };
    let mut host = draining(&[tolerating(db(0)), sibling.clone()]);
    host.accepted("evict u0")
        .gone(&["u0"])
        .handle(Event::PodApplied(tolerating(db(1))))
        .wait(1_000)
        .written("save evicting");
    let saved = host.last_checkpoint();
    let mut node = node();
    node.unschedulable = true;
    node.checkpoint = Some(saved.clone());
    let mut host = Host::resume(request(), saved);
    host.begin_with(node, &[tolerating(db(1)), sibling], &[])
        .does("evict db-1")
        .waits("ns/db-1 EvictionRequested\nns/db-0 KeepsComingBack");
}

#[test]
fn a_bare_pod_that_arrives_in_spite_of_the_cordon_is_kept() {
    let bare = |name: &str, created: u64| Pod {
        controller: None,
        created: START + Duration::from_secs(created),
        ..pod(name)
    };
    let mut host = draining(&[pod("a")]);
    // One that the scheduler bound just before the cordon: it blocks the drain, as it would have blocked the plan.
    host.handle(Event::PodApplied(bare("early", 0)))
        .handle(Event::PodApplied(tolerating(bare("debug", 1))))
        .wait(60_000)
        .handle(Event::PodApplied(bare("late", 60)))
        .wait(1_000)
        .waits("ns/a EvictionRequested\nns/debug ArrivedDuringDrain\nns/early Refused\nns/late ArrivedDuringDrain");
    let reported = host.notices();
    let says = "debug stays: it came to the cordoned node during the drain (it tolerates \
                node.kubernetes.io/unschedulable:NoSchedule) and may not be evicted: Pods that declare no controller \
                (use --force to override); it stays, and the drain does not wait for it";
    assert!(reported.contains(says), "{reported}");
    host.accepted("evict a").gone(&["a", "early"]).does("list-pods");
}

#[test]
fn late_events_do_not_revive_a_deleted_pod() {
    let mut host = draining(&[pod("a")]);
    host.accepted("evict a")
        .gone(&["a"])
        .handle(Event::PodApplied(ending(pod("a"))))
        .waits("");
    host.does("list-pods")
        .listed(&[])
        .written("save")
        .ends(&Outcome::Drained);
}

#[test]
fn a_pod_never_stops_ending_or_being_finished() {
    let mut host = draining(&[]);
    host.handle(Event::PodApplied(ending(pod("a"))))
        .handle(Event::PodApplied(pod("a")));
    host.handle(Event::Pods(vec![pod("a")]))
        .wait(1_000)
        .waits("ns/a Terminating");
    let mut host = Host::new(Request {
        policies: vec![hooks("h", &[HookPhase::BeforeDrain])],
        ..request()
    });
    let finished = Pod {
        phase: PodPhase::Succeeded,
        controller: None,
        ..pod("a")
    };
    let running = Pod {
        controller: None,
        ..pod("a")
    };
    host.handle(Event::PodApplied(finished))
        .begin(&[running])
        .does("cordon at 100");
}

#[test]
fn a_name_belongs_to_the_younger_pod_whatever_comes_first() {
    let mut host = draining(&[again("a", "young", 2_000)]);
    host.handle(Event::PodApplied(again("a", "old", 1_000)))
        .waits("ns/a EvictionRequested");
    host.gone(&["young"]).waits("");
}

#[test]
fn a_pod_seen_after_a_list_was_requested_is_newer_than_the_list() {
    let mut host = draining(&[pod("a")]);
    host.accepted("evict a").gone(&["a"]).does("list-pods");
    // A pod arrives while the list is in flight, and the list is older.
    host.handle(Event::PodApplied(of("x", "n")))
        .listed(&[])
        .waits("ns/n NotPlanned")
        .wait(1_000)
        .does("evict n");
    // A pod is removed while the list is in flight, and the list is older.
    host.accepted("evict n")
        .wait(30_000)
        .does("list-pods")
        .gone(&["n"])
        .listed(&[of("x", "n")])
        .waits("");
}

#[test]
fn a_list_from_the_watch_shows_which_pods_are_gone() {
    let mut host = draining(&[pod("a"), pod("b")]);
    host.notices();
    host.handle(Event::Pods(vec![pod("b")]))
        .reports_last("a gone, 1 left");
    host.handle(Event::PodApplied(pod("a")))
        .waits("ns/b EvictionRequested");
}

#[test]
fn before_evict_hooks_also_run_for_newcomers() {
    let mut host = Host::new(Request {
        policies: vec![hooks("h", &[HookPhase::BeforeEvict])],
        ..request()
    });
    host.begin(&[])
        .written("cordon")
        .skip()
        .handle(Event::PodApplied(pod("n")))
        .wait(1_000);
    host.does("step h before-evict pod n")
        .stepped("step", StepOutcome::Done)
        .written("save")
        .does("evict n");
}

#[test]
fn a_list_requested_before_the_watch_restarted_does_not_count() {
    let mut host = draining(&[pod("a")]);
    host.accepted("evict a").gone(&["a"]).does("list-pods");
    host.handle(Event::Pods(vec![of("x", "n")]))
        .listed(&[])
        .waits("ns/n NotPlanned");
}
