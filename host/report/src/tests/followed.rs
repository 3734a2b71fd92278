//! A drain of the driver as whoever handed it over sees it.

use scupper_engine::Duration;

use super::super::fixture::pod;
use super::super::following::Seen;
use super::super::{Following, Format, PlanView, PolicyWords, WaveView};
use super::samples::{NOW, ago, plan, pods, reasons};
use super::{Variants, accepted, complete, variants};

variants!(Seen: Asked State Queued Bounded NotReady Condition Planned Wave Uncordoned Said Hook HookDone Waits
    PodGone TakenBack Left Ended);

fn story() -> Vec<Seen> {
    let text = |text: &str| text.to_owned();
    let mut all = vec![
        Seen::Queued {
            behind: text("LifecycleEvent drain-worker-1-x7d2p"),
        },
        Seen::NotReady {
            words: text("NotReady for 5m00s (KubeletNotReady)"),
        },
        Seen::Condition {
            condition: text("Drained=False"),
            message: text("drain drain-worker-1 is under way"),
        },
        Seen::Planned {
            plan: PlanView::of(&plan()),
            names: pods()
                .into_iter()
                .map(|pod| (pod.id.uid.clone(), pod.id))
                .collect(),
        },
        Seen::Uncordoned,
        Seen::HookDone {
            policy: text("slurm"),
            phase: text("before-drain"),
        },
        Seen::PodGone {
            pod: pod("web-1"),
            here: 4,
        },
        Seen::TakenBack {
            why: text("interrupted"),
        },
        Seen::Left,
    ];
    for what in ["drain", "uncordon"] {
        all.push(Seen::Asked {
            what,
            event: format!("{what}-worker-1"),
            driver: text("drain.slm.k8s.io"),
        });
    }
    for deadline in [None, Some(NOW + Duration::from_secs(300))] {
        let state = text("Claimed");
        all.push(Seen::State { state, deadline });
    }
    for timeout in [None, Some(Duration::from_secs(7200))] {
        all.push(Seen::Bounded {
            transition: text("drain"),
            sla: Duration::from_secs(3600),
            timeout,
        });
    }
    for pods in [None, Some(1), Some(3)] {
        let wave = WaveView {
            name: text("web"),
            number: 1,
            of: 2,
        };
        all.push(Seen::Wave { wave, pods });
    }
    for progress in ["", "1 of 3 Slurm nodes drained"] {
        all.push(Seen::Hook {
            policy: text("slurm"),
            phase: text("before-drain"),
            progress: text(progress),
            waiting_for: vec![text("slurm/gpu-0: allocated: jobs still run, for 56s")],
        });
    }
    all.push(Seen::Said {
        words: PolicyWords {
            policy: text("slurm"),
            warning: true,
            reason: text("StaysDrained"),
            note: text("node-1 stays DRAIN: ticket 7"),
        },
    });
    let waits = reasons().into_iter().map(|reason| Seen::Waits {
        pod: pod("web-2"),
        reason: reason.name(),
        message: reason.to_string(),
    });
    all.extend(waits);
    for message in ["", "Drained in 1m12s: every pod to evict is gone"] {
        all.push(Seen::Ended {
            outcome: text("Drained"),
            message: text(message),
        });
    }
    complete(&all);
    all
}

#[test]
fn lines_of_a_drain_that_the_driver_carries_out() {
    for (name, format) in [("followed-lines", Format::Human), ("followed-json", Format::Json)] {
        let following = Following::begin("worker-1".to_owned(), ago(72));
        let lines = story()
            .iter()
            .flat_map(|seen| following.lines(format, NOW, seen))
            .collect::<Vec<_>>();
        accepted(name, &lines.join("\n"));
    }
}
