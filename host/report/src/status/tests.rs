//! Reasons, lines and JSON of a node with every visible kind of blocked pod.

mod lookups;
mod table;

use scupper_api::{ClaimStatus, LifecycleEvent};
use scupper_engine::{
    Checkpoint, Deletion, HookPhase, Phase, SavedHook, Selector, Subject, UnhealthyPods, WaitingOn,
};

use serde_json::Value;

use super::*;
use crate::drain_status::{HookStatus, WaveStatus};
use crate::fixture::{self, running as pod};

const NOW: Time = Time::from_millis(1_000_000);

fn mark(phase: Phase, hooks: Vec<SavedHook>) -> Checkpoint {
    Checkpoint {
        started: Time::from_millis(700_000),
        deadline: Some(Time::from_millis(1_060_000)),
        hooks,
        ..fixture::mark("command", phase)
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
        expected_pods: 2,
        limit: None,
        observed,
    }
}

fn named(status: &NodeStatus) -> Vec<(&str, &str)> {
    let name = |reason: Option<Reason>| reason.map_or("-", |reason| reason.name());
    let held = status.remaining_pods(NOW).into_iter();
    held.map(|held| (held.pod.id.name.as_str(), name(held.reason)))
        .collect()
}

fn blocked() -> NodeStatus {
    NodeStatus {
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
        ..fixture::status(mark(Phase::Evicting, Vec::new()))
    }
}

#[test]
fn a_pods_blocker_is_reported_as_far_as_it_is_visible() {
    let mut status = blocked();
    let held = [
        ("calm", "-"),
        ("cart", "BudgetExhausted"),
        ("db", "BudgetNotObserved"),
        ("slow", "Terminating"),
        ("stuck", "TerminatingPastGrace"),
        ("twice", "MoreThanOneBudget"),
    ];
    assert_eq!(named(&status), held);
    // A lifted cordon takes precedence over budgets.
    status.node.unschedulable = false;
    assert_eq!(named(&status)[1], ("cart", "NodeUncordoned"));
    // Without a drain a pod waits only for its own termination.
    status.node.checkpoint = None;
    assert_eq!(named(&status)[1], ("cart", "-"));
    assert_eq!(named(&status)[4], ("stuck", "TerminatingPastGrace"));
}

fn saved(phase: HookPhase, subject: Subject) -> SavedHook {
    SavedHook {
        policy: "slurm".into(),
        phase,
        subject,
        state: Vec::new(),
        state_version: None,
        started: Time::from_millis(940_000),
    }
}

#[test]
fn hooks_hold_the_node_or_one_pod() {
    let hook = |subject| saved(HookPhase::BeforeDrain, subject);
    let mut status = blocked();
    status.node = fixture::node(mark(Phase::Holding, vec![hook(Subject::Node)]));
    assert_eq!(named(&status)[0], ("calm", "HookRunning"));
    assert_eq!(named(&status)[3], ("slow", "Terminating"));
    status.node = fixture::node(mark(Phase::Evicting, vec![hook(Subject::Pod(Uid::new("db")))]));
    assert_eq!(named(&status)[0], ("calm", "-"));
    assert_eq!(named(&status)[2], ("db", "HookRunning"));
}

#[test]
fn the_text_names_the_next_step() {
    let mut status = blocked();
    status.lifecycle_events = vec![LifecycleEvent {
        name: "drain-worker-1".into(),
        transition: "drain.slm.k8s.io".into(),
        claim: ClaimStatus::parse("InProgress"),
        sla: Some(Time::from_millis(990_000)),
        ..LifecycleEvent::default()
    }];
    let lines = status_lines(&status, NOW, PodList::default());
    let expected = [
        "node worker-1: cordoned by Scupper",
        "  drain      evicting for command drain-worker-1, begun 5m00s ago, to end within 1m00s",
        "  driver     no status published, showing the API server's state",
        "  event      drain-worker-1: InProgress, transition drain.slm.k8s.io, overdue by 10s",
        "  6 pods here:",
        "    shop/calm   -",
        "    budget shop/cart blocks 1 pod: it needs 2 healthy pods and has 2",
        "    shop/cart   BudgetExhausted",
        "    budget shop/db blocks 1 pod: it needs 2 healthy pods and has 2",
        "    shop/db     BudgetNotObserved     its disruption budget is not up to date: db is still being processed",
        "    shop/slow   Terminating           terminating, 20s of its grace period left",
        "    shop/stuck  TerminatingPastGrace  still terminating 1m40s after its grace period; finalizers: example.com/hold",
        "    shop/twice  MoreThanOneBudget     two disruption budgets select it: one and two",
    ];
    let (next, facts): (Vec<_>, Vec<_>) = lines
        .into_iter()
        .partition(|line| line.starts_with("      next: "));
    assert_eq!(facts, expected);
    let commands = next.iter().map(|line| line.trim().split("    #").next().unwrap());
    let expected = [
        "next: kubectl -n shop describe pdb cart",
        "next: kubectl -n shop get pdb",
        "next: kubectl -n shop describe pod stuck",
        "next: kubectl -n shop get pdb",
    ];
    assert_eq!(commands.collect::<Vec<_>>(), expected);
    let json = status_to_json(&status, NOW);
    assert_eq!(json["cordon"], "ours");
    assert_eq!(json["pods"][0]["reason"], Value::Null);
    assert_eq!(json["pods"][1]["reason"], "BudgetExhausted");
    assert_eq!(json["drain"]["phase"], "evicting");
}

