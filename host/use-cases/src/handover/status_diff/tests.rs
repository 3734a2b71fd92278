//! A followed drain reports each thing once, and nothing of another drain.

use scupper_engine::{Deletion, HookPhase, Pod, SavedHook, Subject, WaitingOn};

use super::*;
use scupper_report::{FollowOutput, ForceStatus, Format, fixture, status_from_text};

const NOW: Time = Time::from_millis(1_000_000);

fn event() -> LifecycleEvent {
    LifecycleEvent {
        name: "drain-worker-1-x".into(),
        uid: "id".into(),
        created: Some(NOW),
        transition: "drain".into(),
        node: "worker-1".into(),
        claim: ClaimStatus::Claimed,
        driver: Some("drain".into()),
        sla: None,
        deleting: false,
        flags: None,
    }
}

fn mark(id: &str) -> Checkpoint {
    Checkpoint {
        id: id.into(),
        ..fixture::mark("LifecycleEvent", Phase::Evicting)
    }
}

fn status(mark: Checkpoint, driver: Option<DrainStatus>) -> NodeStatus {
    NodeStatus {
        driver,
        ..fixture::status(mark)
    }
}

/// The status of a driver: two waves, the first of them under way.
fn view(of: &str) -> DrainStatus {
    let text = r#"{"v":1,"drain":"OF","at":999000,
        "plan":{"leaving":2,"staying":1,"waves":[["early","prio",["a"],0],["late","prio",["b"],3]],
                "stays":[["ignored","kubectl",["c"],0]]},
        "wave":["early",1,2],"pods":[{"wave":"early","r":"ParallelLimit","pods":[["a",null]]}],"more":0}"#;
    status_from_text(&text.replace("OF", of)).unwrap()
}

fn reported(diff: &mut StatusDiff, status: &NodeStatus) -> Vec<String> {
    let story = FollowOutput::begin("worker-1".into(), NOW);
    let seen = diff.observe(&event(), status, NOW);
    let lines = seen.iter().flat_map(|seen| story.lines(Format::Human, NOW, seen));
    let lines = lines.map(|line| line.get(12..).unwrap_or_default().to_owned());
    lines.collect()
}

#[test]
fn the_plan_and_each_wave_are_reported_once() {
    let mut diff = StatusDiff::default();
    let mut now = status(mark("id"), Some(view("id")));
    now.pods.extend(["a", "b", "c"].map(fixture::running));
    let expected = [
        "plan     2 pods to evict in 2 waves, 1 to keep",
        "         wave 1 early: shop/a",
        "         wave 2 late: shop/b and 3 more",
        "         stays: shop/c (ignored) [kubectl]",
        "wave     1 of 2, early: 1 pod to evict",
    ];
    assert_eq!(reported(&mut diff, &now), expected);
    assert_eq!(reported(&mut diff, &now), [""; 0]);
    let view = now.driver.as_mut().unwrap();
    view.at = NOW;
    view.pods.clear();
    assert_eq!(reported(&mut diff, &now), [""; 0], "heartbeats are no news");
    let wave = now.driver.as_mut().and_then(|view| view.wave.as_mut()).unwrap();
    (wave.name, wave.number) = ("late".into(), 2);
    assert_eq!(
        reported(&mut diff, &now),
        ["wave     2 of 2, late: 0 pods to evict"]
    );
}

#[test]
fn another_drains_progress_is_not_reported_as_this_ones() {
    let mut diff = StatusDiff::default();
    for (of_mark, of_view) in [("other", "other"), ("other", "id"), ("id", "other")] {
        let mut reported = reported(&mut diff, &status(mark(of_mark), Some(view(of_view))));
        // Another drain is reported, and only once.
        reported.retain(|line| !line.starts_with("queued "));
        assert_eq!(reported, [""; 0], "{of_mark} {of_view}");
    }
}

