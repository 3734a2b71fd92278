//! Deployments whose pods a budget never lets go are restarted, so that a rollout replaces them.

use std::time::Duration;

use crate::harness::{Host, budget, ending, hooks, node, planner, pod, request};
use scupper_engine::{
    Answer, DeploymentRef, Event, EvictAnswer, HookPhase, Node, Outcome, Plan, PodRef, Reason, Request,
    Settings, StepOutcome, Surge, SurgeMethod, SurgeSettings, Uid,
};

/// The host's planner.
pub(crate) const HOST: &str = "pre-flight";

/// A drain that may surge, in every namespace.
pub(crate) fn surging_by(method: SurgeMethod) -> Request {
    Request {
        settings: Settings {
            surge: Some(SurgeSettings {
                method,
                namespaces: [].into(),
                timeout: Duration::from_secs(120),
            }),
            ..Settings::default()
        },
        policies: vec![planner(HOST)],
        ..request()
    }
}

fn surging() -> Request {
    surging_by(SurgeMethod::Restart)
}

pub(crate) fn cordoned() -> Node {
    Node {
        unschedulable: true,
        ..node()
    }
}

pub(crate) fn web() -> DeploymentRef {
    DeploymentRef {
        namespace: "ns".to_owned(),
        name: "web".to_owned(),
        uid: Uid::new("web"),
    }
}

/// Plans the surge of the Deployment of these pods.
pub(crate) fn surge(plan: &mut Plan, names: &[&str]) {
    plan.surge.surges = vec![Surge {
        deployment: web(),
        replicas: Some(1),
        budget: "pdb".to_owned(),
        pods: names.iter().map(|name| pod(name).id).collect::<Vec<PodRef>>(),
    }];
}

/// A drain of `a` under a budget that has no room, about to evict.
pub(crate) fn held(request: Request) -> Host {
    let mut host = Host::new(request);
    host.begin_with(cordoned(), &[pod("a")], &[budget(0)]);
    host.planned(HOST, |plan| surge(plan, &["a"])).written("save");
    host.notices();
    host
}

fn refused(code: Answer) -> Host {
    let mut host = held(surging());
    host.answer("surge", code);
    host
}

fn exhausted() -> Answer {
    Answer::Evict(EvictAnswer::BudgetExhausted {
        budget: "pdb".to_owned(),
        message: String::new(),
    })
}

pub(crate) fn forbidden() -> Answer {
    Answer::Forbidden {
        message: "no right".to_owned(),
    }
}

#[test]
fn a_deployment_is_restarted_instead_of_the_first_eviction_and_its_pod_leaves_by_the_rollout() {
    let mut host = held(surging());
    host.does("surge Deployment ns/web for node-1/node-uid/event-uid")
        .waits("ns/a Surging");
    let reason = host.drain.waiting().pop().map(|(_, reason)| reason);
    let wanted = Reason::Surging {
        workload: "Deployment ns/web".to_owned(),
        method: SurgeMethod::Restart,
    };
    assert_eq!(reason, Some(wanted));
    host.written("surge")
        .does("")
        .reports("Deployment ns/web restarted, waits 2m00s")
        .waits("ns/a Surging");
    // The ReplicaSet's controller deletes it.
    host.handle(Event::PodApplied(ending(pod("a"))))
        .waits("ns/a Terminating")
        .gone(&["a"])
        .does("list-pods");
    host.listed(&[]).written("forget");
    let summary = host.summary();
    assert_eq!((summary.totals.gone, summary.totals.evictions), (1, 0));
}

#[test]
fn once_the_budget_has_room_the_pod_is_evicted() {
    let mut host = held(surging());
    host.written("surge");
    host.notices();
    host.handle(Event::BudgetApplied(budget(1))).does("evict a");
    // The rollout was faster.
    host.answer("evict", exhausted()).waits("ns/a Surging");
}

#[test]
fn a_budget_that_has_room_is_used_without_a_restart() {
    let mut host = Host::new(surging());
    host.begin_with(cordoned(), &[pod("a")], &[budget(1)]);
    host.planned(HOST, |plan| surge(plan, &["a"])).written("save");
    host.does("evict a");
}

#[test]
fn all_hooks_of_its_pods_come_first() {
    let phases = [
        HookPhase::BeforeDrain,
        HookPhase::BeforeWave,
        HookPhase::BeforeEvict,
    ];
    let mut host = Host::new(Request {
        policies: vec![hooks("db", &phases), planner(HOST)],
        ..surging()
    });
    host.begin_with(cordoned(), &[pod("a"), pod("b")], &[budget(0)]);
    host.planned(HOST, |plan| surge(plan, &["a", "b"]))
        .written("save");
    host.stepped("step db before-drain", StepOutcome::Done)
        .written("save");
    host.stepped("step db before-wave", StepOutcome::Done)
        .written("save");
    host.stepped("step db before-evict pod a", StepOutcome::Done)
        .written("save")
        .does("")
        .waits("ns/a HookRunning\nns/b HookRunning");
    host.stepped("step db before-evict pod b", StepOutcome::Done)
        .written("save")
        .does("surge Deployment ns/web for node-1/node-uid/event-uid");
}

