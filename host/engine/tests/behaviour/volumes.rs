//! The wait for the node's volumes after its last pod.

use std::time::Duration;

use crate::harness::{Host, START, hooks, node, pod, request};
use scupper_engine::{
    Answer, AttachedVolume, Checkpoint, Event, HookPhase, Outcome, Phase, Pod, Request, Settings,
    StepOutcome, VolumeClaim, VolumeWait, VolumesLeft,
};

fn waits(at_most: u64, or_fail: bool) -> Request {
    Request {
        settings: Settings {
            wait_for_volumes: Some(VolumeWait {
                at_most: Duration::from_secs(at_most),
                or_fail,
            }),
            ..Settings::default()
        },
        policies: vec![hooks("slurm", &[HookPhase::AfterDrain])],
        ..request()
    }
}

/// The volume of this claim.
fn volume(claim: &str) -> AttachedVolume {
    AttachedVolume {
        attachment: format!("csi-{claim}"),
        volume: format!("pv-{claim}"),
        claim: Some(VolumeClaim {
            namespace: "ns".to_owned(),
            name: claim.to_owned(),
        }),
        attacher: "csi.example.com".to_owned(),
        problem: String::new(),
    }
}

fn with_claim(pod: Pod, claim: &str) -> Pod {
    Pod {
        volume_claims: vec![claim.to_owned()],
        ..pod
    }
}

fn attached(claims: &[&str]) -> Answer {
    Answer::Volumes(claims.iter().map(|claim| volume(claim)).collect())
}

fn changed(claims: &[&str]) -> Event {
    Event::Volumes(claims.iter().map(|claim| volume(claim)).collect())
}

fn left(claims: &[&str]) -> VolumesLeft {
    VolumesLeft::Attached(claims.iter().map(|claim| volume(claim)).collect())
}

fn unavailable() -> Answer {
    Answer::Unavailable {
        message: "no connection".to_owned(),
    }
}

/// Its only pod is gone, and a list has shown it.
fn emptied(request: Request) -> Host {
    let mut host = Host::new(request);
    host.begin(&[with_claim(pod("a"), "data")]).written("cordon");
    host.accepted("evict").gone(&["a"]).listed(&[]);
    host.notices();
    host
}

/// The last hook, the list after it, and the last write.
fn goes_on_to_its_end(host: &mut Host) -> &mut Host {
    host.stepped("step slurm after-drain", StepOutcome::Done)
        .written("save verifying")
        .listed(&[])
        .written("save finished")
}

#[test]
fn without_the_setting_no_volume_is_listed() {
    let mut host = emptied(Request {
        settings: Settings::default(),
        ..waits(300, false)
    });
    host.does("step slurm after-drain node");
}

#[test]
fn where_no_volume_is_attached_one_list_is_all() {
    let mut host = emptied(waits(300, false));
    assert_eq!(host.drain.phase(), Phase::Detaching);
    host.does("list-volumes").answer("list-volumes", attached(&[]));
    host.listed(&[])
        .does("step slurm after-drain node")
        .reports("phase verifying");
    goes_on_to_its_end(&mut host);
    let summary = host.summary();
    assert_eq!(
        (summary.volume_wait, summary.volumes_left),
        (Duration::ZERO, None)
    );
}

#[test]
fn the_last_hooks_wait_until_a_list_confirms_what_the_watch_reports() {
    let mut host = emptied(waits(300, false));
    host.answer("list-volumes", attached(&["data", "logs"]));
    host.does("save detaching, ours").reports(
        "awaits volumes since 0s, for 5m00s: 2 volumes still attached: \
         pv-data (claim ns/data), pv-logs (claim ns/logs)",
    );
    host.written("save").wait(20_000).handle(changed(&["logs"]));
    host.does("")
        .reports("awaits volumes since 20s, for 4m40s: 1 volume still attached: pv-logs (claim ns/logs)");
    host.wait(10_000)
        .handle(changed(&[]))
        .does("list-volumes")
        .reports("");
    host.answer("list-volumes", attached(&[]));
    host.listed(&[])
        .does("step slurm after-drain node")
        .reports("volumes detached\nphase verifying");
    goes_on_to_its_end(&mut host);
    let summary = host.summary();
    assert_eq!(
        (summary.volume_wait, summary.volumes_left),
        (Duration::from_secs(30), None)
    );
    assert_eq!(host.drain.outcome(), Some(&Outcome::Drained));
}

