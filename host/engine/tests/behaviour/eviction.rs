//! Evictions, answer by answer.

use std::time::Duration;

use crate::harness::{Host, PodPhase, ending, node, planner, pod, request};
use scupper_engine::{
    Answer, Event, EvictAnswer, MIRROR_ANNOTATION, Node, Outcome, Pod, Request, Settings, Time, Verdict,
};

/// A drain that has requested the evictions of these pods.
fn asking(pods: &[Pod]) -> Host {
    let mut host = Host::new(request());
    host.begin(pods).written("cordon");
    host
}

fn evict(answer: EvictAnswer) -> Answer {
    Answer::Evict(answer)
}

fn message() -> String {
    "says the server".to_owned()
}

#[test]
fn a_refused_eviction_is_retried_later_and_delays_no_other_pod() {
    let refused = |retry_after| EvictAnswer::Refused {
        code: 500,
        message: message(),
        retry_after,
    };
    let rows = [
        (
            EvictAnswer::MoreThanOneBudget { message: message() },
            "MoreThanOneBudget",
            5,
        ),
        (EvictAnswer::Forbidden { message: message() }, "Forbidden", 5),
        (refused(None), "EvictionRefused", 5),
        (refused(Some(Duration::from_secs(7))), "EvictionRefused", 7),
        (EvictAnswer::Unreachable { message: message() }, "Unreachable", 1),
        (
            EvictAnswer::BudgetExhausted {
                budget: "pdb".to_owned(),
                message: message(),
            },
            "BudgetExhausted",
            5,
        ),
        (
            EvictAnswer::BudgetNotObserved {
                message: message(),
                retry_after: Duration::from_secs(10),
            },
            "BudgetNotObserved",
            10,
        ),
    ];
    for (answer, reason, secs) in rows {
        let mut host = asking(&[pod("a"), pod("b")]);
        host.does("evict a\nevict b")
            .answer("evict a", evict(answer))
            .does("");
        host.accepted("evict b")
            .gone(&["b"])
            .waits(&format!("ns/a {reason}"));
        host.wait(secs * 875 - 1)
            .does("")
            .wait(secs * 125 + 1)
            .does("evict a");
        host.waits(&format!("ns/a {reason}"));
        host.accepted("evict a")
            .gone(&["a"])
            .listed(&[])
            .written("save")
            .ends(&Outcome::Drained);
    }
}

#[test]
fn waits_grow_while_the_answer_stays_the_same() {
    let mut host = asking(&[pod("a")]);
    for secs in [5, 10, 20, 40, 60, 60] {
        host.answer(
            "evict a",
            evict(EvictAnswer::MoreThanOneBudget { message: message() }),
        );
        host.wait(secs * 875 - 1)
            .does("")
            .wait(secs * 125 + 1)
            .does("evict a");
    }
}

#[test]
fn flow_control_holds_every_pod() {
    let settings = Settings {
        max_in_flight: 1,
        ..Settings::default()
    };
    let mut host = Host::new(Request {
        settings,
        ..request()
    });
    host.begin(&[pod("a"), pod("b")])
        .written("cordon")
        .does("evict a");
    let throttled = EvictAnswer::Throttled {
        message: message(),
        retry_after: Some(Duration::from_secs(3)),
    };
    host.answer("evict a", evict(throttled))
        .does("")
        .waits("ns/a Throttled\nns/b Throttled");
    host.wait(2_999).does("").wait(1).does("evict a");
}

#[test]
fn a_pod_that_is_not_found_is_listed_and_not_asked_again() {
    for answer in [
        EvictAnswer::NotFound,
        EvictAnswer::UidMismatch { message: message() },
    ] {
        let mut host = asking(&[pod("a")]);
        host.answer("evict a", evict(answer))
            .does("")
            .waits("ns/a UidDisproved");
        host.wait(1_000).does("list-pods").listed(&[]).does("list-pods");
        host.listed(&[]).written("save").ends(&Outcome::Drained);
    }
}

#[test]
fn a_uid_that_was_disproved_is_never_asked_again() {
    let mut host = asking(&[pod("a")]);
    host.answer("evict a", evict(EvictAnswer::UidMismatch { message: message() }));
    for _ in 0..20 {
        host.wait(60_000).does("list-pods").listed(&[pod("a")]);
    }
}