/// A status of a drain in its second wave, published 4 s ago.
fn driver_status() -> DrainStatus {
    let pod = |name: &str, reason| PodStatus {
        uid: Uid::new(name),
        wave: "late".into(),
        reason,
        since: Some(Time::from_millis(980_000)),
    };
    DrainStatus {
        drain: "id".into(),
        at: Time::from_millis(996_000),
        wave: Some(WaveStatus {
            name: "late".into(),
            number: 2,
            of: 3,
        }),
        hooks: vec![HookStatus {
            policy: "slurm".into(),
            phase: HookPhase::BeforeEvict,
            subject: Subject::Pod(Uid::new("db")),
            since: Time::from_millis(970_000),
            progress: "0 of 1 Slurm nodes drained".into(),
            waiting_for: vec![WaitingOn {
                what: "slurm/gpu-0".into(),
                detail: "allocated: jobs still run".into(),
                since: Some(Time::from_millis(940_000)),
            }],
        }],
        pods: vec![
            pod("calm", Reason::WaveNotStarted { wave: "last".into() }),
            pod("cart", Reason::ParallelLimit),
            pod("slow", Reason::ParallelLimit),
        ],
        ..DrainStatus::default()
    }
}

#[test]
fn a_resumed_hook_keeps_the_start_time_recorded_on_the_node() {
    let mut status = blocked();
    status.driver = Some(driver_status());
    let hook = saved(HookPhase::BeforeEvict, Subject::Pod(Uid::new("db")));
    status.node = fixture::node(mark(Phase::Evicting, vec![hook]));
    let lines = status_lines(&status, NOW, PodList::default());
    assert!(
        lines[3].contains("of shop/db, running for 1m00s: "),
        "{}",
        lines[3]
    );
    let json = status_to_json(&status, NOW);
    assert_eq!(json["drain"]["hooks"][0]["since"], "1970-01-01T00:15:40.000Z");
}

#[test]
fn a_fresh_status_of_the_driver_takes_precedence_over_guesses() {
    let mut status = blocked();
    status.driver = Some(driver_status());
    // Termination is visible without the driver; a pod that the driver does not name is kept.
    let held = [
        ("calm", "WaveNotStarted"),
        ("cart", "ParallelLimit"),
        ("db", "Kept"),
        ("slow", "Terminating"),
        ("stuck", "TerminatingPastGrace"),
        ("twice", "Kept"),
    ];
    assert_eq!(named(&status), held);
    let lines = status_lines(&status, NOW, PodList::default());
    let expected = [
        "  driver     status from 4s ago; wave 2 of 3, late",
        "  hook       slurm before-evict of shop/db, running for 30s: 0 of 1 Slurm nodes drained",
        "    waits for slurm/gpu-0: allocated: jobs still run, for 1m00s",
        "    next: scupper cancel worker-1    # if the drain should not wait for that; Ctrl-C where it runs does the same",
    ];
    assert_eq!(lines[2..6], expected);
    let json = status_to_json(&status, NOW);
    assert_eq!(json["pods"][0]["source"], "driver");
    assert_eq!(json["pods"][3]["source"], "api-server");
    assert_eq!(json["drain"]["hooks"][0]["waitingFor"][0]["what"], "slurm/gpu-0");
    // A driver that has been silent for long may be gone: its status no longer counts.
    let later = NOW + FRESH;
    assert!(
        status_lines(&status, later, PodList::default())[2]
            .starts_with("  driver     no status for 2m34s; showing")
    );
    assert_eq!(
        status_to_json(&status, later)["pods"][1]["reason"],
        "BudgetExhausted"
    );
}