#[test]
fn a_restart_that_finds_no_place_is_given_up_and_the_budget_holds_the_pod_as_before() {
    let mut host = held(surging());
    host.written("surge");
    host.notices();
    host.wait(119_000)
        .waits("ns/a Surging")
        .reports("")
        .wait(1_000)
        .reports(
            "Deployment ns/web gave up: no replacement was ready within 2m00s
             a waits: BudgetExhausted",
        )
        .waits("ns/a BudgetExhausted");
    assert!(!host.asks("surge"), "it is not restarted again");
}

#[test]
fn what_can_pass_is_tried_again() {
    for answer in [
        Answer::Unavailable {
            message: "a rollout is under way".to_owned(),
        },
        Answer::WriteConflict,
        forbidden(),
    ] {
        let mut host = refused(answer);
        host.does("").waits("ns/a Surging");
        host.wait(1_000)
            .does("surge Deployment ns/web for node-1/node-uid/event-uid");
        host.written("surge");
        assert!(host.notices().ends_with("restarted, waits 1m59s\n"));
    }
}

#[test]
fn what_cannot_pass_is_reported_and_the_budget_holds_the_pod_as_before() {
    for (answer, reason) in [
        (
            Answer::Rejected {
                message: "denied by a webhook".to_owned(),
            },
            "denied by a webhook",
        ),
        (Answer::NodeGone, "it was deleted or made anew"),
    ] {
        let mut host = refused(answer);
        host.does("").waits("ns/a BudgetExhausted");
        let notices = host.notices();
        let wanted = format!("Deployment ns/web gave up: {reason}\n");
        assert!(notices.contains(&wanted), "{notices}");
        host.wait(60_000);
        assert!(!host.asks("surge"));
    }
}

#[test]
fn refused_rights_are_final_after_the_usual_patience() {
    let mut request = surging();
    request.settings.forbidden_timeout = Duration::from_secs(20);
    let mut host = held(request);
    for _ in 0..10 {
        if host.asks("surge") {
            host.answer("surge", forbidden());
        }
        if host.asks("evict") {
            host.answer("evict", exhausted());
        }
        host.wait(5_000);
    }
    assert!(!host.asks("surge"));
    host.waits("ns/a BudgetExhausted");
    let notices = host.notices();
    assert!(
        notices.contains("Deployment ns/web gave up: no right\n"),
        "{notices}"
    );
}

#[test]
fn an_api_server_that_does_not_answer_is_given_up() {
    let mut host = held(surging());
    host.skip().wait(120_000);
    let notices = host.notices();
    let wanted = "Deployment ns/web gave up: the API server has not answered for 2m00s\n";
    assert!(notices.contains(wanted), "{notices}");
    // The late answer changes nothing.
    host.written("surge").reports("");
    host.answer("evict", exhausted()).waits("ns/a BudgetExhausted");
}

/// Beside the Deployment's pods `a` and `b` the node has `c`, which no budget covers.
fn beside_another_pod() -> Host {
    let mut host = Host::new(surging());
    let mut other = pod("c");
    other.labels.clear();
    host.begin_with(cordoned(), &[pod("a"), pod("b"), other], &[budget(0)]);
    host
}

#[test]
fn a_restart_waits_for_room_in_the_wave() {
    let mut host = beside_another_pod();
    host.planned(HOST, |plan| {
        surge(plan, &["a", "b"]);
        plan.waves[0].max_parallel = Some(2);
        plan.waves[0].pods.sort_by(|one, other| other.cmp(one));
    })
    .written("save");
    host.does("evict c").accepted("evict").does("");
    host.gone(&["c"])
        .does("surge Deployment ns/web for node-1/node-uid/event-uid");
}

#[test]
fn all_pods_of_a_restart_take_places_in_the_wave() {
    let mut host = beside_another_pod();
    host.planned(HOST, |plan| {
        surge(plan, &["a", "b"]);
        plan.waves[0].max_parallel = Some(2);
    })
    .written("save");
    host.does("surge Deployment ns/web for node-1/node-uid/event-uid")
        .waits("ns/a Surging\nns/b Surging\nns/c ParallelLimit");
    host.written("surge").gone(&["a"]).does("evict c");
}

#[test]
fn nothing_is_restarted_after_a_cancel_or_on_a_node_that_is_not_cordoned() {
    let mut host = held(surging());
    host.handle(Event::Node(Some(Node {
        resource_version: "200".to_owned(),
        ..node()
    })));
    host.does("save evicting, not ours");
    let mut host = held(surging());
    host.handle(Event::Cancel {
        reason: "enough".to_owned(),
    });
    assert!(!host.asks("surge"));
    host.written("forget").ends(&Outcome::Cancelled {
        reason: "enough".to_owned(),
    });
}

#[test]
fn a_drain_that_continues_restarts_again_which_the_cluster_recognizes() {
    let mut host = held(surging());
    host.written("surge");
    let checkpoint = host.last_checkpoint();
    let mut host = Host::resume(surging(), checkpoint.clone());
    let node = Node {
        checkpoint: Some(checkpoint),
        ..cordoned()
    };
    host.begin_with(node, &[pod("a")], &[budget(0)]);
    host.planned(HOST, |plan| surge(plan, &["a"]));
    host.does("surge Deployment ns/web for node-1/node-uid/event-uid");
}