#[test]
fn silence_after_an_accepted_eviction_makes_it_list_the_pods() {
    let mut host = asking(&[pod("a")]);
    host.accepted("evict a")
        .wait(29_999)
        .does("")
        .wait(1)
        .does("list-pods");
    host.listed(&[ending(pod("a"))]).wait(3_600_000).does("");
    host.waits("ns/a TerminatingPastGrace");
}

#[test]
fn an_accepted_eviction_without_effect_is_asked_again() {
    let mut host = asking(&[pod("a")]);
    host.accepted("evict a")
        .wait(30_000)
        .listed(&[pod("a")])
        .wait(5_000)
        .does("evict a");
}

#[test]
fn a_terminating_namespace_is_waited_for() {
    let mut host = asking(&[pod("a")]);
    host.answer(
        "evict a",
        evict(EvictAnswer::NamespaceTerminating { message: message() }),
    );
    host.waits("ns/a NamespaceTerminating")
        .wait(29_999)
        .does("")
        .wait(1)
        .does("list-pods");
    host.listed(&[pod("a")])
        .wait(30_000)
        .does("list-pods")
        .listed(&[]);
    host.does("list-pods")
        .listed(&[])
        .written("save")
        .ends(&Outcome::Drained);
}

#[test]
fn a_terminating_pod_is_waited_for_and_a_finished_one_removed() {
    let finished = Pod {
        phase: PodPhase::Failed,
        ..pod("finished")
    };
    let mut host = asking(&[ending(pod("ending")), finished]);
    host.does("evict finished")
        .waits("ns/ending Terminating\nns/finished EvictionRequested");
    host.gone(&["finished", "ending"]).does("list-pods");
}

#[test]
fn a_pod_that_ends_by_itself_is_removed_when_it_has_finished() {
    let mut host = Host::new(Request {
        policies: vec![planner("jobs")],
        ..request()
    });
    host.begin(&[pod("job")]).planned("jobs", |plan| {
        plan.decisions[0].verdict = Verdict::AwaitCompletion
    });
    host.written("cordon")
        .wait(3_600_000)
        .does("")
        .waits("ns/job AwaitingCompletion");
    host.handle(Event::PodApplied(Pod {
        phase: PodPhase::Succeeded,
        ..pod("job")
    }))
    .does("evict job");
}

#[test]
fn a_deleting_verdict_asks_for_deletion_with_the_shorter_grace() {
    let settings = Settings {
        grace_seconds: Some(20),
        ..Settings::default()
    };
    let mut host = Host::new(Request {
        policies: vec![planner("p")],
        settings,
        ..request()
    });
    host.begin(&[pod("a"), pod("b")]).planned("p", |plan| {
        plan.decisions[0].verdict = Verdict::Delete;
        plan.waves[0].max_grace_seconds = Some(10);
    });
    host.written("cordon").does("delete a grace 10\nevict b grace 10");
}

#[test]
fn deleted_pods_are_reported_and_counted_apart() {
    let mut host = Host::new(Request {
        policies: vec![planner("p")],
        ..request()
    });
    host.begin(&[pod("a"), pod("b"), pod("c")]).planned("p", |plan| {
        plan.decisions[0].verdict = Verdict::Delete;
        plan.decisions[1].verdict = Verdict::Delete;
    });
    host.written("cordon")
        .does("delete a\ndelete b\nevict c")
        .accepted("delete a");
    assert!(host.notices().contains("a is deleted"));
    let denied = EvictAnswer::Refused {
        code: 500,
        message: "no".to_owned(),
        retry_after: None,
    };
    // It ended by itself.
    host.answer("delete b", evict(denied)).gone(&["a", "b"]);
    host.accepted("evict c");
    assert!(host.notices().contains("c leaves"));
    host.gone(&["c"]).listed(&[]).written("save");
    let summary = host.summary();
    assert_eq!((summary.totals.gone, summary.totals.deleted), (3, 1));
    assert_eq!((summary.totals.evictions, summary.totals.deletions), (3, 2));
}

#[test]
fn grace_is_the_pods_own_unless_the_settings_override_it() {
    for (cap, settings, expected) in [
        (None, None, "evict a"),
        (Some(10), None, "evict a grace 10"),
        (Some(300), None, "evict a"),
        (None, Some(0), "evict a grace 0"),
        (Some(10), Some(5), "evict a grace 5"),
        (Some(10), Some(300), "evict a grace 10"),
    ] {
        let settings = Settings {
            grace_seconds: settings,
            ..Settings::default()
        };
        let mut host = Host::new(Request {
            policies: vec![planner("p")],
            settings,
            ..request()
        });
        host.begin(&[pod("a")])
            .planned("p", |plan| plan.waves[0].max_grace_seconds = cap);
        host.written("cordon").does(expected);
    }
}

