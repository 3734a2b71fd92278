//! The progress of a drain that another process carries out, as seen on the API server.

use scupper_engine::{HookPhase, SavedHook, Subject};

use super::*;
use crate::DrainStatus;
use crate::drain_status::{PlanSummary, PodStatus};
use crate::fixture;

const NOW: Time = Time::from_millis(1_000_000);

/// `leaving`: the pods to be evicted, according to the draining process.
fn status(here: &[&str], leaving: Option<&[&str]>) -> NodeStatus {
    let view = |leaving: &[&str]| DrainStatus {
        drain: "id".into(),
        at: NOW,
        plan: Some(PlanSummary::default()),
        wave: Some(WaveStatus {
            name: "all".into(),
            number: 1,
            of: 1,
        }),
        pods: leaving
            .iter()
            .map(|name| PodStatus {
                uid: Uid::new(*name),
                wave: "all".into(),
                reason: Reason::ParallelLimit,
                since: None,
            })
            .collect(),
        ..DrainStatus::default()
    };
    NodeStatus {
        driver: leaving.map(view),
        pods: here.iter().map(|name| fixture::running(name)).collect(),
        lifecycle_events: vec![LifecycleEvent {
            name: "drain-1".into(),
            transition: "drain.slm.k8s.io".into(),
            claim: ClaimStatus::Claimed,
            sla: Some(Time::from_millis(1_060_000)),
            ..LifecycleEvent::default()
        }],
        ..fixture::status(fixture::mark("LifecycleEvent", Phase::Holding))
    }
}

fn progress() -> NodeProgress {
    NodeProgress::begin("worker-1", Time::from_millis(990_000), "requested".to_owned())
}

fn stands(progress: &mut NodeProgress, uid: &str, status: NodeStatus) -> NodeSnapshot {
    progress.observe("drain-1", &Uid::new(uid), status);
    progress.snapshot(NOW)
}

#[test]
fn pods_are_counted_once_the_pods_to_evict_are_known() {
    let mut progress = progress();
    assert_eq!(progress.snapshot(NOW).phase_text, "requested");
    let first = stands(&mut progress, "id", status(&["a", "b", "c", "stays"], None));
    assert_eq!((first.pods, first.wave), (None, None));
    for (here, leaving, pods) in [
        (
            &["a", "b", "c", "stays"][..],
            Some(&["a", "b", "c"][..]),
            Some((0, 3)),
        ),
        // Pods disappear before the published status is updated.
        (&["b", "c", "stays"], Some(&["a", "b", "c"]), Some((1, 3))),
        (&["c", "stays"], Some(&["c"]), Some((2, 3))),
        // A pod that arrived later.
        (&["c", "new", "stays"], Some(&["c", "new"]), Some((2, 4))),
        // A pod that the plan now keeps.
        (&["c", "new", "stays"], Some(&["new"]), Some((2, 3))),
        // At the end the published status is removed.
        (&["c", "stays"], None, Some((3, 3))),
    ] {
        let snapshot = stands(&mut progress, "id", status(here, leaving));
        assert_eq!(snapshot.pods, pods, "{here:?} {leaving:?}");
    }
}

/// A client that starts to follow late counts the same numbers.
#[test]
fn pods_that_had_gone_before_the_first_look_are_counted() {
    let mut progress = progress();
    let mut late = status(&["b", "stays"], Some(&["b"]));
    if let Some(plan) = late.driver.as_mut().and_then(|view| view.plan.as_mut()) {
        plan.leaving = 2;
    }
    assert_eq!(stands(&mut progress, "id", late).pods, Some((1, 2)));
    let newcomer = status(&["b", "new"], Some(&["b", "new"]));
    assert_eq!(stands(&mut progress, "id", newcomer).pods, Some((1, 3)));
    assert_eq!(stands(&mut progress, "id", status(&[], None)).pods, Some((3, 3)));
}

#[test]
fn pods_without_room_in_the_published_status_are_counted() {
    let mut progress = progress();
    let full = |here: &[&str], told: &[&str], more: u32| {
        let mut status = status(here, Some(told));
        if let Some(view) = &mut status.driver {
            view.more = more;
            view.kept = vec![Uid::new("stays")];
            view.plan = Some(PlanSummary {
                leaving: 4,
                ..PlanSummary::default()
            });
        }
        status
    };
    for (here, told, more, pods) in [
        (&["a", "b", "c", "d", "stays"][..], &["a", "b"][..], 2, (0, 4)),
        (&["b", "c", "d", "stays"], &["a", "b"], 2, (1, 4)),
        // Now there is room for c, and d is gone before there was room for it.
        (&["b", "c", "d", "stays"], &["b", "c"], 1, (1, 4)),
        (&["b", "c", "stays"], &["b", "c"], 1, (2, 4)),
        (&["b", "c", "stays"], &["b", "c"], 0, (2, 4)),
        (&["stays"], &[], 0, (4, 4)),
    ] {
        let snapshot = stands(&mut progress, "id", full(here, told, more));
        assert_eq!(snapshot.pods, Some(pods), "{here:?} {told:?} {more}");
    }
}

#[test]
fn the_published_status_overrides_the_checkpoints_phase() {
    let mut progress = progress();
    let snapshot = stands(&mut progress, "id", status(&["a", "stays"], Some(&["a"])));
    assert_eq!(
        snapshot.phase_text, "evicting",
        "though the checkpoint was written before"
    );
    assert_eq!(snapshot.deadline, Some(Time::from_millis(1_060_000)));
    assert_eq!(snapshot.wave.map(|wave| wave.number), Some(1));
    assert_eq!(
        snapshot.waits_for,
        [WaitsFor::Pod(fixture::pod("a"), Reason::ParallelLimit)]
    );
}

#[test]
fn a_resumed_hook_keeps_the_start_time_recorded_on_the_node() {
    let hook = HookStatus {
        policy: "slurm".into(),
        phase: HookPhase::BeforeDrain,
        subject: Subject::Node,
        since: Time::from_millis(990_000),
        progress: "1 of 2".into(),
        waiting_for: Vec::new(),
    };
    let started = Time::from_millis(940_000);
    let mut now = status(&["a"], Some(&["a"]));
    now.driver.as_mut().unwrap().hooks = vec![hook.clone()];
    let mut mark = fixture::mark("LifecycleEvent", Phase::Holding);
    mark.hooks = vec![SavedHook {
        policy: "slurm".into(),
        phase: HookPhase::BeforeDrain,
        subject: Subject::Node,
        state: Vec::new(),
        state_version: None,
        started,
    }];
    now.node = fixture::node(mark);
    let held = WaitsFor::Hook(
        HookStatus {
            since: started,
            ..hook
        },
        String::new(),
    );
    assert_eq!(stands(&mut progress(), "id", now).waits_for[0], held);
}

#[test]
fn another_drains_status_does_not_count_for_this_one() {
    let mut progress = progress();
    let snapshot = stands(&mut progress, "other", status(&["a"], Some(&["a"])));
    assert_eq!((snapshot.phase_text.as_str(), snapshot.pods), ("claimed", None));
    assert_eq!((snapshot.wave, snapshot.waits_for), (None, Vec::new()));
}
