//! Pods that may not leave once the drain has begun: why, and when they are planned again.

use std::collections::BTreeSet;

use scupper_engine::{Event, Outcome, Plan, Pod, PodPhase, Request, Uid, Verdict};

use crate::harness::{Host, ending, planner, pod, request};

/// A drain with the policy `gpu`, whose plan names no pod.
fn draining() -> Host {
    let mut host = Host::new(Request {
        policies: vec![planner("gpu")],
        ..request()
    });
    host.begin(&[]).planned("gpu", |_| {}).written("cordon").skip();
    host
}

/// The policy gives this pod this verdict.
fn decide(plan: &mut Plan, uid: &str, verdict: Verdict, reason: &str) {
    let uid = Uid::new(uid);
    for decision in plan.decisions.iter_mut().filter(|decision| decision.pod == uid) {
        decision.verdict = verdict;
        decision.reason = reason.to_owned();
    }
    if !verdict.leaves() {
        for wave in &mut plan.waves {
            wave.pods.retain(|other| *other != uid);
        }
    }
}

fn refuse(plan: &mut Plan) {
    decide(plan, "n", Verdict::Refuse, "its annotations name no GPU");
}

fn annotated(with: &str) -> Pod {
    Pod {
        annotations: [("gpu".to_owned(), with.to_owned())].into(),
        ..pod("n")
    }
}

/// The device plugin names a pod's devices some time after the pod has started.
#[test]
fn a_newcomer_that_a_policy_refuses_is_planned_again_when_it_changes() {
    let mut host = draining();
    host.handle(Event::PodApplied(pod("n")))
        .wait(1_000)
        .planned("gpu", refuse)
        .waits("ns/n Refused");
    let (_, reason) = host.drain.waiting().remove(0);
    let why = "policy gpu does not allow its eviction: its annotations name no GPU";
    assert_eq!(reason.to_string(), why);
    host.handle(Event::PodApplied(pod("n"))).wait(60_000).does("");
    host.handle(Event::PodApplied(annotated("3")))
        .wait(999)
        .does("")
        .waits("ns/n Refused");
    host.wait(1).does("plan gpu").planned("gpu", |plan| {
        decide(plan, "n", Verdict::Keep, "it has another GPU");
    });
    host.does("").waits("ns/n Kept");
    host.handle(Event::PodApplied(annotated("4"))).wait(1_000);
    assert!(!host.asks("plan gpu"), "a verdict that lets it stay is final");
    host.listed(&[annotated("4")])
        .listed(&[annotated("4")])
        .written("save finished")
        .ends(&Outcome::Drained);
}

#[test]
fn one_that_changes_all_the_time_is_planned_again_ever_more_rarely() {
    let mut host = draining();
    host.handle(Event::PodApplied(pod("n")))
        .wait(1_000)
        .planned("gpu", refuse);
    let mut asked = 0;
    for second in 0..300 {
        host.handle(Event::PodApplied(annotated(&second.to_string())))
            .wait(1_000);
        if host.asks("plan gpu") {
            host.planned("gpu", refuse);
            asked += 1;
        }
    }
    assert!((5..=10).contains(&asked), "{asked} times in five minutes");
    host.handle(Event::PodApplied(annotated("last")))
        .wait(60_000)
        .planned("gpu", |_| {})
        .does("evict n");
    let plans = host.notices();
    assert_eq!(plans.matches("n waits: Refused").count(), 1, "{plans}");
}

/// `kubectl drain` takes such a pod without any flag.
#[test]
fn a_pod_without_a_controller_leaves_once_it_has_finished() {
    let bare = Pod {
        controller: None,
        ..pod("bare")
    };
    let mut host = Host::new(request());
    host.begin(&[]).written("cordon").skip();
    host.handle(Event::PodApplied(bare.clone()))
        .wait(1_000)
        .waits("ns/bare Refused");
    let finished = Pod {
        phase: PodPhase::Succeeded,
        ..bare.clone()
    };
    host.handle(Event::PodApplied(finished))
        .wait(1_000)
        .does("evict bare");
    // One that is deleted says so.
    let mut host = Host::new(request());
    host.begin(&[]).written("cordon").skip();
    host.handle(Event::PodApplied(bare.clone()))
        .wait(1_000)
        .handle(Event::PodApplied(ending(bare)))
        .waits("ns/bare Terminating");
}

/// A plan names each pod once.
#[test]
fn a_pod_that_is_planned_again_has_one_decision() {
    let mut host = draining();
    host.handle(Event::PodApplied(pod("n")))
        .wait(1_000)
        .planned("gpu", refuse);
    host.handle(Event::PodApplied(annotated("3")))
        .wait(1_000)
        .planned("gpu", |_| {})
        .does("evict n");
    let mut plans = Vec::new();
    while let Some(notice) = host.next_notice() {
        if let scupper_engine::Notice::Planned(plan) = notice {
            plans.push(plan);
        }
    }
    let last = plans.last().unwrap();
    let pods: BTreeSet<_> = last.decisions.iter().map(|decision| &decision.pod).collect();
    assert_eq!((pods.len(), last.decisions.len()), (1, 1), "{last:?}");
    assert_eq!(last.decisions[0].verdict, Verdict::Evict);
}
