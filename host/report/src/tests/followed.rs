//! The output of a drain that the command delegated to the driver.

use std::collections::BTreeMap;
use std::time::Duration;

use scupper_engine::{HookPhase, Reason, Subject, WaitingOn};

use super::super::drain_status::PodGroup;
use super::super::fixture::pod;
use super::super::follow_output::FollowEvent;
use super::super::messages::count;
use super::super::{
    FollowOutput, ForceStatus, ForcedNames, Format, HookStatus, MoreWaits, PlanSummary, PolicyMessage,
    VolumesStatus, WaveStatus,
};
use super::samples::{NOW, ago, estimate, plan, pods, raising_plan, reasons, volumes_left};
use super::{Variants, accepted, complete, variants};

variants!(FollowEvent: CordonedFirst Requested Joined State Queued Unclaimed Bounded NotReady Condition Planned Finding Estimated Wave Uncordoned
    PolicyMessage Hook HookDone Volumes PodWaits MoreWait Forced MoreForced PodGone Withdrawn Detached Ended);

fn hook(progress: &str) -> HookStatus {
    HookStatus {
        policy: "slurm".to_owned(),
        phase: HookPhase::BeforeDrain,
        subject: Subject::Node,
        since: ago(72),
        progress: progress.to_owned(),
        waiting_for: vec![WaitingOn {
            what: "slurm/gpu-0".to_owned(),
            detail: "allocated: jobs still run".to_owned(),
            since: Some(ago(56)),
        }],
    }
}