#[test]
fn a_queued_drain_names_the_one_before_it_and_reports_nothing_of_it() {
    let lifecycle_event = |name: &str, state: &str| LifecycleEvent {
        name: name.into(),
        transition: "drain".into(),
        claim: ClaimStatus::parse(state),
        ..LifecycleEvent::default()
    };
    let own = event().name;
    let mut diff = StatusDiff::default();
    let mut now = status(mark("other"), Some(view("other")));
    now.pods.push(fixture::running("a"));
    now.lifecycle_events = vec![
        lifecycle_event("first", "Claimed"),
        lifecycle_event(&own, "Pending"),
    ];
    let mut begun = StatusDiff::default();
    begun.begin(&event(), &now, NOW);
    let queued = ["queued   behind LifecycleEvent first: begins when that ends"];
    assert_eq!(
        reported(&mut begun, &now),
        queued,
        "it was not reported before it was asked for"
    );
    assert_eq!(reported(&mut diff, &now), queued);
    now.pods.clear();
    assert_eq!(
        reported(&mut diff, &now),
        [""; 0],
        "the pod left for the other one"
    );
    now.lifecycle_events = vec![lifecycle_event(&own, "Pending")];
    let queued = ["queued   behind LifecycleEvent drain-worker-1: begins when that ends"];
    assert_eq!(reported(&mut diff, &now), queued);
    now.node.checkpoint = None;
    assert_eq!(reported(&mut diff, &now), [""; 0]);
    assert!(!diff.is_queued());
    now.pods.push(fixture::running("b"));
    reported(&mut diff, &now);
    now.pods.clear();
    assert_eq!(reported(&mut diff, &now).len(), 1, "now they are its own");
}

#[test]
fn a_hooks_start_progress_and_end_are_reported() {
    let mut diff = StatusDiff::default();
    let hook = SavedHook {
        policy: "slurm".into(),
        phase: HookPhase::BeforeDrain,
        subject: Subject::Node,
        state: Vec::new(),
        state_version: None,
        started: NOW,
    };
    let mut begun = mark("id");
    begun.hooks.push(hook);
    let bare = status(begun.clone(), None);
    assert_eq!(
        reported(&mut diff, &bare),
        ["hook     slurm before-drain, running"]
    );
    assert_eq!(reported(&mut diff, &bare), [""; 0]);
    let mut known = view("id");
    (known.plan, known.wave) = (None, None);
    known.hooks.push(HookStatus {
        policy: "slurm".into(),
        phase: HookPhase::BeforeDrain,
        subject: Subject::Node,
        since: NOW,
        progress: "0 of 1 drained".into(),
        waiting_for: vec![WaitingOn {
            what: "slurm/gpu-0".into(),
            detail: "jobs run".into(),
            since: None,
        }],
    });
    let waiting = status(begun, Some(known.clone()));
    let expected = [
        "hook     slurm before-drain, running: 0 of 1 drained",
        "           waits for slurm/gpu-0: jobs run",
    ];
    assert_eq!(reported(&mut diff, &waiting), expected);
    assert_eq!(reported(&mut diff, &waiting), [""; 0]);
    let mut through = mark("id");
    through
        .done
        .push(("slurm".into(), HookPhase::BeforeDrain, Subject::Node));
    // The driver's status may be older than the node's.
    let through = status(through, Some(known));
    assert_eq!(
        reported(&mut diff, &through),
        ["hook     slurm finished before-drain after 0s"]
    );
    assert_eq!(reported(&mut diff, &through), [""; 0]);
}

/// A budget holds up hundreds of pods. To programs each is an object.
#[test]
fn pods_that_wait_for_the_same_are_counted_from_the_fourth_on() {
    let mut diff = StatusDiff::default();
    let text = r#"{"v":1,"drain":"id","at":999000,"pods":[{"wave":"all","r":"BudgetExhausted","who":"web",
        "text":"it needs 8 healthy pods and has 8","pods":[["a",null],["b",null],["c",null],["d",null],["e",null]]}],"more":0}"#;
    let mut now = status(mark("id"), status_from_text(text));
    now.pods = ["a", "b", "c", "d", "e"].map(fixture::running).to_vec();
    let why = "budget web blocks it: it needs 8 healthy pods and has 8";
    let mut expected: Vec<_> = ["a", "b", "c"]
        .map(|pod| format!("waits    shop/{pod}: {why}"))
        .into();
    expected.push(format!(
        "waits    and 2 more pods of shop wait for the same: {why}"
    ));
    assert_eq!(reported(&mut diff, &now), expected);
    assert_eq!(reported(&mut diff, &now), [""; 0]);
    let story = FollowOutput::begin("worker-1".into(), NOW);
    let seen = StatusDiff::default().observe(&event(), &now, NOW);
    let objects = seen.iter().flat_map(|seen| story.lines(Format::Json, NOW, seen));
    assert_eq!(objects.filter(|line| line.contains("podWaits")).count(), 5);
}

