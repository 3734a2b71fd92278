//! Waiting for jobs, and the messages until they have ended.

use std::time::Duration;

use scupper_sdk::{
    Hooks, Outcome, Pending, Phase, Pod, Subject,
    testing::{Host, pod},
};

use crate::Slurm;
use crate::tests::{busy_host, slurmd};

fn step(host: &Host) -> Outcome {
    host.step::<Slurm>(Phase::BeforeDrain, Subject::Node)
}

fn pending(outcome: Outcome) -> Pending {
    match outcome {
        Outcome::Pending(pending) => pending,
        other => panic!("{other:?}"),
    }
}

/// The message about a single Slurm pod; `None` if the drain continues.
fn message_about(worker: Pod) -> Option<String> {
    let host = Host::new();
    host.pods([worker]);
    match step(&host) {
        Outcome::Done => None,
        outcome => Some(pending(outcome).waiting_for[0].detail.clone()),
    }
}

#[test]
fn the_conditions_decide() {
    let unknown = Some("unknown: the SlurmNodeState conditions do not say whether the node has jobs");
    let idle = Some("no jobs, but Slurm does not drain the node yet");
    for (states, said) in [
        // Drained: the flag, and a base state without jobs.
        (&["Idle", "Drain"][..], None),
        (&["Down", "Drain"], None),
        (&["Down", "Drain", "NotResponding"], None),
        // Draining: the flag is set at once, long before the last job ends.
        (&["Allocated", "Drain"], Some("allocated: jobs still run")),
        (&["Mixed", "Drain"], Some("mixed: jobs still run")),
        (
            &["Idle", "Completing", "Drain"],
            Some("completing: jobs still run"),
        ),
        (
            &["Down", "Completing", "Drain"],
            Some("completing: jobs still run"),
        ),
        // Not draining: the next job may begin at any moment.
        (&["Idle"], idle),
        (&["Idle", "Drain", "Undrain"], idle),
        (&["Down"], idle),
        (
            &["Mixed"],
            Some("mixed: jobs still run, and Slurm does not drain the node yet"),
        ),
        (
            &["Allocated", "Drain", "Undrain"],
            Some("allocated: jobs still run, and Slurm does not drain the node yet"),
        ),
        // Unknown is never idle.
        (&[], unknown),
        (&["Drain"], unknown),
        (&["Unknown", "Drain"], unknown),
        (&["Unknown", "Idle", "Drain"], unknown),
        (&["Maintenance", "Drain"], unknown),
        (&["SomethingNew", "Drain"], unknown),
    ] {
        assert_eq!(
            message_about(slurmd("worker-0", states)).as_deref(),
            said,
            "{states:?}"
        );
    }
}

#[test]
fn a_condition_that_is_not_true_is_ignored() {
    for status in ["False", "Unknown", "true", ""] {
        let worker = slurmd("worker-0", &["Idle"]).with_condition("SlurmNodeStateDrain", status);
        assert!(message_about(worker).is_some(), "{status}");
    }
    let worker = slurmd("worker-0", &["Idle", "Drain"]).with_condition("SlurmNodeStateAllocated", "False");
    assert_eq!(message_about(worker), None);
}

#[test]
fn a_pod_that_is_not_ready_counts_like_any_other() {
    let mut worker = slurmd("worker-0", &["Mixed", "Drain"]);
    worker.ready = false;
    assert!(message_about(worker).is_some());
}

#[test]
fn it_reports_what_it_waits_for_and_since_when() {
    let host = Host::new();
    let began = host.now();
    host.pods([
        slurmd("worker-0", &["Allocated", "Drain"]),
        slurmd("worker-1", &["Idle", "Drain"]),
        slurmd("worker-2", &["Mixed", "Drain"]),
        pod("shop/cart"),
    ]);
    let first = pending(step(&host));
    assert_eq!(
        (first.progress.as_str(), first.again_after),
        (
            "1 of 3 Slurm nodes drained; squeue --nodelist worker-0,worker-2 lists their jobs",
            5_000
        )
    );
    let waiting: Vec<_> = first
        .waiting_for
        .iter()
        .map(|on| (on.what.as_str(), on.since))
        .collect();
    assert_eq!(
        waiting,
        [("slurm/worker-0", Some(began)), ("slurm/worker-2", Some(began))]
    );

    // A quarter of an hour later one job has ended, and the wait still has its original start.
    host.advance(Duration::from_secs(900));
    host.pods([
        slurmd("worker-0", &["Allocated", "Drain"]),
        slurmd("worker-1", &["Idle", "Drain"]),
        slurmd("worker-2", &["Idle", "Drain"]),
    ]);
    let second = pending(step(&host));
    assert_eq!(
        second.progress,
        "2 of 3 Slurm nodes drained; squeue --nodelist worker-0 lists their jobs"
    );
    assert_eq!(second.waiting_for[0].since, Some(began));

    host.pods([slurmd("worker-0", &["Idle", "Drain"])]);
    assert_eq!(step(&host), Outcome::Done);
}

