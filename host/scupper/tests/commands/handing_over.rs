//! If a driver runs on the node, the command delegates the drain to it.

use std::time::Duration;

use jiff::Timestamp;
use scupper_simulator::api::{Action, Fault, objects};
use serde_json::{Value, json};

use crate::kubelet_node::{Agent, DRIVER, EVENTS, asks, until};
use crate::rig::{Rig, Run};

pub(crate) fn lines(run: &Run) -> Vec<Value> {
    let lines = run.stdout.lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_driver_drains_and_restores_the_node() {
    for slm in [true, false] {
        let rig = Rig::new();
        let _agent = Agent::start(&rig, slm);
        rig.apply(rig.pod("web", "worker-1").takes(0.2));
        let run = rig.run(&asks("drain", &["--output", "json"]));
        assert_eq!(run.code, Some(0), "{run:#?}");
        let lines = lines(&run);
        let kinds: Vec<_> = lines.iter().map(|line| line["kind"].as_str().unwrap()).collect();
        assert_eq!(
            (kinds[0], kinds[kinds.len() - 1]),
            ("asked", "finished"),
            "{run:#?}"
        );
        // The plan and the wave are printed, however short the drain is.
        for kind in ["planned", "waveStarted", "podGone"] {
            let count = kinds.iter().filter(|it| **it == kind).count();
            assert_eq!(count, 1, "{kind}: {run:#?}");
        }
        assert_eq!(lines[lines.len() - 1]["outcome"], "Drained", "{run:#?}");
        assert!(rig.pods().is_empty() && rig.is_cordoned("worker-1"));
        assert_eq!(rig.mark("worker-1").unwrap()["by"], "LifecycleEvent");
        let run = rig.run(&asks("uncordon", &[]));
        assert_eq!(run.code, Some(0), "{run:#?}");
        assert!(run.stdout.contains("Uncordoned in"), "{run:#?}");
        assert!(!rig.is_cordoned("worker-1"));
    }
}

#[test]
fn the_flags_of_kubectl_go_with_it_and_mean_the_same() {
    for slm in [true, false] {
        let rig = Rig::new();
        let _agent = Agent::with(&rig, slm, &["--allow-overrides", "force"]);
        rig.apply(objects::pod("shop", "bare", "worker-1"));
        rig.apply(rig.pod("other", "worker-1"));
        // The driver alone would evict pods with an emptyDir; this command did not ask for that.
        let run = rig.run(&asks("drain", &[]));
        assert_eq!(run.code, Some(5), "{run:#?}");
        assert!(run.stdout.contains("use --force to override"), "{run:#?}");
        assert_eq!(rig.pods(), ["bare", "other"]);
        assert!(!rig.is_cordoned("worker-1"));
        let run = rig.run(&asks("drain", &["--force", "--pod-selector", "app!=other"]));
        assert_eq!(run.code, Some(0), "{run:#?}");
        assert_eq!(rig.pods(), ["other"]);
    }
}

/// Each node has some, and the driver keeps them unless its configuration or the flag says otherwise. It has no limit either.
#[test]
fn pods_of_daemonsets_need_no_flag_where_the_driver_keeps_them() {
    for slm in [true, false] {
        let rig = Rig::new();
        let _agent = Agent::start(&rig, slm);
        rig.apply(objects::daemon_set("shop", "agent"));
        rig.apply(objects::pod("shop", "agent-x", "worker-1").daemonset("agent"));
        rig.apply(rig.pod("web", "worker-1"));
        for (command, more, code) in [
            // What shows the drain agrees with it.
            ("plan", &[][..], 0),
            ("forecast", &[], 0),
            ("drain", &["--dry-run"], 0),
            ("plan", &["--local"], 5),
            ("forecast", &["--local"], 5),
            ("drain", &["--dry-run", "--local"], 5),
            ("plan", &["--ignore-daemonsets=false"], 5),
            ("drain", &["--ignore-daemonsets=false"], 5),
        ] {
            let run = rig.run(&asks(command, more));
            assert_eq!(run.code, Some(code), "{run:#?}");
            let is_refused = run.stdout.contains("use --ignore-daemonsets to ignore");
            assert_eq!(is_refused, code == 5, "{run:#?}");
        }
        // No driver obeys this flag, so the drain is local.
        let run = rig.run(&asks("plan", &["--disable-eviction"]));
        assert_eq!(run.code, Some(5), "{run:#?}");
        let run = rig.run(&asks("drain", &[]));
        assert_eq!(run.code, Some(0), "{run:#?}");
        assert!(!run.stdout.contains("  limit  "), "{run:#?}");
        assert!(!rig.pods().contains(&"web".to_owned()) && rig.pods().contains(&"agent-x".to_owned()));
    }
}

/// They may be why the node has a driver at all.
const LEFT_OUT: &str = "this leaves out the driver of worker-1, its policies and its settings: ";

#[test]
fn a_local_drain_leaves_no_policies_out_where_no_driver_is() {
    let rig = Rig::new();
    rig.apply(rig.pod("web", "worker-1"));
    let run = rig.run(&["drain", "worker-1", "--local"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:#?}");
}

/// The driver's own configuration says `force: false`; the right to create a LifecycleEvent does not change it.
#[test]
fn a_flag_that_overrides_the_operator_is_refused_and_nothing_changes() {
    for slm in [true, false] {
        let rig = Rig::new();
        let _agent = Agent::start(&rig, slm);
        rig.apply(objects::pod("shop", "bare", "worker-1").empty_dir());
        let run = rig.run(&asks(
            "drain",
            &["--force", "--delete-emptydir-data", "--grace-period=0"],
        ));
        assert_eq!(run.code, Some(5), "{run:#?}");
        for words in ["--force", "drain.allow-overrides", "--local"] {
            assert!(run.stdout.contains(words), "{words}: {run:#?}");
        }
        // A setting that the driver's configuration already has overrides nothing.
        assert!(!run.stdout.contains("--delete-emptydir-data,"), "{run:#?}");
        assert_eq!(rig.pods(), ["bare"]);
        assert!(!rig.is_cordoned("worker-1"));
        let run = rig.run(&asks("plan", &[]));
        let words = "With --delete-emptydir-data --force, which the driver's configuration must allow, it would go like this:";
        assert!(run.stdout.contains(words), "{run:#?}");
        let run = rig.run(&asks("drain", &["--force", "--delete-emptydir-data", "--local"]));
        assert_eq!(run.code, Some(0), "{run:#?}");
    }
}

/// Each pod has its own grace period, so which of them a number shortens is for the plan to report.
#[test]
fn a_grace_period_may_be_longer_than_a_pods_own_and_not_shorter() {
    for slm in [true, false] {
        let rig = Rig::new();
        let _agent = Agent::start(&rig, slm);
        rig.apply(rig.pod("quick", "worker-1").grace(1).takes(0.1));
        rig.apply(rig.pod("slow", "worker-1").grace(60).takes(0.1));
        let run = rig.run(&asks("drain", &["--grace-period=5"]));
        assert_eq!(run.code, Some(5), "{run:#?}");
        for words in [
            "shop/slow",
            "1m00s",
            "drain.allow-overrides",
            "grace-period",
            "--local",
        ] {
            assert!(run.stdout.contains(words), "{words}: {run:#?}");
        }
        assert!(!run.stdout.contains("shop/quick"), "{run:#?}");
        assert_eq!(rig.pods(), ["quick", "slow"]);
        assert!(!rig.is_cordoned("worker-1"));
        let run = rig.run(&asks("drain", &["--grace-period=60"]));
        assert_eq!(run.code, Some(0), "{run:#?}");
        assert!(rig.pods().is_empty());
    }
}

#[test]
fn a_drain_without_a_timeout_has_the_operators_deadline() {
    for (sla, allowed, timeout, ends) in [
        ("1h", "", &[][..], Some(3600)),
        ("1h", "", &["--timeout=2h"], Some(3600)),
        ("1h", "", &["--timeout=10m"], Some(600)),
        ("1h", "timeout", &["--timeout=2h"], Some(7200)),
        ("1h", "timeout", &[], Some(3600)),
        ("0", "", &[], None),
    ] {
        let rig = Rig::new();
        let _agent = Agent::with(&rig, false, &["--sla", sla, "--allow-overrides", allowed]);
        rig.apply(rig.pod("stuck", "worker-1").stuck());
        let mut drain = rig.start(&asks("drain", timeout));
        drain.prints("Claimed");
        let event = rig.objects(EVENTS).remove(0);
        let seconds = |time: &Value| {
            let time: Timestamp = time.as_str()?.parse().ok()?;
            Some(time.as_second())
        };
        let created = seconds(&event["metadata"]["creationTimestamp"]).unwrap();
        let given = seconds(&event["status"]["sla"]).map(|sla| sla - created);
        let fits = match (given, ends) {
            // The claim comes after the creation, and the report of the end takes some seconds.
            (Some(given), Some(ends)) => (ends..ends + 120).contains(&given),
            (given, ends) => given == ends,
        };
        assert!(fits, "sla {sla}, {timeout:?}: {given:?}, not {ends:?}");
    }
}

#[test]
fn a_flag_that_only_a_local_drain_obeys_is_named() {
    let rig = Rig::new();
    let _agent = Agent::start(&rig, false);
    rig.apply(rig.pod("web", "worker-1"));
    let run = rig.run(&asks("drain", &["--disable-eviction"]));
    assert_eq!(run.code, Some(3), "{run:#?}");
    assert!(
        run.stderr
            .contains("--disable-eviction cannot be passed to driver"),
        "{run:#?}"
    );
    assert!(rig.objects(EVENTS).is_empty());
    let run = rig.run(&asks("drain", &["--disable-eviction", "--local"]));
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert_eq!(rig.mark("worker-1").unwrap()["by"], "command");
    assert!(run.stderr.contains(LEFT_OUT), "{run:#?}");
}

#[test]
fn the_given_timeout_is_the_drains_own() {
    for slm in [true, false] {
        let rig = Rig::new();
        let _agent = Agent::start(&rig, slm);
        rig.apply(rig.pod("stuck", "worker-1").stuck());
        let run = rig.run(&asks("drain", &["--timeout", "3s"]));
        assert_eq!(run.code, Some(6), "{run:#?}");
        assert!(run.stdout.contains("DeadlineExceeded in"), "{run:#?}");
        assert!(rig.is_cordoned("worker-1"), "as kubectl leaves it");
    }
}

#[test]
fn a_limit_before_the_given_timeout_is_named() {
    for (slm, timeout, words) in [
        (
            true,
            "2h",
            "it ends after 5m00s at the latest, before --timeout 2h00m: the operator's drain.sla",
        ),
        (
            true,
            "0",
            "it ends after 5m00s at the latest: the operator's drain.sla",
        ),
        (true, "1m", ""),
        (false, "1m", ""),
        (
            false,
            "2h",
            "it ends after 5m00s at the latest, before --timeout 2h00m: the operator's drain.sla",
        ),
        (
            false,
            "0",
            "it ends after 5m00s at the latest: the operator's drain.sla",
        ),
    ] {
        let rig = Rig::new();
        let _agent = Agent::with(&rig, slm, &["--sla", "5m"]);
        let run = rig.run(&asks("drain", &["--timeout", timeout]));
        assert_eq!(run.code, Some(0), "{run:#?}");
        let reported = run.stdout.lines().filter(|line| line.contains("  limit  "));
        assert_eq!(
            reported.count(),
            usize::from(!words.is_empty()),
            "{timeout}: {run:#?}"
        );
        assert!(run.stdout.contains(words), "{words}: {run:#?}");
    }
}

#[test]
fn invalid_flags_fail_the_event_and_change_nothing() {
    for slm in [true, false] {
        let rig = Rig::new();
        let _agent = Agent::start(&rig, slm);
        rig.apply(rig.pod("web", "worker-1"));
        let mut event: Value = objects::lifecycle_event("odd", DRIVER, "worker-1").build();
        event["metadata"]["annotations"] = json!({"scupper.dev/drain-flags": "{\"force\": true}"});
        rig.apply(event);
        let reported = || {
            let events = rig.objects("events.events.k8s.io").into_iter();
            events
                .filter(|it| {
                    it["note"]
                        .as_str()
                        .is_some_and(|note| note.contains("drain-flags"))
                })
                .count()
        };
        let over = || {
            let events = rig.objects(EVENTS);
            events.is_empty() || events[0]["status"]["claimStatus"] == "Failed"
        };
        until("the event has failed", over);
        until("an Event says why", || reported() == 1);
        assert_eq!(rig.pods(), ["web"]);
        assert!(!rig.is_cordoned("worker-1"));
    }
}

/// The claimant queues the second drain; it names the one before it, and reports nothing of the first one.
#[test]
fn the_second_of_two_requests_names_the_one_it_is_queued_behind() {
    let rig = Rig::new();
    let _agent = Agent::start(&rig, false);
    rig.apply(rig.pod("db", "worker-1"));
    rig.budget("keep-db", "db");
    // Neither is claimed before both exist.
    let fault = Fault::new(Action::Status(503, None))
        .method("PATCH")
        .path("*/lifecycleevents/*");
    rig.api.faults([fault]);
    let mut first = rig.start(&asks("drain", &["--claim-timeout", "5s"]));
    first.prints("handed over to the driver");
    let mut second = rig.start(&asks("drain", &["--claim-timeout", "5s"]));
    second.prints("handed over to the driver");
    rig.api.clear_faults();
    until("one of them holds the pod", || {
        [&first, &second]
            .iter()
            .any(|drain| drain.stdout().contains("waits    shop/db"))
    });
    if second.stdout().contains("waits    shop/db") {
        std::mem::swap(&mut first, &mut second);
    }
    second.prints("queued   behind LifecycleEvent drain-worker-1-");
    // For longer than it may wait without a claimant.
    std::thread::sleep(Duration::from_secs(6));
    let reported = second.stdout();
    for others in ["waits", "plan ", "wave ", "gone", "node     ", "cancel"] {
        assert!(
            !reported
                .lines()
                .any(|line| line.get(12..).is_some_and(|line| line.starts_with(others))),
            "{reported}"
        );
    }
    rig.api
        .store()
        .delete("poddisruptionbudgets.policy", "shop", "keep-db")
        .unwrap();
    for drain in [first, second] {
        let run = drain.ended();
        assert_eq!(run.code, Some(0), "{run:#?}");
        assert!(run.stdout.contains("Drained in"), "{run:#?}");
    }
}