#[test]
fn a_list_that_is_older_than_an_event_says_nothing() {
    let mut host = emptied(waits(300, false));
    host.skip().handle(changed(&["data"]));
    host.answer("list-volumes", attached(&[])).does("list-volumes");
    host.answer("list-volumes", attached(&["data"])).written("save");
    assert_eq!(host.drain.outcome(), None);
    host.handle(changed(&[])).answer("list-volumes", attached(&[]));
    host.listed(&[]).does("step slurm after-drain node");
}

#[test]
fn the_volume_of_a_pod_that_stays_is_not_waited_for() {
    let mut host = Host::new(waits(300, false));
    let mut agent = with_claim(pod("agent"), "cache");
    agent.controller = Some(crate::harness::controller("DaemonSet", "agents"));
    host.begin(&[pod("a"), agent.clone()]).written("cordon");
    host.accepted("evict").gone(&["a"]).listed(&[agent.clone()]);
    host.answer("list-volumes", attached(&["cache"]));
    host.listed(&[agent]).does("step slurm after-drain node");
}

#[test]
fn when_the_time_is_over_the_drain_is_done_and_names_what_is_attached() {
    let mut host = emptied(waits(60, false));
    host.answer("list-volumes", attached(&["data"])).written("save");
    host.notices();
    host.wait(59_999).does("");
    host.wait(1)
        .listed(&[])
        .does("step slurm after-drain node")
        .reports("volumes settled: 1 volume still attached: pv-data (claim ns/data)\nphase verifying");
    goes_on_to_its_end(&mut host);
    assert_eq!(host.summary().volumes_left, Some(left(&["data"])));
    assert_eq!(host.drain.outcome(), Some(&Outcome::Drained));
}

#[test]
fn where_the_request_says_so_the_drain_fails_instead() {
    let mut host = emptied(waits(60, true));
    host.answer("list-volumes", attached(&["data"])).written("save");
    host.wait(60_000).written("save");
    host.does("").ends(&Outcome::Failed {
        message: "the volumes of the node were not detached within 1m00s: \
                  1 volume still attached: pv-data (claim ns/data)"
            .to_owned(),
    });
}

#[test]
fn what_cannot_be_read_does_not_count_as_detached() {
    let mut host = emptied(waits(30, false));
    host.answer("list-volumes", unavailable()).reports(
        "retrying list-volumes: no connection\n\
         awaits volumes since 0s, for 30s: cannot read VolumeAttachments: no connection",
    );
    for _ in 0..10 {
        if host.wait(15_000).asks("list-volumes") {
            host.answer("list-volumes", unavailable());
        }
    }
    let unknown = "volumes settled: cannot read VolumeAttachments: no connection";
    assert!(host.notices().contains(unknown));
    host.listed(&[]);
    assert!(host.asks("step slurm after-drain"));
}

#[test]
fn a_silent_watch_is_not_trusted_for_ever() {
    let mut host = emptied(waits(300, false));
    host.answer("list-volumes", attached(&["data"])).written("save");
    host.wait(59_999).does("");
    host.wait(1).does("list-volumes");
    host.answer("list-volumes", attached(&[]));
    host.listed(&[]).does("step slurm after-drain node");
}

#[test]
fn the_wait_leaves_time_for_the_end_before_the_deadline() {
    let mut host = emptied(Request {
        deadline: Some(START + Duration::from_secs(100)),
        ..waits(300, false)
    });
    host.answer("list-volumes", attached(&["data"])).written("save");
    host.wait(89_999).does("list-volumes");
    host.wait(1).listed(&[]).does("step slurm after-drain node");
}

