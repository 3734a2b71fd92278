//! `status` without nodes, as text and as JSON.

use scupper_api::{ClaimStatus, LifecycleEvent};
use scupper_engine::{Checkpoint, Condition, HookPhase, Intent, Phase, Subject, Time};

use super::super::drain_status::PodStatus;
use super::super::fixture::{mark, status as bare};
use super::super::{
    DrainStatus, HookStatus, LeaseHolder, LeasedDrain, NodeStatus, NodeSummary, overview_lines,
};
use super::samples::{waiting, waits_for};
use super::{accepted, pretty};

/// Days ago there was a time already.
const NOW: Time = Time::from_millis(1_790_000_000_000);

const fn ago(seconds: u64) -> Time {
    Time::from_millis(NOW.as_millis() - seconds * 1000)
}

/// A node of this name with the mark of a drain that began five minutes ago.
fn node(name: &str, phase: Phase) -> NodeStatus {
    let mut status = bare(Checkpoint {
        started: ago(300),
        ..mark("LifecycleEvent", phase)
    });
    status.node.name = name.to_owned();
    status
}

/// A node without a mark that takes pods.
fn plain(name: &str) -> NodeStatus {
    let mut status = node(name, Phase::Finished);
    status.node.checkpoint = None;
    status.node.unschedulable = false;
    status
}

/// Its drain has ended like this, and the conditions say so.
fn ended(mut status: NodeStatus, reason: &str, message: &str, since: Time) -> NodeStatus {
    status.node.conditions.push(Condition {
        kind: "DrainInProgress".to_owned(),
        status: "False".to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        since: Some(since),
    });
    status
}

fn every_node() -> Vec<NodeStatus> {
    let pods = waiting().into_iter().map(|(pod, reason)| PodStatus {
        uid: pod.uid,
        wave: "web".to_owned(),
        reason,
        since: Some(ago(44)),
    });
    let mut draining = node("draining", Phase::Evicting);
    draining.driver = Some(DrainStatus {
        drain: "id".to_owned(),
        at: ago(4),
        hooks: vec![HookStatus {
            policy: "slurm".to_owned(),
            phase: HookPhase::BeforeDrain,
            subject: Subject::Node,
            since: ago(60),
            progress: String::new(),
            waiting_for: waits_for(),
        }],
        pods: pods.collect(),
        more: 2,
        ..DrainStatus::default()
    });
    let mut abandoned = node("abandoned", Phase::Holding);
    abandoned.lease_holder = LeaseHolder::Abandoned {
        by: "scupper (pid 812 on host admin-2)".to_owned(),
        silent_since: Some(ago(75)),
    };
    let mut planning = plain("planning");
    planning.lease_holder = LeaseHolder::Held {
        by: "scupper/scupper-x7d2p".to_owned(),
        silent_since: None,
    };
    planning.leased_drain = Some(LeasedDrain::of_mark(&mark("DrainRequest", Phase::Planning)));
    let mut waits = plain("waiting");
    waits.lifecycle_events.push(LifecycleEvent {
        name: "drain-waiting-x".to_owned(),
        uid: "e".to_owned(),
        node: "waiting".to_owned(),
        transition: "drain.slm.k8s.io".to_owned(),
        claim: ClaimStatus::Pending,
        created: Some(ago(12)),
        ..LifecycleEvent::default()
    });
    let mut behind = node("rolling-back", Phase::RollingBack);
    let mut next = waits.lifecycle_events.clone();
    next.extend(next.clone());
    behind.lifecycle_events = next;
    let mut left = plain("to-undo");
    left.leased_drain = Some(LeasedDrain {
        to_undo: [("slurm".to_owned(), "slurmctld does not answer".to_owned())].into(),
        intent: Intent::Drain,
        ..LeasedDrain::of_mark(&mark("command", Phase::Finished))
    });
    let mut drained = node("drained", Phase::Finished);
    drained.node.checkpoint.as_mut().unwrap().drained = true;
    let mut ahead = node("ahead", Phase::Planning);
    ahead.node.checkpoint.as_mut().unwrap().ahead = true;
    let mut some_pods = ended(
        node("some-pods", Phase::Finished),
        "DrainCompleted",
        "drain h: 1 pod gone, 4 kept as planned",
        ago(60),
    );
    some_pods.node.checkpoint.as_mut().unwrap().ended_well = true;
    let mut by_hand = plain("by-hand");
    by_hand.node.unschedulable = true;
    let deadline = "drain drain-failed: the deadline passed with 2 pods left";
    vec![
        draining,
        behind,
        node("uncordoning", Phase::Uncordoning),
        abandoned,
        planning,
        waits,
        left,
        ended(
            drained,
            "DrainCompleted",
            "drain d: 3 pods gone, 1 kept as planned",
            ago(200),
        ),
        ahead,
        by_hand,
        ended(
            node("failed", Phase::Finished),
            "DrainDeadlineExceeded",
            deadline,
            ago(200_000),
        ),
        ended(
            plain("failed-today"),
            "DrainFailed",
            "drain e: the plan was refused",
            ago(7_000),
        ),
        ended(
            plain("cancelled"),
            "DrainCancelled",
            "drain g: cancelled: stopped at the command line",
            ago(60),
        ),
        some_pods,
        ended(
            node("failed-with-old-conditions", Phase::Finished),
            "MaintenanceComplete",
            "maintenance is over: long ago",
            ago(4_000),
        ),
        node("failed-without-conditions", Phase::Finished),
        ended(
            plain("back"),
            "MaintenanceComplete",
            "maintenance is over: uncordon-back",
            ago(4_000),
        ),
        // Uncordoned by others, with a driver and without one.
        ended(
            plain("uncordoned"),
            "Uncordoned",
            "the node was uncordoned and takes pods again",
            ago(4_000),
        ),
        ended(
            plain("drained-and-uncordoned"),
            "DrainCompleted",
            "drain d: 3 pods gone, 1 kept as planned",
            ago(4_000),
        ),
        // Nothing is to be said of these.
        ended(
            plain("back-long-ago"),
            "MaintenanceComplete",
            "maintenance is over: u",
            ago(100_000),
        ),
        ended(plain("failed-long-ago"), "DrainFailed", "drain f", ago(100_000)),
        plain("idle"),
    ]
}

fn summaries() -> Vec<NodeSummary> {
    let all = every_node();
    all.iter()
        .filter_map(|status| NodeSummary::of(status, NOW))
        .collect()
}

#[test]
fn the_nodes_of_a_cluster_as_text() {
    let summaries = summaries();
    assert_eq!(summaries.len(), every_node().len() - 3);
    let mut lines = overview_lines(&summaries, 3, NOW);
    for others in [0, 1, 2] {
        lines.extend(["".to_owned()]);
        lines.extend(overview_lines(&[], others, NOW));
    }
    accepted("overview-text", &lines.join("\n"));
}

#[test]
fn the_nodes_of_a_cluster_as_json() {
    let json: Vec<_> = summaries().iter().map(NodeSummary::to_json).collect();
    accepted("overview-json", &pretty(&json));
}

/// The driver writes its status once a minute. What it wrote long ago is not told.
#[test]
fn an_old_status_says_nothing_of_the_pods() {
    let mut all = every_node();
    let draining = &mut all[0];
    draining.driver.as_mut().unwrap().at = ago(1_000);
    let lines = overview_lines(
        &NodeSummary::of(draining, NOW).into_iter().collect::<Vec<_>>(),
        0,
        NOW,
    );
    assert!(lines[1].ends_with("LifecycleEvent drain-worker-1"), "{lines:?}");
}
