//! `status` as text, as text that fits a terminal, and as JSON.

use std::time::Duration;

use scupper_api::{BudgetDetails, ClaimStatus, LifecycleEvent, UnreadyPod, Workload};
use scupper_engine::{
    Budget, Checkpoint, Condition, Controller, Deletion, HookPhase, Node, Phase, Pod, SavedHook, Selector,
    Subject, Time, Uid,
};

use super::super::drain_status::PodStatus;
use super::super::fixture::{mark, node, running, status as bare};
use super::super::{
    DrainStatus, ForceStatus, ForcedNames, HookStatus, LeaseHolder, NodeStatus, PodList, StatusDetails,
    VolumesStatus, WaveStatus, status_lines, status_table, status_to_json,
};
use super::samples::{NOW, ago, budget, estimate, phases, pods, volumes_left, waiting, waits_for};
use super::{Variants, accepted, complete, pretty, variants};
use crate::tone_of;
use scupper_screen::{Size, Tone};

variants!(LeaseHolder: Unknown Free Held Abandoned);

const TRIGGERS: [&str; 4] = ["LifecycleEvent", "cordon", "command", "self-claim"];

fn begun(trigger: &str, phase: Phase) -> Checkpoint {
    Checkpoint {
        started: ago(300),
        deadline: Some(NOW + Duration::from_secs(60)),
        ..mark(trigger, phase)
    }
}

fn saved(phase: HookPhase, subject: Subject) -> SavedHook {
    SavedHook {
        policy: "slurm".to_owned(),
        phase,
        subject,
        state: Vec::new(),
        state_version: None,
        started: ago(60),
    }
}

fn leases() -> Vec<LeaseHolder> {
    let by = || "scupper (pid 812 on host admin-2)".to_owned();
    let left = |silent_since| LeaseHolder::Abandoned {
        by: by(),
        silent_since,
    };
    let all = vec![
        LeaseHolder::Unknown,
        LeaseHolder::Free,
        LeaseHolder::Held {
            by: by(),
            silent_since: None,
        },
        LeaseHolder::Held {
            by: by(),
            silent_since: Some(ago(40)),
        },
        left(None),
        left(Some(ago(75))),
    ];
    complete(&all);
    all
}

fn ending(name: &str, at: Time, finalizers: &[&str]) -> Pod {
    Pod {
        deletion: Some(Deletion {
            at,
            grace_seconds: 30,
        }),
        finalizers: finalizers.iter().map(|it| (*it).to_owned()).collect(),
        ..running(name)
    }
}

/// The state that the API server shows without a published status.
fn from_outside(mark: Checkpoint, lease_holder: LeaseHolder) -> NodeStatus {
    NodeStatus {
        pods: vec![
            running("calm"),
            running("cart"),
            running("db"),
            ending("slow", NOW + Duration::from_secs(12), &[]),
            ending("late", ago(100), &[]),
            ending("stuck", ago(100), &["example.com/hold"]),
            running("twice"),
        ],
        budgets: vec![
            budget("calm", "calm", 1, true),
            budget("cart", "cart", 0, true),
            budget("db", "db", 0, false),
            budget("one", "twice", 1, true),
            budget("two", "twice", 1, true),
        ],
        lease_holder,
        ..bare(mark)
    }
}

fn hook(subject: Subject, progress: &str) -> HookStatus {
    HookStatus {
        policy: "slurm".to_owned(),
        phase: HookPhase::BeforeDrain,
        subject,
        since: ago(60),
        progress: progress.to_owned(),
        waiting_for: waits_for(),
    }
}

/// A published status: every reason, hooks of each subject, a wave.
fn driver_status() -> DrainStatus {
    let pods = waiting().into_iter().map(|(pod, reason)| PodStatus {
        uid: pod.uid,
        wave: "web".to_owned(),
        reason,
        since: Some(ago(44)),
    });
    DrainStatus {
        drain: "id".to_owned(),
        at: ago(4),
        ended: None,
        machine_is_off: false,
        plan: None,
        wave: Some(WaveStatus {
            name: "web".to_owned(),
            number: 1,
            of: 2,
        }),
        hooks: vec![
            hook(Subject::Node, "1 of 3 Slurm nodes drained"),
            hook(Subject::Wave("web".to_owned()), "almost"),
            hook(Subject::Pod(Uid::new("web-1")), "moved"),
            hook(Subject::Pod(Uid::new("gone")), ""),
        ],
        volumes: Some(VolumesStatus {
            left: volumes_left(),
            since: ago(34),
            until: NOW + Duration::from_secs(266),
        }),
        force: Some(ForceStatus {
            begins: NOW + Duration::from_secs(228),
            ahead: forced(&["shop/web-1", "shop/web-2", "shop/web-3", "shop/web-4"]),
            deleted: forced(&["shop/cart-1"]),
        }),
        estimate: Some(estimate()),
        pods: pods.collect(),
        more: 3,
        kept: Vec::new(),
    }
}