fn story() -> Vec<FollowEvent> {
    let text = |text: &str| text.to_owned();
    let mut all = vec![
        FollowEvent::CordonedFirst,
        FollowEvent::Joined {
            event: text("drain-worker-1-x7d2p"),
            without: Vec::new(),
        },
        FollowEvent::Joined {
            event: text("drain-worker-1-x7d2p"),
            without: vec![text("--force"), text("--pod-selector='app in (web, db)'")],
        },
        FollowEvent::Queued {
            behind: text("LifecycleEvent drain-worker-1-x7d2p"),
        },
        FollowEvent::NotReady {
            words: text("NotReady for 5m00s (KubeletNotReady)"),
        },
        FollowEvent::Condition {
            is_repeated: false,
            condition: text("Drained=False"),
            message: text("drain drain-worker-1 is under way"),
        },
        FollowEvent::Planned {
            plan: PlanSummary::of(&plan()),
            names: pods()
                .into_iter()
                .map(|pod| (pod.id.uid.clone(), pod.id))
                .collect(),
            force: Some(ForceStatus {
                begins: NOW + Duration::from_secs(228),
                ahead: ForcedNames::of([pod("web-1"), pod("web-2")].iter()),
                deleted: ForcedNames::default(),
            }),
        },
        FollowEvent::Planned {
            plan: PlanSummary::default(),
            names: BTreeMap::new(),
            force: None,
        },
        FollowEvent::Planned {
            plan: PlanSummary {
                refused: vec![PodGroup {
                    what: text("cannot delete Pods with local storage"),
                    policy: text("kubectl"),
                    pods: vec![pod("web-2").uid],
                    more: 1,
                }],
                ..PlanSummary::default()
            },
            names: [(pod("web-2").uid, pod("web-2"))].into(),
            force: None,
        },
        FollowEvent::Planned {
            plan: PlanSummary::of(&raising_plan()),
            names: BTreeMap::new(),
            force: None,
        },
        FollowEvent::Finding {
            is_certain: true,
            text: text(
                "will not leave: budget shop/web allows nothing: shop/web-1; change: maxUnavailable: 0 -> 1",
            ),
        },
        FollowEvent::Finding {
            is_certain: false,
            text: text("budget shop/db allows nothing now: shop/db-0"),
        },
        FollowEvent::Estimated(estimate()),
        FollowEvent::Forced { pod: pod("web-2") },
        FollowEvent::MoreForced { pods: 3 },
        FollowEvent::Uncordoned,
        FollowEvent::HookDone {
            hook: hook(""),
            of: String::new(),
        },
        FollowEvent::Volumes {
            volumes: VolumesStatus {
                left: volumes_left(),
                since: ago(34),
                until: NOW + Duration::from_secs(266),
            },
        },
        FollowEvent::PodGone {
            pod: pod("web-1"),
            remaining: Some(4),
        },
        FollowEvent::PodGone {
            pod: pod("web-2"),
            remaining: None,
        },
        FollowEvent::Withdrawn {
            why: text("interrupted"),
        },
        FollowEvent::Detached {
            is_driver_gone: false,
        },
        FollowEvent::Detached { is_driver_gone: true },
    ];
    for what in ["drain", "uncordon"] {
        all.push(FollowEvent::Requested {
            what,
            event: format!("{what}-worker-1"),
            driver: text("drain.slm.k8s.io"),
        });
    }
    for deadline in [None, Some(NOW + Duration::from_secs(300))] {
        let state = text("Claimed");
        all.push(FollowEvent::State { state, deadline });
    }
    for driver in [None, Some(false), Some(true)] {
        all.push(FollowEvent::Unclaimed {
            pod: driver.map(|is_ready| (pod("scupper-x7d2p"), is_ready)),
            left: Duration::from_secs(28),
        });
    }
    for timeout in [None, Some(Duration::from_secs(7200))] {
        all.push(FollowEvent::Bounded {
            transition: text("drain"),
            sla: Duration::from_secs(3600),
            timeout,
        });
    }
    for pods in [None, Some(1), Some(3)] {
        let wave = WaveStatus {
            name: text("web"),
            number: 1,
            of: 2,
        };
        all.push(FollowEvent::Wave { wave, pods });
    }
    for progress in ["", "1 of 3 Slurm nodes drained"] {
        all.push(FollowEvent::Hook {
            hook: hook(progress),
            of: String::new(),
        });
    }
    all.push(FollowEvent::PolicyMessage {
        words: PolicyMessage {
            policy: text("slurm"),
            warning: true,
            reason: text("StaysDrained"),
            note: text("node-1 stays DRAIN: ticket 7"),
        },
    });
    let waits = reasons().into_iter().map(|reason| FollowEvent::PodWaits {
        pod: pod("web-2"),
        reason,
        is_counted: false,
    });
    all.extend(waits);
    let counted = ["web-3", "web-4"].map(|name| (pod(name), Reason::ParallelLimit));
    let more = MoreWaits::of(counted.iter().map(|(pod, reason)| (pod, reason)));
    all.extend(counted.into_iter().map(|(pod, reason)| FollowEvent::PodWaits {
        pod,
        reason,
        is_counted: true,
    }));
    all.extend(more.into_iter().map(FollowEvent::MoreWait));
    for message in ["", "Drained in 1m12s: every pod to evict is gone"] {
        all.push(FollowEvent::Ended {
            outcome: text("Drained"),
            message: text(message),
            left: (!message.is_empty()).then(|| text("the node stays cordoned")),
        });
    }
    complete(&all);
    all
}

#[test]
fn lines_of_a_drain_that_the_driver_carries_out() {
    for (name, format) in [("followed-lines", Format::Human), ("followed-json", Format::Json)] {
        let following = FollowOutput::begin("worker-1".to_owned(), ago(72));
        let lines = story()
            .iter()
            .flat_map(|seen| following.lines(format, NOW, seen))
            .collect::<Vec<_>>();
        accepted(name, &lines.join("\n"));
    }
}

#[test]
fn pods_that_are_gone_when_a_follower_comes_are_counted() {
    let plan = PlanSummary::of(&plan());
    let first = plan.waves[0].pods[0].clone();
    let all = plan.waves[0].pods.len();
    let one = plan.groups(|uid| (*uid == first).then(|| "shop/web-1".to_owned()));
    let more = scupper_engine::and_more(all - 1);
    assert!(one[0].ends_with(&format!(": shop/web-1{more}")), "{one:?}");
    let none = plan.groups(|_| None);
    assert!(none[0].ends_with(&format!(": {}", count(all, "pod"))), "{none:?}");
}
