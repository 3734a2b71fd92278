//! `--skip-wait-for-delete-timeout` in the middle of a drain: a pod that has been terminating for too long is skipped.

use std::time::Duration;

use crate::harness::{Host, ending, planner, pod, request};
use scupper_engine::{Event, Filters, Outcome, Pod, PolicyInfo, Reason, Request, Settings, Uid, Wave};

/// A drain that waits for no pod that has been terminating for more than ten seconds.
fn impatient(policies: Vec<PolicyInfo>) -> Host {
    let filters = Filters {
        skip_wait_for_delete_timeout: Duration::from_secs(10),
        ..Filters::default()
    };
    Host::new(Request {
        settings: Settings {
            filters,
            ..Settings::default()
        },
        policies,
        ..request()
    })
}

#[test]
fn a_pod_that_terminates_for_too_long_is_skipped() {
    let mut host = impatient(Vec::new());
    // Its grace period ends after 30 seconds.
    let stuck = ending(pod("stuck"));
    host.begin(&[stuck.clone(), pod("web")])
        .written("cordon")
        .accepted("evict web")
        .gone(&["web"]);
    host.wait(40_999).does("");
    host.waits("ns/stuck TerminatingPastGrace");
    host.notices();
    host.wait(1)
        .reports("planned 1 pods:\nphase verifying")
        .does("list-pods");
    host.waits("ns/stuck Kept");
    host.listed(&[stuck]).written("save").ends(&Outcome::Drained);
}

#[test]
fn it_blocks_no_wave_and_uses_no_slot() {
    let mut host = impatient(vec![planner("waves")]);
    let wave = |name: &str, pods: &[&str]| Wave {
        name: name.to_owned(),
        pods: pods.iter().map(|pod| Uid::new(*pod)).collect(),
        max_parallel: Some(1),
        timeout: None,
        max_grace_seconds: None,
        policy: String::new(),
    };
    let pods: Vec<Pod> = vec![ending(pod("stuck")), pod("next"), pod("last")];
    host.begin(&pods)
        .planned("waves", |plan| {
            plan.waves = vec![wave("first", &["stuck", "next"]), wave("second", &["last"])];
        })
        .written("cordon")
        .does("");
    host.wait(41_000).does("evict next").accepted("evict next");
    host.gone(&["next"]).does("evict last");
}

#[test]
fn without_a_timeout_a_drain_waits_for_terminating_pods() {
    let mut host = Host::new(request());
    host.begin(&[ending(pod("stuck"))]).written("cordon").skip();
    host.wait(3_600_000).does("");
    let waiting = host.drain.waiting();
    assert!(
        matches!(&waiting[..], [(_, Reason::TerminatingPastGrace { .. })]),
        "{waiting:?}"
    );
}

#[test]
fn late_events_do_not_undo_a_deletion() {
    let mut host = impatient(Vec::new());
    let web = pod("web");
    // Its grace period ends after 30 seconds.
    let deleted = ending(web.clone());
    host.begin(std::slice::from_ref(&web))
        .written("cordon")
        .accepted("evict web")
        .handle(Event::PodApplied(deleted))
        .handle(Event::PodApplied(web.clone()));
    host.wait(38_000);
    host.waits("ns/web TerminatingPastGrace");
    // A list requested long ago.
    host.handle(Event::Pods(vec![web]));
    host.wait(3_000).does("list-pods");
    host.waits("ns/web Kept");
}
