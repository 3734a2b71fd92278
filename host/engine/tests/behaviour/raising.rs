//! Deployments whose pods a budget never lets go get one replica more, which is taken back whatever happens.

use crate::harness::{Host, budget, hooks, planner, pod};
use crate::surge::{HOST, cordoned, surge, surging_by, web};
use scupper_engine::{
    Answer, Checkpoint, Event, HookPhase, Intent, Node, Outcome, Plan, Raised, Request, StepOutcome,
    SurgeMethod,
};

const RAISE: &str = "raise Deployment ns/web for node-1/node-uid/event-uid";
const TAKE_BACK: &str = "take-back Deployment ns/web for node-1/node-uid/event-uid";

pub(crate) fn raising() -> Request {
    surging_by(SurgeMethod::Scale)
}

pub(crate) fn raise(plan: &mut Plan, names: &[&str]) {
    plan.surge.method = SurgeMethod::Scale;
    surge(plan, names);
}

/// A drain of `a` under a budget that has no room, whose checkpoint names the raise.
pub(crate) fn named() -> Host {
    let mut host = Host::new(raising());
    host.begin_with(cordoned(), &[pod("a")], &[budget(0)]);
    host.planned(HOST, |plan| raise(plan, &["a"])).written("save");
    host.does("save evicting, not ours").written("save");
    host.notices();
    host
}

/// The Deployment is raised.
pub(crate) fn raised() -> Host {
    let mut host = named();
    host.does(RAISE).written("raise");
    host.notices();
    host
}

fn saved(host: &mut Host) -> Vec<Raised> {
    host.last_checkpoint().raised
}

pub(crate) fn ours() -> Vec<Raised> {
    vec![Raised {
        deployment: web(),
        drain: "node-1/node-uid/event-uid".to_owned(),
        pods: [pod("a").id.uid].into(),
    }]
}

/// Another process on a node with these pods, after this checkpoint.
pub(crate) fn resumed(checkpoint: Checkpoint, pods: &[&str]) -> Host {
    let mut host = Host::resume(raising(), checkpoint.clone());
    let node = Node {
        checkpoint: Some(checkpoint),
        ..cordoned()
    };
    let pods: Vec<_> = pods.iter().map(|name| pod(name)).collect();
    host.begin_with(node, &pods, &[budget(0)]);
    host
}

#[test]
fn the_checkpoint_names_a_deployment_before_it_is_raised_and_until_it_is_taken_back() {
    let mut host = named();
    assert_eq!(saved(&mut host), ours());
    host.does(RAISE).waits("ns/a Surging");
    host.written("raise")
        .does("")
        .reports("Deployment ns/web raised, waits 2m00s");
    host.handle(Event::BudgetApplied(budget(1))).does("evict a");
    host.accepted("evict").does("");
    host.gone(&["a"]);
    assert!(host.asks("take-back") && host.asks("list-pods"));
    host.notices();
    host.written("take-back").reports("Deployment ns/web taken back");
    host.written("save");
    assert_eq!(saved(&mut host), []);
}

#[test]
fn its_hooks_begin_once_the_budget_has_room_and_other_pods_of_its_wave_leave_meanwhile() {
    let mut host = Host::new(Request {
        policies: vec![hooks("db", &[HookPhase::BeforeEvict]), planner(HOST)],
        ..raising()
    });
    let mut other = pod("b");
    other.labels.clear();
    host.begin_with(cordoned(), &[pod("a"), other], &[budget(0)]);
    host.planned(HOST, |plan| {
        raise(plan, &["a"]);
        plan.waves[0].max_parallel = Some(2);
    });
    host.written("save").written("save");
    assert!(host.asks("raise") && host.asks("step db before-evict pod b"));
    host.written("raise");
    assert!(!host.asks("step db before-evict pod a"));
    host.stepped("step db before-evict pod b", StepOutcome::Done)
        .written("save")
        .accepted("evict");
    host.gone(&["b"]).handle(Event::BudgetApplied(budget(1)));
    assert!(host.asks("step db before-evict pod a"));
}

#[test]
fn a_drain_that_is_stopped_takes_the_replica_back_before_it_removes_its_checkpoint() {
    let cancel = Event::Cancel {
        reason: "enough".to_owned(),
    };
    let mut host = raised();
    host.handle(cancel.clone()).does(TAKE_BACK);
    host.written("take-back").does("forget");
    host.written("forget").ends(&Outcome::Cancelled {
        reason: "enough".to_owned(),
    });
    // Whether it was raised is not known.
    let mut host = named();
    host.skip().handle(cancel);
    assert!(!host.asks("take-back"), "one write at a time");
    host.answer("raise", unavailable()).does(TAKE_BACK);
    host.notices();
    host.written("take-back").does("forget").reports("");
}

fn unavailable() -> Answer {
    Answer::Unavailable {
        message: "no answer".to_owned(),
    }
}

