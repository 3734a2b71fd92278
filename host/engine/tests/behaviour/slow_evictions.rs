//! Force at the deadline while evictions hang, as behind a webhook that does not answer.

use std::time::Duration;

use crate::harness::{Host, START, budget, hooks, node, pod, request};
use scupper_engine::{
    Answer, Deletion, Event, EvictAnswer, ForceAtDeadline, ForcedPods, HookPhase, Node, Pod, Request,
    Settings, StepOutcome,
};

const GRACE: u64 = 20;

/// A drain with a deadline in three minutes, which deletes every pod from one minute before that.
fn forcing() -> Request {
    Request {
        deadline: Some(START + Duration::from_secs(180)),
        settings: Settings {
            at_deadline: Some(ForceAtDeadline {
                pods: ForcedPods::default(),
                grace_seconds: GRACE,
                within: Duration::from_secs(60),
            }),
            ..Settings::default()
        },
        ..request()
    }
}

/// A drain of these pods, whose evictions have begun.
fn evicting(request: Request, pods: &[Pod], limit: usize) -> Host {
    let cordoned = Node {
        unschedulable: true,
        ..node()
    };
    let mut host = Host::new(request);
    host.handle(Event::EvictionLimit(limit));
    host.begin_with(cordoned, pods, &[])
        .written("save holding")
        .written("save evicting");
    host
}

fn pods(count: usize) -> Vec<Pod> {
    (0..count).map(|number| pod(&format!("p{number}"))).collect()
}

fn deletions(names: &[&str], grace: u64) -> String {
    let lines = names.iter().map(|name| format!("delete {name} grace {grace}"));
    lines.collect::<Vec<_>>().join("\n")
}

fn answer(answer: EvictAnswer) -> Answer {
    Answer::Evict(answer)
}

fn failed() -> Answer {
    answer(EvictAnswer::Refused {
        code: 500,
        message: "failed calling webhook".to_owned(),
        retry_after: None,
    })
}

fn throttled(secs: u64) -> Answer {
    answer(EvictAnswer::Throttled {
        message: "too many requests".to_owned(),
        retry_after: Some(Duration::from_secs(secs)),
    })
}

/// Advances to this second; the webhook ends each eviction ten seconds after it began.
fn slowly_until(host: &mut Host, second: u64) {
    let end = START + Duration::from_secs(second);
    while host.now < end {
        if host.asks("evict") && host.now.since(START).as_secs().is_multiple_of(10) {
            host.answer("evict", failed());
        }
        host.wait(1000);
    }
}

#[test]
fn pods_whose_time_has_come_are_deleted_although_slow_evictions_hold_every_place() {
    let names = ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"];
    let mut host = evicting(forcing(), &pods(8), 1);
    slowly_until(&mut host, 119);
    host.skip();
    assert!(host.asks("evict"), "an eviction holds the only place");
    host.wait(1000).does(&deletions(&names, GRACE));
    // Neither does a later answer bring an eviction about.
    host.answer("evict", failed()).wait(20_000).does("");
}

#[test]
fn no_more_deletions_than_requests_may_be_in_flight_go_out_at_once() {
    let mut request = forcing();
    request.settings.max_in_flight = 2;
    let mut host = evicting(request, &pods(3), 1);
    host.wait(119_000).skip();
    host.wait(1000).does(&deletions(&["p0", "p1"], GRACE));
    host.waits("ns/p0 EvictionRequested\nns/p1 EvictionRequested\nns/p2 ParallelLimit");
    host.accepted("delete p0").does(&deletions(&["p2"], GRACE));
}

#[test]
fn the_answer_to_an_eviction_that_a_deletion_has_overtaken_changes_nothing() {
    let exhausted = answer(EvictAnswer::BudgetExhausted {
        budget: "pdb".to_owned(),
        message: String::new(),
    });
    let accepted = answer(EvictAnswer::Accepted);
    let gone = answer(EvictAnswer::NotFound);
    for late in [exhausted, accepted, gone, failed(), throttled(300)] {
        let mut host = evicting(forcing(), &pods(1), 8);
        host.wait(120_000).does(&deletions(&["p0"], GRACE));
        host.notices();
        // It comes while the deletion is under way, and the deletion is accepted.
        host.answer("evict p0", late.clone()).does("");
        host.accepted("delete p0")
            .reports("p0 forced with 20s: EvictionRequested\np0 waits: Terminating");
        host.gone(&["p0"]).listed(&[]);
        // It comes after the deletion was accepted.
        let mut host = evicting(forcing(), &pods(1), 8);
        host.wait(120_000).skip().accepted("delete p0").notices();
        host.answer("evict p0", late).wait(10_000).does("").reports("");
        host.waits("ns/p0 Terminating");
    }
}

#[test]
fn a_deletion_that_is_refused_is_repeated_while_its_eviction_is_unanswered() {
    let mut host = evicting(forcing(), &pods(1), 8);
    host.wait(120_000).skip().answer("delete p0", failed());
    host.wait(1000).does(&deletions(&["p0"], GRACE));
}