/// A planner may let a pod be evicted that the draft refuses. It still has its own grace period.
#[test]
fn a_grace_period_that_may_only_lengthen_shortens_none() {
    for (seconds, expected) in [(0, "evict a"), (300, "evict a grace 300")] {
        let settings = Settings {
            grace_seconds: Some(seconds),
            grace_only_longer: true,
            ..Settings::default()
        };
        let mut host = Host::new(Request {
            policies: vec![planner("p")],
            settings,
            ..request()
        });
        host.begin(&[pod("a")]).planned("p", |plan| {
            plan.decisions[0].verdict = Verdict::Evict;
            plan.waves = vec![scupper_engine::Wave {
                name: "all".to_owned(),
                pods: vec![pod("a").id.uid],
                max_parallel: None,
                timeout: None,
                max_grace_seconds: None,
                policy: "p".to_owned(),
            }];
        });
        host.written("cordon").does(expected);
    }
}

#[test]
fn no_more_than_max_in_flight_are_unanswered() {
    let settings = Settings {
        max_in_flight: 2,
        ..Settings::default()
    };
    let mut host = Host::new(Request {
        settings,
        ..request()
    });
    host.begin(&[pod("a"), pod("b"), pod("c")])
        .written("cordon")
        .does("evict a\nevict b");
    host.waits("ns/a EvictionRequested\nns/b EvictionRequested\nns/c ParallelLimit");
    host.accepted("evict a").does("evict c");
}

/// The settings' limit holds, however much the server allows; at least one eviction is always allowed.
#[test]
fn no_more_are_unanswered_than_the_server_bears() {
    let settings = Settings {
        max_in_flight: 3,
        ..Settings::default()
    };
    let mut host = Host::new(Request {
        settings,
        ..request()
    });
    host.handle(Event::EvictionLimit(0));
    host.begin(&[pod("a"), pod("b"), pod("c"), pod("d"), pod("e")])
        .written("cordon")
        .does("evict a");
    host.waits(
        "ns/a EvictionRequested\nns/b ParallelLimit\nns/c ParallelLimit\nns/d ParallelLimit\nns/e ParallelLimit",
    );
    host.handle(Event::EvictionLimit(2)).does("evict b");
    host.handle(Event::EvictionLimit(100)).does("evict c");
    // Fewer: requested evictions stay in flight, and no other starts until they are answered.
    host.handle(Event::EvictionLimit(1)).does("");
    host.accepted("evict a").accepted("evict b").does("");
    host.accepted("evict c").does("evict d");
}

#[test]
fn a_task_that_was_not_taken_is_withdrawn() {
    let lifted = Node {
        resource_version: "150".to_owned(),
        ..node()
    };
    let rows = [
        Event::Pause,
        Event::Node(Some(lifted)),
        Event::PodDeleted(pod("a").id.uid),
        Event::PodApplied(ending(pod("a"))),
    ];
    for event in rows {
        let mut host = asking(&[pod("a"), pod("stays")]);
        host.handle(event.clone());
        let mut evicted = Vec::new();
        while let Some(command) = host.next_command() {
            evicted.extend(command.task.removes().map(|pod| pod.name.clone()));
        }
        assert!(!evicted.contains(&"a".to_owned()), "{event:?}");
    }
}

#[test]
fn a_pod_that_becomes_a_mirror_or_is_kept_is_never_evicted() {
    let mut mirror = pod("mirror");
    mirror
        .annotations
        .insert(MIRROR_ANNOTATION.to_owned(), String::new());
    let mut elsewhere = pod("elsewhere");
    elsewhere.node = "node-2".to_owned();
    asking(&[mirror, elsewhere]).does("list-pods");
}

#[test]
fn a_pod_of_the_same_name_is_another_pod() {
    let mut host = asking(&[pod("a")]);
    host.accepted("evict a");
    let mut again = pod("a");
    again.id.uid = scupper_engine::Uid::new("a-again");
    again.created = Time::from_millis(1);
    host.handle(Event::PodApplied(again))
        .reports_last("a-again waits: NotPlanned");
    host.wait(1_000).does("evict a-again\nsave evicting, ours");
}