/// The status has the plan, and comes a moment later than the cordon. A driver may not be able to publish it.
#[test]
fn what_pods_wait_for_is_reported_after_the_plan() {
    for (marked, is_reported) in [(999_000, false), (990_000, true)] {
        let mut now = status(mark("id"), None);
        let long_ago = Deletion {
            at: Time::from_millis(1),
            grace_seconds: 1,
        };
        now.pods = vec![Pod {
            deletion: Some(long_ago),
            ..fixture::running("a")
        }];
        let mut diff = StatusDiff {
            marked: Some(Time::from_millis(marked)),
            ..StatusDiff::default()
        };
        let reported = reported(&mut diff, &now);
        assert_eq!(
            reported.iter().any(|line| line.starts_with("waits ")),
            is_reported,
            "{reported:?}"
        );
    }
}

#[test]
fn a_lifted_cordon_is_reported_once_each_time() {
    let mut diff = StatusDiff::default();
    let mut now = status(mark("id"), None);
    let held =
        ["held     the node was uncordoned outside Scupper: evictions are paused until it is cordoned again"];
    assert_eq!(reported(&mut diff, &now), [""; 0]);
    for _ in 0..2 {
        now.node.unschedulable = false;
        assert_eq!(reported(&mut diff, &now), held);
        assert_eq!(reported(&mut diff, &now), [""; 0]);
        now.node.unschedulable = true;
        assert_eq!(reported(&mut diff, &now), [""; 0]);
    }
}

#[test]
fn each_forced_pod_is_reported_once_and_those_without_a_name_are_counted() {
    let mut diff = StatusDiff::default();
    let mut now = status(mark("id"), Some(view("id")));
    now.pods = ["a", "b", "c"].map(fixture::running).to_vec();
    reported(&mut diff, &now);
    let mut forced = |count, named: &[&str]| {
        let deleted = ForcedNames {
            count,
            named: named.iter().map(|name| (*name).to_owned()).collect(),
        };
        now.driver.as_mut().unwrap().force = Some(ForceStatus {
            deleted,
            ..ForceStatus::default()
        });
        reported(&mut diff, &now)
    };
    let line = |what: &str| format!("force    {what} remained shortly before the deadline; deleted");
    assert_eq!(forced(0, &[]), [""; 0]);
    assert_eq!(forced(1, &["shop/a"]), [line("shop/a")]);
    assert_eq!(forced(1, &["shop/a"]), [""; 0]);
    assert_eq!(
        forced(4, &["shop/a", "shop/b"]),
        [line("shop/b"), line("2 more pods")]
    );
    // Another process continues the drain.
    assert_eq!(forced(1, &["shop/b"]), [""; 0]);
    assert_eq!(
        forced(5, &["shop/b", "shop/c"]),
        [line("shop/c"), line("1 more pod")]
    );
}

#[test]
fn a_plan_names_what_is_deleted_at_the_deadline_and_restarted() {
    let text = r#"{"v":1,"drain":"id","at":999000,
        "plan":{"leaving":1,"staying":0,"waves":[],"stays":[],"surge":{"restarts":[
            {"deployment":"shop/web","replicas":1,"budget":"keep","pods":["shop/a"],"more":0,"new":1}],
            "impossible":[],"new":1}},
        "force":{"begins":1030000,"ahead":{"count":1,"named":["shop/a"]},"deleted":{"count":0,"named":[]}},
        "more":0}"#;
    let now = status(mark("id"), status_from_text(text));
    let expected = [
        "plan     1 pod to evict in 0 waves, 0 to keep",
        "         in 30s: deletes any remaining of 1 pod: shop/a",
        "         Deployment shop/web is restarted to replace shop/a (budget keep)",
    ];
    assert_eq!(reported(&mut StatusDiff::default(), &now), expected);
}