fn forced(names: &[&str]) -> ForcedNames {
    ForcedNames {
        count: u32::try_from(names.len()).unwrap(),
        named: names.iter().map(|name| (*name).to_owned()).collect(),
    }
}

fn conditions() -> Vec<Condition> {
    let condition = |kind: &str, status: &str, reason: &str, message: &str| Condition {
        kind: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        since: Some(ago(300)),
    };
    vec![
        condition("Ready", "False", "KubeletNotReady", "container runtime is down"),
        condition(
            "DrainInProgress",
            "True",
            "DrainStarted",
            "drain drain-worker-1 is under way",
        ),
        condition("Drained", "False", "DrainStarted", ""),
        condition(
            "LifecycleTransition",
            "True",
            "drain-started",
            "Lifecycle Transition 'drain'",
        ),
        condition("MaintenanceInProgress", "True", "Ticket", "ticket 7"),
    ]
}

fn events() -> Vec<LifecycleEvent> {
    let event = |name: &str, deadline: u64, deleting| LifecycleEvent {
        name: name.to_owned(),
        transition: "drain.slm.k8s.io".to_owned(),
        claim: ClaimStatus::Claimed,
        sla: Some(Time::from_millis(deadline)),
        deleting,
        ..LifecycleEvent::default()
    };
    vec![
        event("drain-worker-1", 1_075_000, false),
        event("drain-worker-1", 1_060_000, false),
        event("another", 990_000, true),
    ]
}

/// Additional facts about pods that a budget blocks.
fn details() -> StatusDetails {
    let unready = ["worker-2", ""].map(|node| UnreadyPod {
        name: "cart-3".to_owned(),
        node: node.to_owned(),
        since: Some(ago(300)),
        why: "container main: CrashLoopBackOff".to_owned(),
    });
    let budget = BudgetDetails {
        owner: Some("Helm release shop".to_owned()),
        since: Some(ago(120)),
        granted: [("gone".to_owned(), ago(10))].into(),
        unready: unready.to_vec(),
    };
    let workload = Workload {
        kind: "Deployment".to_owned(),
        name: "cart".to_owned(),
        ready: Some((2, 3)),
    };
    StatusDetails {
        workloads: [(Uid::new("set"), workload)].into(),
        budgets: [(("shop".to_owned(), "cart".to_owned()), budget)].into(),
        unread: vec!["ReplicaSets of namespace shop: forbidden".to_owned()],
    }
}

/// A published status with all additional facts.
fn from_driver() -> NodeStatus {
    let controller = |uid: &str| Controller {
        api_version: "apps/v1".to_owned(),
        kind: "ReplicaSet".to_owned(),
        name: "cart-7d9f".to_owned(),
        uid: Uid::new(uid),
        missing: false,
    };
    let mut pods = pods();
    for (pod, uid) in pods.iter_mut().rev().zip(["set", "unknown"].into_iter().cycle()) {
        pod.controller = Some(controller(uid));
    }
    let selects_all = Budget {
        selector: Selector::EVERYTHING,
        ..budget("cart", "", 0, true)
    };
    NodeStatus {
        node: Node {
            conditions: conditions(),
            ..node(begun("LifecycleEvent", Phase::Holding))
        },
        driver: Some(driver_status()),
        pods,
        budgets: vec![selects_all],
        lifecycle_events: events(),
        lease_holder: LeaseHolder::Held {
            by: "the driver on worker-1".to_owned(),
            silent_since: None,
        },
        leased_drain: None,
        details: details(),
    }
}

/// A drain that failed, and a node that another process uncordoned after its drain.
fn ended() -> [NodeStatus; 2] {
    let ended = Checkpoint {
        to_undo: [
            ("openstack".to_owned(), String::new()),
            ("slurm".to_owned(), String::new()),
        ]
        .into(),
        ..begun("LifecycleEvent", Phase::Finished)
    };
    let reported = NodeStatus {
        node: node(ended.clone()),
        driver: Some(DrainStatus {
            ended: Some("DeadlineExceeded: the deadline passed".to_owned()),
            ..driver_status()
        }),
        ..from_driver()
    };
    let mut given_back = NodeStatus {
        driver: None,
        ..bare(ended)
    };
    given_back.node.unschedulable = false;
    given_back.node.conditions = conditions().split_off(3);
    [reported, given_back]
}

/// Drains of a machine that is off: before it is tainted, while its pods are deleted, and after it is Ready again.
fn off() -> [NodeStatus; 3] {
    let drain = |phase, view| {
        let mark = Checkpoint {
            id: "drain".to_owned(),
            ..begun("command", phase)
        };
        let mut status = bare(mark);
        status.driver = view;
        status
    };
    let view = DrainStatus {
        drain: "drain".to_owned(),
        at: ago(4),
        machine_is_off: true,
        ..DrainStatus::default()
    };
    let mark = || (Node::OUT_OF_SERVICE.to_owned(), "drain".to_owned());
    let mut tainted = drain(Phase::Evicting, None);
    tainted.node.annotations.extend([mark()]);
    tainted.node.conditions = conditions();
    let mut ready = drain(Phase::Finished, None);
    ready.node.annotations.extend([mark()]);
    ready.node.conditions = conditions();
    ready.node.conditions[0].status = "True".to_owned();
    [drain(Phase::Holding, Some(view)), tainted, ready]
}