#[test]
fn a_deadline_that_is_moved_to_now_ends_the_drain_and_its_end_names_the_volumes() {
    let mut host = emptied(waits(300, false));
    host.answer("list-volumes", attached(&["data"])).written("save");
    let now = host.wait(1_000).now;
    host.handle(Event::Deadline(Some(now)));
    host.written("save");
    let summary = host.summary();
    assert_eq!(summary.volumes_left, Some(left(&["data"])));
    assert_eq!(summary.volume_wait, Duration::from_secs(1));
}

#[test]
fn a_pod_that_comes_meanwhile_leaves_first_and_the_time_goes_on() {
    let mut host = emptied(waits(300, false));
    host.answer("list-volumes", attached(&["data"])).written("save");
    host.wait(49_000).handle(Event::PodApplied(pod("b"))).wait(1_000);
    host.accepted("evict b").gone(&["b"]).listed(&[]);
    host.skip().notices();
    host.answer("list-volumes", attached(&["data"]));
    host.reports("awaits volumes since 50s, for 4m10s: 1 volume still attached: pv-data (claim ns/data)");
}

#[test]
fn a_list_from_before_such_a_pod_says_nothing() {
    let mut host = emptied(waits(300, false));
    host.skip().handle(Event::PodApplied(pod("b"))).wait(1_000);
    host.accepted("evict b").gone(&["b"]).listed(&[]).does("");
    host.answer("list-volumes", attached(&[])).does("list-volumes");
}

#[test]
fn after_a_crash_the_wait_goes_on_from_its_beginning() {
    let mut host = emptied(waits(60, false));
    host.answer("list-volumes", attached(&["data"])).skip();
    let saved = host.last_checkpoint();
    assert_eq!(
        (saved.phase, saved.volumes_since),
        (Phase::Detaching, Some(START))
    );
    let cordoned = scupper_engine::Node {
        unschedulable: true,
        checkpoint: Some(saved.clone()),
        ..node()
    };
    let resumed = |since: Option<scupper_engine::Time>| {
        let mark = Checkpoint {
            volumes_since: since,
            ..saved.clone()
        };
        let mut host = Host::resume(waits(60, false), mark);
        host.begin_with(cordoned.clone(), &[], &[]).listed(&[]);
        host.notices();
        host.answer("list-volumes", attached(&["data"]));
        host
    };
    let since = START - Duration::from_secs(50);
    resumed(Some(since))
        .reports("awaits volumes since 50s, for 10s: 1 volume still attached: pv-data (claim ns/data)");
    // It is over, and looked at once.
    let since = START - Duration::from_secs(500);
    resumed(Some(since))
        .listed(&[])
        .does("step slurm after-drain node");
    // Another machine's clock was ahead.
    let since = START + Duration::from_secs(500);
    resumed(Some(since))
        .reports("awaits volumes since 0s, for 1m00s: 1 volume still attached: pv-data (claim ns/data)");
}

#[test]
fn a_cancel_ends_the_wait() {
    let mut host = emptied(waits(300, false));
    host.answer("list-volumes", attached(&["data"])).written("save");
    host.handle(Event::Cancel {
        reason: "enough".to_owned(),
    });
    assert_eq!(host.drain.outcome().map(Outcome::name), Some("Cancelled"));
    host.wait(120_000);
    assert!(!host.asks("list-volumes") && !host.asks("step"));
}

#[test]
fn a_pod_that_only_a_list_after_the_wait_shows_leaves_first() {
    let mut host = emptied(Request {
        policies: vec![],
        ..waits(300, false)
    });
    host.answer("list-volumes", attached(&["data"])).written("save");
    host.wait(50_000).handle(changed(&[]));
    host.answer("list-volumes", attached(&[])).does("list-pods");
    // The watch has lost it.
    host.listed(&[pod("late")]).wait(1_000);
    assert_eq!(host.drain.phase(), Phase::Evicting);
    assert!(host.asks("evict late"));
    assert_eq!(host.drain.outcome(), None);
    host.accepted("evict late").gone(&["late"]).listed(&[]);
    host.answer("list-volumes", attached(&[])).listed(&[]);
    assert_eq!(host.drain.outcome(), Some(&Outcome::Drained));
}