/// Only its Lease shows it.
#[test]
fn a_drain_that_has_left_nothing_on_the_node_is_shown_as_planning_until_it_has() {
    let mut status = blocked();
    let mark = status.node.checkpoint.take();
    let drain = LeasedDrain {
        id: mark.as_ref().unwrap().id.clone(),
        name: "gpu-3".into(),
        trigger: "DrainRequest".into(),
        intent: Intent::Drain,
        to_undo: BTreeMap::new(),
        policies: BTreeSet::new(),
    };
    status.leased_drain = Some(drain.clone());
    let shown = |status: &NodeStatus| status_to_json(status, NOW)["planning"]["name"].clone();
    for lease_holder in [LeaseHolder::Unknown, LeaseHolder::Free] {
        status.lease_holder = lease_holder;
        assert_eq!(shown(&status), Value::Null);
    }
    status.lease_holder = LeaseHolder::Held {
        by: "me".into(),
        silent_since: None,
    };
    assert_eq!(shown(&status), "gpu-3");
    let expected = [
        "  drain      planning for DrainRequest gpu-3 by me; nothing has changed",
        "    to stop it: scupper cancel worker-1",
    ];
    assert_eq!(status_lines(&status, NOW, PodList::default())[1..3], expected);
    status.node.checkpoint = mark;
    assert_eq!(shown(&status), Value::Null, "its mark shows it");
    status.leased_drain = Some(LeasedDrain {
        id: "another".into(),
        ..drain
    });
    assert_eq!(shown(&status), Value::Null, "it continues what the mark says");
    let lines = status_lines(&status, NOW, PodList::default());
    assert_eq!(lines[1], "  drain      continued for DrainRequest gpu-3 by me");
    assert!(lines[2].starts_with("  drain      evicting for "), "{lines:#?}");
}

/// A status from 4 s ago is not presented as the current state.
#[test]
fn an_abandoned_drain_is_not_called_live() {
    let mut status = blocked();
    status.driver = Some(driver_status());
    status.lease_holder = LeaseHolder::Abandoned {
        by: "admin@laptop (process 7)".into(),
        silent_since: Some(Time::from_millis(900_000)),
    };
    assert_eq!(named(&status)[1], ("cart", "BudgetExhausted"));
    let lines = status_lines(&status, NOW, PodList::default());
    let expected = [
        "  driver     abandoned: admin@laptop (process 7) stopped renewing the node's Lease \
         1m40s ago; showing the API server's state",
        "    next: scupper drain worker-1    # continues it: give the flags and --config that it was begun with; scupper cancel worker-1 undoes it",
    ];
    assert_eq!(lines[2..4], expected);
    let json = status_to_json(&status, NOW);
    assert_eq!(
        (&json["lease"]["state"], &json["driver"]["fresh"]),
        (&"left".into(), &false.into())
    );
    // A holder of the Lease may be silent, and without a Lease no process counts as dead.
    for lease_holder in [
        LeaseHolder::Unknown,
        LeaseHolder::Held {
            by: "me".into(),
            silent_since: None,
        },
        LeaseHolder::Free,
    ] {
        status.lease_holder = lease_holder;
        assert_eq!(named(&status)[1], ("cart", "ParallelLimit"));
    }
    status.driver = None;
    let line = &status_lines(&status, NOW, PodList::default())[2];
    assert!(
        line.contains("no process holds the node's Lease, so it may be abandoned"),
        "{line}"
    );
}

#[test]
fn the_drivers_last_status_is_kept() {
    let mut status = blocked();
    status.node = fixture::node(mark(Phase::Finished, Vec::new()));
    status.driver = Some(DrainStatus {
        ended: Some("DeadlineExceeded: the deadline passed".into()),
        hooks: Vec::new(),
        ..driver_status()
    });
    assert_eq!(named(&status)[1], ("cart", "ParallelLimit"));
    let much_later = NOW + Duration::from_secs(86_400);
    let lines = status_lines(&status, much_later, PodList::default());
    let expected = "  ended      24h00m ago, DeadlineExceeded: the deadline passed; the pods' reasons are from that moment";
    assert!(lines.contains(&expected.to_owned()), "{lines:#?}");
}

#[test]
fn heartbeats_are_ignored() {
    let mut status = blocked();
    status.driver = Some(driver_status());
    let mut next = status.clone();
    next.node.resource_version = "2".into();
    next.driver.as_mut().unwrap().at = NOW;
    assert_ne!(status, next);
    assert_eq!(status.without_heartbeats(), next.without_heartbeats());
    next.driver.as_mut().unwrap().pods.pop();
    assert_ne!(status.without_heartbeats(), next.without_heartbeats());
}

#[test]
fn no_budget_is_blamed_for_a_pod_that_the_api_server_would_evict() {
    let pending = Pod {
        phase: scupper_engine::PodPhase::Pending,
        ..pod("pending")
    };
    let unready = |name: &str| Pod {
        ready: false,
        ..pod(name)
    };
    let always = Budget {
        unhealthy_pods: UnhealthyPods::AlwaysAllow,
        ..budget("always", "always", 0, true)
    };
    let unmet = Budget {
        current_healthy: 1,
        ..budget("unmet", "unmet", 0, true)
    };
    let status = NodeStatus {
        pods: vec![unready("always"), unready("met"), pending, unready("unmet")],
        budgets: vec![
            always,
            budget("met", "met", 0, true),
            budget("pending", "pending", 0, true),
            unmet,
        ],
        ..fixture::status(mark(Phase::Evicting, Vec::new()))
    };
    let expected = [
        ("always", "-"),
        ("met", "-"),
        ("pending", "-"),
        ("unmet", "BudgetExhausted"),
    ];
    assert_eq!(named(&status), expected);
}