#[test]
fn an_eviction_that_is_accepted_after_its_deletion_was_refused_needs_no_second_deletion() {
    let mut host = evicting(forcing(), &pods(1), 8);
    host.wait(120_000).skip().answer("delete p0", failed()).notices();
    host.answer("evict p0", answer(EvictAnswer::Accepted));
    host.reports("p0 leaves\np0 waits: Terminating");
    host.wait(10_000).does("").waits("ns/p0 Terminating");
}

#[test]
fn a_deadline_that_moves_brings_no_second_eviction_while_the_first_is_unanswered() {
    let later = || Event::Deadline(Some(START + Duration::from_secs(1000)));
    // The deletion is withdrawn before it went out.
    let mut host = evicting(forcing(), &pods(1), 8);
    host.wait(120_000).handle(later()).does("").wait(60_000).does("");
    host.answer("evict p0", failed()).wait(10_000).does("evict p0");
    // It was refused.
    let mut host = evicting(forcing(), &pods(1), 8);
    host.wait(120_000).skip().answer("delete p0", failed());
    host.handle(later()).wait(60_000).does("");
    host.answer("evict p0", failed()).wait(10_000).does("evict p0");
}

#[test]
fn an_eviction_that_has_not_gone_out_is_withdrawn_when_the_time_comes() {
    let mut host = evicting(forcing(), &pods(1), 8);
    host.wait(110_000).answer("evict p0", failed());
    // The next one is due at the same moment as the deletion, or shortly before it.
    host.wait(8_000);
    while host.next_command().is_some() {}
    let mut host = evicting(forcing(), &pods(2), 1);
    host.wait(119_500).answer("evict p0", failed());
    host.wait(500).does(&deletions(&["p0", "p1"], GRACE));
}

#[test]
fn a_long_grace_period_is_shortened_although_its_eviction_is_unanswered() {
    let slow = Pod {
        grace_seconds: 3600,
        ..pod("slow")
    };
    let mut host = evicting(forcing(), std::slice::from_ref(&slow), 8);
    host.handle(Event::PodApplied(Pod {
        deletion: Some(Deletion {
            at: START + Duration::from_secs(3600),
            grace_seconds: 3600,
        }),
        ..slow
    }));
    host.wait(119_000).does("");
    host.wait(1000).does(&deletions(&["slow"], GRACE));
}

#[test]
fn flow_control_delays_a_deletion_only_while_its_whole_grace_period_is_left() {
    let mut host = evicting(forcing(), &pods(2), 8);
    host.wait(119_000).answer("evict p0", throttled(300));
    host.answer("evict p1", throttled(300));
    host.wait(30_000)
        .does("")
        .waits("ns/p0 Throttled\nns/p1 Throttled");
    // 180 seconds without the reserve of 10 and the grace period.
    host.wait(1000).does(&deletions(&["p0", "p1"], GRACE));
    // The API server says so to the deletion itself: there is no time to wait for.
    host.answer("delete p0", throttled(300))
        .answer("delete p1", throttled(300));
    host.wait(2000);
    assert!(host.asks("delete p0") && host.asks("delete p1"));
}

#[test]
fn a_short_wait_of_flow_control_is_kept() {
    let mut host = evicting(forcing(), &pods(1), 8);
    host.wait(119_000).answer("evict p0", throttled(11));
    host.wait(10_000).does("");
    host.wait(1000).does(&deletions(&["p0"], GRACE));
}

#[test]
fn slow_hooks_of_other_pods_do_not_hold_a_deletion_up() {
    let mut request = Request {
        policies: vec![hooks("h", &[HookPhase::BeforeEvict])],
        ..forcing()
    };
    request.settings.max_in_flight = 1;
    if let Some(force) = &mut request.settings.at_deadline {
        force.pods.priority_below = Some(1);
    }
    let important = Pod {
        priority: 1000,
        ..pod("a")
    };
    let mut host = evicting(request, &[important, pod("b")], 8);
    host.wait(119_000).does("");
    host.wait(1000).does("step h before-evict pod b");
    host.stepped("step h before-evict pod b", StepOutcome::Done)
        .written("save")
        .does(&deletions(&["b"], GRACE));
}

#[test]
fn a_drain_that_begins_with_little_time_first_evicts() {
    let mut request = forcing();
    request.deadline = Some(START + Duration::from_secs(50));
    let cordoned = Node {
        unschedulable: true,
        ..node()
    };
    let mut host = Host::new(request.clone());
    host.begin_with(cordoned.clone(), &pods(1), &[budget(0)])
        .written("save holding")
        .does("save evicting, not ours");
    // 50 seconds without the reserve of 10 and the grace period.
    host.wait(19_000).skip().waits("ns/p0 BudgetExhausted");
    assert!(!host.asks("delete"));
    host.wait(1000);
    assert!(host.asks("delete p0 grace 20"));
    // There is not even time for the grace period.
    request.deadline = Some(START + Duration::from_secs(25));
    let mut host = Host::new(request);
    host.begin_with(cordoned, &pods(1), &[budget(0)])
        .written("save holding")
        .does("delete p0 grace 15\nsave evicting, not ours");
}
