//! Reasons, lines and JSON of a node that is stuck in every way that shows.

use std::collections::BTreeMap;

use scupper_engine::{
    Checkpoint, Deletion, HookPhase, Phase, PodPhase, SavedHook, Selector, Subject, Uid, UnhealthyPods,
};

use super::*;

const NOW: Time = Time::from_millis(1_000_000);

fn node(phase: Phase, hooks: Vec<SavedHook>) -> Node {
    let mark = Checkpoint {
        node: None,
        id: "id".into(),
        name: "drain-worker-1".into(),
        trigger: "command".into(),
        phase,
        started: Time::from_millis(700_000),
        deadline: Some(Time::from_millis(1_060_000)),
        own_cordon: true,
        hooks,
        done: Vec::new(),
        inherited: false,
        cancelled: None,
        returns: BTreeMap::new(),
    };
    Node {
        name: "worker-1".into(),
        uid: Uid("n".into()),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        unschedulable: true,
        conditions: Vec::new(),
        checkpoint: Some(mark),
        resource_version: "1".into(),
    }
}

fn pod(name: &str) -> Pod {
    Pod {
        id: PodRef {
            namespace: "shop".into(),
            name: name.into(),
            uid: Uid(name.into()),
        },
        node: "worker-1".into(),
        labels: [("app".to_owned(), name.to_owned())].into(),
        annotations: BTreeMap::new(),
        controller: None,
        phase: PodPhase::Running,
        ready: true,
        conditions: Vec::new(),
        priority: 0,
        priority_class: String::new(),
        grace_seconds: 30,
        created: Time::default(),
        deletion: None,
        finalizers: Vec::new(),
        empty_dir: false,
        host_network: false,
        hostname: String::new(),
    }
}

fn ending(name: &str, at: u64, finalizers: &[&str]) -> Pod {
    let at = Time::from_millis(at);
    Pod {
        deletion: Some(Deletion {
            at,
            grace_seconds: 30,
        }),
        finalizers: finalizers.iter().map(|it| (*it).to_owned()).collect(),
        ..pod(name)
    }
}

fn budget(name: &str, of: &str, allowed: i32, observed: bool) -> Budget {
    Budget {
        namespace: "shop".into(),
        name: name.into(),
        selector: Selector {
            labels: [("app".to_owned(), of.to_owned())].into(),
            ..Selector::default()
        },
        unhealthy_pods: UnhealthyPods::default(),
        disruptions_allowed: allowed,
        current_healthy: 2,
        desired_healthy: 2,
        observed,
    }
}

fn named(status: &NodeStatus) -> Vec<(&str, &str)> {
    let name = |reason: Option<Reason>| reason.map_or("-", |reason| reason.name());
    let reasons = status.reasons(NOW).into_iter();
    reasons
        .map(|(pod, reason)| (pod.name.as_str(), name(reason)))
        .collect()
}

fn stuck() -> NodeStatus {
    NodeStatus {
        node: node(Phase::Evicting, Vec::new()),
        pods: vec![
            pod("calm"),
            pod("cart"),
            pod("db"),
            ending("slow", 1_020_000, &[]),
            ending("stuck", 900_000, &["example.com/hold"]),
            pod("twice"),
        ],
        budgets: vec![
            budget("calm", "calm", 1, true),
            budget("cart", "cart", 0, true),
            budget("db", "db", 0, false),
            budget("one", "twice", 1, true),
            budget("two", "twice", 1, true),
        ],
        wishes: Vec::new(),
    }
}

#[test]
fn what_holds_a_pod_is_told_as_far_as_it_shows() {
    let mut status = stuck();
    let held = [
        ("calm", "-"),
        ("cart", "BudgetExhausted"),
        ("db", "BudgetNotObserved"),
        ("slow", "Terminating"),
        ("stuck", "TerminatingPastGrace"),
        ("twice", "MoreThanOneBudget"),
    ];
    assert_eq!(named(&status), held);
    // Somebody has lifted the cordon: that comes before budgets.
    status.node.unschedulable = false;
    assert_eq!(named(&status)[1], ("cart", "NodeUncordoned"));
    // Without a drain nothing holds a pod but its own end.
    status.node.checkpoint = None;
    assert_eq!(named(&status)[1], ("cart", "-"));
    assert_eq!(named(&status)[4], ("stuck", "TerminatingPastGrace"));
}

#[test]
fn hooks_hold_the_node_or_one_pod() {
    let hook = |subject| SavedHook {
        policy: "slurm".into(),
        phase: HookPhase::BeforeDrain,
        subject,
        state: Vec::new(),
        state_version: None,
        started: Time::from_millis(940_000),
    };
    let mut status = stuck();
    status.node = node(Phase::Holding, vec![hook(Subject::Node)]);
    assert_eq!(named(&status)[0], ("calm", "HookRunning"));
    assert_eq!(named(&status)[3], ("slow", "Terminating"));
    status.node = node(Phase::Evicting, vec![hook(Subject::Pod(Uid("db".into())))]);
    assert_eq!(named(&status)[0], ("calm", "-"));
    assert_eq!(named(&status)[2], ("db", "HookRunning"));
}

#[test]
fn people_read_what_to_do() {
    let mut status = stuck();
    status.wishes = vec![NodeWish {
        name: "drain-worker-1".into(),
        transition: "drain.slm.k8s.io".into(),
        state: "InProgress".into(),
        deadline: Some(Time::from_millis(990_000)),
        deleting: false,
    }];
    let lines = status_lines(&status, NOW);
    let expected = [
        "node worker-1: cordoned by Scupper",
        "  drain      pods leave for command drain-worker-1, begun 5m00s ago, to end within 1m00s",
        "  event      drain-worker-1: InProgress, transition drain.slm.k8s.io, overdue by 10s",
        "  6 pods here:",
        "    shop/calm   -",
        "    shop/cart   BudgetExhausted       disruption budget cart does not allow it: it needs 2 healthy pods and has 2",
        "    shop/db     BudgetNotObserved     its disruption budget is not up to date: db is still being processed",
        "    shop/slow   Terminating           it is ending, 20s of its grace left",
        "    shop/stuck  TerminatingPastGrace  it should have ended; finalizers: example.com/hold, for 1m40s now",
        "    shop/twice  MoreThanOneBudget     two disruption budgets select it: one and two",
    ];
    assert_eq!(lines, expected);
    let json = status_to_json(&status, NOW);
    assert_eq!(json["cordon"], "ours");
    assert_eq!(json["pods"][0]["reason"], Value::Null);
    assert_eq!(json["pods"][1]["reason"], "BudgetExhausted");
    assert_eq!(json["drain"]["phase"], "evicting");
}