/// Nodes without a drain: cordoned by another process and still tainted, and not cordoned.
fn idle() -> [NodeStatus; 2] {
    [true, false].map(|unschedulable| {
        let mut idle = bare(begun("command", Phase::Finished));
        idle.node.checkpoint = None;
        idle.node.unschedulable = unschedulable;
        if unschedulable {
            let mark = (Node::OUT_OF_SERVICE.to_owned(), "drain".to_owned());
            idle.node.annotations.extend([mark]);
        }
        idle
    })
}

fn every_status() -> Vec<NodeStatus> {
    let hooks = vec![
        saved(HookPhase::BeforeDrain, Subject::Node),
        saved(HookPhase::BeforeWave, Subject::Wave("web".to_owned())),
        saved(HookPhase::BeforeEvict, Subject::Pod(Uid::new("db"))),
    ];
    let stale = NodeStatus {
        driver: Some(DrainStatus {
            at: ago(200),
            ..driver_status()
        }),
        ..from_outside(begun("command", Phase::Evicting), LeaseHolder::Unknown)
    };
    let held = |hooks: &[SavedHook]| {
        let mark = Checkpoint {
            hooks: hooks.to_vec(),
            ..begun("command", Phase::Evicting)
        };
        from_outside(mark, LeaseHolder::Unknown)
    };
    let mut all = vec![from_driver(), stale, held(&hooks), held(&hooks[1..])];
    all.extend(ended());
    all.extend(idle());
    all.extend(off());
    all.extend(
        leases()
            .into_iter()
            .map(|lease_holder| from_outside(begun("command", Phase::Evicting), lease_holder)),
    );
    let mut uncordoned = held(&[]);
    uncordoned.node.unschedulable = false;
    all.push(uncordoned);
    all
}

/// The head of an abandoned drain for each trigger and phase: the texts of the phase and of the advice.
fn every_head() -> String {
    let mut text = String::new();
    for trigger in TRIGGERS {
        for phase in phases() {
            let mark = Checkpoint {
                hooks: vec![saved(HookPhase::BeforeDrain, Subject::Node)],
                own_cordon: trigger != "cordon",
                deadline: Some(ago(10)),
                ..begun(trigger, phase)
            };
            let left = LeaseHolder::Abandoned {
                by: "scupper (pid 812 on host admin-2)".to_owned(),
                silent_since: Some(ago(75)),
            };
            let status = NodeStatus {
                lease_holder: left,
                ..bare(mark)
            };
            text.push_str(&format!(
                "{}\n",
                status_lines(&status, NOW, PodList::default()).join("\n")
            ));
        }
    }
    text
}

#[test]
fn status_as_text() {
    let texts = every_status()
        .into_iter()
        .map(|status| status_lines(&status, NOW, PodList::default()).join("\n"));
    let texts = texts.collect::<Vec<_>>().join("\n\n");
    accepted("status-text", &format!("{texts}\n\n{}", every_head()));
}

/// The word that has a colour in the line about this.
fn tone_of_line(lines: &[String], topic: &str) -> Option<Tone> {
    let line = lines.iter().find(|line| line.starts_with(&format!("  {topic} ")));
    let line = line.unwrap_or_else(|| panic!("no line about {topic}: {lines:#?}"));
    tone_of(line).map(|(_, tone)| tone)
}

/// The lines are those that are printed: a text that changes must not lose its colour.
#[test]
fn a_failed_drain_and_a_hook_that_waits_have_a_colour() {
    let lines = |status: &NodeStatus| status_lines(status, NOW, PodList::default());
    let tone = |phase, topic| tone_of_line(&lines(&bare(begun("command", phase))), topic);
    assert_eq!(tone(Phase::Finished, "drain"), Some(Tone::Wrong));
    assert_eq!(tone(Phase::Evicting, "drain"), None);
    assert_eq!(tone_of_line(&lines(&from_driver()), "hook"), Some(Tone::Blocks));
}

#[test]
fn status_as_a_table() {
    let nodes = [
        from_driver(),
        from_outside(begun("command", Phase::Evicting), LeaseHolder::Free),
    ];
    let mut text = String::new();
    for (columns, rows) in [(120, 200), (100, 30), (60, 12), (60, 1)] {
        text.push_str(&format!("── {columns} columns, {rows} rows\n"));
        for line in status_table(&nodes, Size { rows, columns }, NOW, PodList::default()) {
            text.push_str(&format!("{line}\n"));
        }
    }
    accepted("status-table", &text);
}

#[test]
fn status_as_json() {
    let json: Vec<_> = every_status()
        .iter()
        .map(|status| status_to_json(status, NOW))
        .collect();
    accepted("status-json", &pretty(&json));
}