#[test]
fn a_raise_that_finds_no_place_in_time_is_taken_back_and_the_budget_holds_the_pod_as_before() {
    let mut host = raised();
    host.wait(119_000).waits("ns/a Surging");
    assert!(!host.asks("take-back"));
    host.wait(1_000).written("take-back");
    let notices = host.notices();
    let gave_up = "Deployment ns/web gave up: no replacement was ready within 2m00s\n";
    assert!(
        notices.contains(gave_up) && notices.contains("Deployment ns/web taken back\n"),
        "{notices}"
    );
    host.waits("ns/a BudgetExhausted");
    assert!(!host.asks("raise"));
}

#[test]
fn a_raise_that_is_refused_needs_no_take_back() {
    let mut host = named();
    let message = "denied by a webhook".to_owned();
    host.answer("raise", Answer::Rejected { message });
    assert!(!host.asks("take-back"));
    host.written("save").waits("ns/a BudgetExhausted");
    assert_eq!(saved(&mut host), []);
}

#[test]
fn a_take_back_is_tried_again_until_the_end_and_what_remains_is_reported() {
    let mut host = raised();
    host.handle(Event::Cancel {
        reason: "enough".to_owned(),
    });
    for _ in 0..60 {
        if host.asks("take-back") {
            host.answer("take-back", unavailable());
        }
        if host.asks("forget") {
            break;
        }
        host.wait(5_000);
    }
    let notices = host.notices();
    assert!(
        notices.contains("Deployment ns/web left raised: no answer\n"),
        "{notices}"
    );
    host.written("forget").ends(&Outcome::Cancelled {
        reason: "enough".to_owned(),
    });
}

#[test]
fn replicas_that_another_client_has_set_are_left() {
    let mut host = raised();
    host.gone(&["a"]);
    let message = "another client has set its replicas to 7".to_owned();
    host.notices();
    host.answer("take-back", Answer::Rejected { message })
        .reports("Deployment ns/web left raised: another client has set its replicas to 7");
    assert!(!host.asks("take-back"));
}

#[test]
fn another_process_takes_back_what_the_checkpoint_names_once_its_pods_are_gone() {
    let checkpoint = raised().last_checkpoint();
    let mut host = resumed(checkpoint.clone(), &["a"]);
    host.planned(HOST, |plan| plan.surge.method = SurgeMethod::Scale);
    host.waits("ns/a Surging");
    assert!(!host.asks("take-back"));
    host.handle(Event::BudgetApplied(budget(1)));
    host.accepted("evict").gone(&["a"]);
    assert!(host.asks(TAKE_BACK));

    let mut host = resumed(checkpoint.clone(), &[]);
    assert!(!host.asks(TAKE_BACK), "its pods may have come back");
    host.planned(HOST, |_| {});
    assert!(host.asks(TAKE_BACK));
    host.written("take-back");

    // It was cancelled meanwhile.
    let mut host = resumed(checkpoint.clone(), &["a"]);
    host.handle(Event::Cancel {
        reason: "enough".to_owned(),
    });
    assert!(host.asks(TAKE_BACK));

    // The pod finds no place; the time counts anew.
    let mut host = resumed(checkpoint, &["a"]);
    host.planned(HOST, |plan| plan.surge.method = SurgeMethod::Scale);
    host.wait(120_000);
    assert!(host.asks(TAKE_BACK));
}

#[test]
fn a_new_drain_takes_back_what_a_dead_one_has_raised() {
    let checkpoint = Checkpoint {
        id: "other".to_owned(),
        raised: vec![Raised {
            drain: "other".to_owned(),
            ..ours().remove(0)
        }],
        ..raised().last_checkpoint()
    };
    let mut host = Host::new(raising());
    let node = Node {
        checkpoint: Some(checkpoint),
        ..cordoned()
    };
    host.begin_with(node, &[pod("a")], &[budget(0)]);
    assert!(host.asks("take-back Deployment ns/web for other"));
}

/// A process that is killed after it has lifted the cordon leaves the checkpoint, which names the replica.
#[test]
fn an_uncordon_keeps_the_checkpoint_until_the_replica_is_taken_back() {
    let checkpoint = Checkpoint {
        own_cordon: true,
        ..raised().last_checkpoint()
    };
    let mut host = Host::new(Request {
        id: "uncordon-uid".to_owned(),
        intent: Intent::Uncordon,
        ..raising()
    });
    let node = Node {
        checkpoint: Some(checkpoint),
        ..cordoned()
    };
    host.begin_with(node, &[], &[]);
    host.answer("take-back", unavailable());
    assert!(host.asks("uncordon at 100, keeps the checkpoint"));
    host.written("uncordon");
    assert_eq!(saved(&mut host), ours());
    assert!(!host.asks("forget"));
    host.wait(60_000);
    host.written("take-back");
    assert!(host.asks("forget"));
}

#[test]
fn a_driver_that_stops_leaves_the_take_back_to_the_next_one() {
    let mut host = raised();
    host.handle(Event::Pause);
    host.gone(&["a"]);
    assert!(!host.asks("take-back"));
}