#[test]
fn a_pod_put_back_under_the_same_name_is_another_pod() {
    let host = busy_host();
    assert_eq!(pending(step(&host)).waiting_for.len(), 1);
    host.advance(Duration::from_secs(60));
    let created = host.now();
    host.advance(Duration::from_secs(10));
    host.pods([slurmd("worker-0", &[]).replaced_at(created)]);
    let waiting = pending(step(&host));
    assert_eq!(waiting.waiting_for[0].since, Some(created));
    assert!(waiting.waiting_for[0].detail.starts_with("unknown"));
}

#[test]
fn an_unreadable_state_is_ignored() {
    let host = busy_host();
    let mut call = scupper_sdk::Call {
        phase: Phase::BeforeDrain,
        subject: Subject::Node,
        drain: scupper_sdk::Drain {
            id: String::new(),
            name: String::new(),
            trigger: String::new(),
            started: 0,
            found_drained: false,
            held: false,
            deadline: None,
            now: host.now(),
        },
        node: scupper_sdk::Node {
            uid: String::new(),
            name: String::new(),
            labels: Vec::new(),
            annotations: Vec::new(),
            unschedulable: true,
            own_cordon: true,
            conditions: Vec::new(),
        },
        pods: vec![slurmd("worker-0", &["Mixed", "Drain"])],
        state: Vec::new(),
    };
    for state in [&b"x"[..], b"123456789", &[0xff; 1024]] {
        call.state = state.to_vec();
        let outcome = Slurm::step(&call);
        assert_eq!(pending(outcome).waiting_for[0].since, Some(host.now()));
    }
}

#[test]
fn finished_pods_and_other_pods_are_not_awaited() {
    let mut ended = slurmd("worker-0", &["Allocated"]);
    ended.phase = scupper_sdk::PodPhase::Failed;
    let host = Host::new();
    host.pods([
        ended,
        pod("shop/cart").with_label("app.kubernetes.io/name", "cart"),
    ]);
    assert_eq!(step(&host), Outcome::Done);
    assert_eq!(host.node_annotation(crate::tests::REASON), None);
}

#[test]
fn with_hold_slurm_pods_other_pods_are_evicted_meanwhile() {
    let host = busy_host();
    host.config("hold", "slurm-pods");
    assert_eq!(step(&host), Outcome::Done);
    let wave = |name: &str| host.step::<Slurm>(Phase::BeforeWave, Subject::Wave(name.to_owned()));
    assert_eq!(wave("all"), Outcome::Done);
    assert_eq!(
        pending(wave("slurm")).progress,
        "0 of 1 Slurm nodes drained; squeue --nodelist worker-0 lists their jobs"
    );
}

#[test]
fn no_busy_slurm_pod_is_evicted_in_any_wave() {
    let host = busy_host();
    assert!(
        !Slurm::phases().contains(&Phase::BeforeEvict),
        "the whole node waits, there is nothing left to see"
    );
    host.config("hold", "slurm-pods");
    assert!(Slurm::phases().contains(&Phase::BeforeEvict));
    let evict = |name: &str| {
        let uid = host.pod(name).unwrap().uid;
        host.step::<Slurm>(Phase::BeforeEvict, Subject::Pod(uid))
    };
    assert_eq!(evict("shop/cart"), Outcome::Done);
    assert_eq!(pending(evict("slurm/worker-0")).waiting_for.len(), 1);
    host.pods([
        slurmd("worker-0", &["Idle", "Drain"]),
        slurmd("worker-1", &["Mixed", "Drain"]),
    ]);
    assert_eq!(evict("slurm/worker-0"), Outcome::Done);
    assert_eq!(
        pending(evict("slurm/worker-1")).progress,
        "0 of 1 Slurm nodes drained; squeue --nodelist worker-1 lists their jobs"
    );
}

#[test]
fn slurm_pods_are_checked_again_before_each_wave_and_before_the_end() {
    let host = busy_host();
    let later = || {
        let wave = |name: &str| host.step::<Slurm>(Phase::BeforeWave, Subject::Wave(name.to_owned()));
        [
            wave("all"),
            wave("slurm"),
            host.step::<Slurm>(Phase::AfterDrain, Subject::Node),
        ]
    };
    host.pods([slurmd("worker-0", &["Mixed"]), pod("shop/cart")]);
    for outcome in later() {
        assert_eq!(
            pending(outcome).waiting_for[0].detail,
            "mixed: jobs still run, and Slurm no longer drains the node: drain it there again, or cancel this drain"
        );
    }
    host.config("hold", "slurm-pods");
    assert_eq!(later()[0], Outcome::Done);
    host.pods([slurmd("worker-0", &["Idle", "Drain"])]);
    assert_eq!(later(), [Outcome::Done, Outcome::Done, Outcome::Done]);
}

#[test]
fn slurm_pods_that_stay_are_awaited_before_any_pod_leaves() {
    let host = busy_host();
    host.config("hold", "slurm-pods");
    host.pods([
        slurmd("worker-0", &["Mixed", "Drain"]).of_daemon_set(),
        pod("shop/cart"),
    ]);
    assert_eq!(pending(step(&host)).waiting_for[0].what, "slurm/worker-0");
    host.pods([slurmd("worker-0", &["Idle", "Drain"]).of_daemon_set()]);
    assert_eq!(step(&host), Outcome::Done);
}
