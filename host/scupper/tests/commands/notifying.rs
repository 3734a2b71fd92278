//! `--notify-before`: owners of pods learn in time that these leave.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use scupper_simulator::api::{Action, Fault, objects};
use serde_json::{Value, json};

use crate::kubelet_node::until;
use crate::rig::{Rig, Run};
use crate::undoing;

/// Two pods of the Deployment web, and one without a controller.
fn cluster() -> Rig {
    let rig = Rig::new();
    rig.apply(objects::deployment("shop", "web", 2));
    // Before their ReplicaSet, which would make its own.
    for name in ["web-a", "web-b"] {
        rig.apply(objects::pod("shop", name, "worker-1").owner_replicaset("web-5d"));
    }
    rig.apply(objects::replica_set("shop", "web-5d", 2).owner_deployment("web"));
    rig.apply(objects::pod("shop", "alone", "worker-1"));
    // Nobody has to be told of these.
    rig.apply(objects::pod("shop", "ended", "worker-1").job("night").finished(0));
    rig
}

/// A pod of a StatefulSet that the cordon does not keep from the node.
fn db() -> Value {
    pod_of("db")
}

fn pod_of(set: &str) -> Value {
    let toleration = json!([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]);
    let pod = objects::pod("shop", &format!("{set}-0"), "worker-1").owner_statefulset(set);
    pod.with("/spec/tolerations", toleration).build()
}

/// What was told: the workload, and the note. Each once.
fn told(rig: &Rig) -> Vec<(String, String)> {
    let events = rig.objects("events.events.k8s.io").into_iter();
    let told = events
        .filter(|event| event["reason"] == "PodsLeaveNode")
        .map(|event| {
            assert_eq!(event["series"], Value::Null, "{event}");
            let (regarding, note) = (&event["regarding"], event["note"].as_str().unwrap());
            let name = format!("{} {}", regarding["kind"], regarding["name"]).replace('"', "");
            (name, note.to_owned())
        });
    let mut told: Vec<_> = told.collect();
    told.sort();
    told
}

fn names(rig: &Rig) -> Vec<String> {
    told(rig).into_iter().map(|(name, _)| name).collect()
}

fn is_drained(run: &Run) {
    assert_eq!(run.code, Some(0), "{run:#?}");
}

const DRAIN: [&str; 4] = ["drain", "worker-1", "--local", "--force"];

#[test]
fn each_workload_is_told_before_its_first_pod_leaves() {
    let rig = cluster();
    let begun = Instant::now();
    let mut drain = rig.start(&[&DRAIN[..], &["--notify-before", "2s"]].concat());
    drain.prints("2 workloads were told that pods of this node leave in ");
    assert_eq!(names(&rig), ["Deployment web", "Pod alone"]);
    let (_, note) = told(&rig).remove(0);
    assert!(
        note.starts_with("leaves node worker-1 in ")
            && note.ends_with(" at the earliest (drain drain-worker-1): web-a, web-b"),
        "{note}"
    );
    assert!(rig.is_cordoned("worker-1"));
    is_drained(&drain.ended());
    assert!(begun.elapsed() > Duration::from_secs(2), "nobody had the time");
    assert_eq!(names(&rig), ["Deployment web", "Pod alone"], "once");
    let is_there = |pod: &Value| pod["spec"]["nodeName"] == "worker-1";
    assert!(!rig.objects("pods").iter().any(is_there));
}

/// The plan and the drain are refused with the same words.
#[test]
fn a_plan_says_that_the_drain_would_end_before_its_notice() {
    let rig = cluster();
    let late = ["--force", "--notify-before", "10m", "--timeout", "5m"];
    let plan = rig.run(&[&["plan", "worker-1"], &late[..]].concat());
    let drain = rig.run(&[&["drain", "worker-1", "--local"], &late[..]].concat());
    assert_eq!((plan.code, drain.code), (Some(7), Some(7)), "{plan:#?}");
    for run in [&plan, &drain] {
        let words = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains("refused the drain: no pod may leave for 10m00s (drain.notify-before)"),
            "{run:#?}"
        );
    }
    assert!(!rig.is_cordoned("worker-1"));
}

#[test]
fn a_workload_whose_first_pod_comes_later_has_the_same_time() {
    let rig = cluster();
    let drain = rig.start(&[&DRAIN[..], &["--notify-before", "2s"]].concat());
    until("the first are told", || names(&rig).len() == 2);
    let came = Instant::now();
    rig.apply(db());
    until("the newcomer's owner is told", || {
        names(&rig) == ["Deployment web", "Pod alone", "StatefulSet db"]
    });
    is_drained(&drain.ended());
    assert!(
        came.elapsed() > Duration::from_secs(2),
        "db-0 left with the others"
    );
}

#[test]
fn workloads_that_keep_coming_hold_the_others_no_longer_than_twice() {
    let rig = cluster();
    let begun = Instant::now();
    let mut drain = rig.start(&[&DRAIN[..], &["--notify-before", "3s"]].concat());
    drain.prints("2 workloads were told");
    let first = ["alone", "web-a", "web-b"].map(str::to_owned);
    let mut came = 0;
    while rig.pods().iter().any(|pod| first.contains(pod)) {
        let waited = begun.elapsed();
        assert!(waited < Duration::from_secs(15), "{}", drain.stdout());
        // A drain that sees one each second plans them every five seconds only.
        if waited > Duration::from_millis(1_500) * (came + 1) {
            rig.apply(pod_of(&format!("set-{came}")));
            came += 1;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(begun.elapsed() > Duration::from_secs(3), "nobody had the time");
    is_drained(&drain.ended());
}

#[test]
fn a_process_that_takes_over_tells_nobody_again() {
    let rig = cluster();
    // Creations are rounded to seconds: a younger pod could have come after the first process had told its workloads.
    until("the pods are older than a second", || {
        let pods = rig.objects("pods").into_iter();
        let created = pods.map(|pod| pod["metadata"]["creationTimestamp"].as_str().unwrap().parse());
        let youngest: Timestamp = created.map(Result::unwrap).max().unwrap();
        Timestamp::now().duration_since(youngest) > SignedDuration::from_secs(1)
    });
    let mut drain = rig.start(&[&DRAIN[..], &["--notify-before", "1h"]].concat());
    drain.prints("2 workloads were told");
    until("the hook's state is saved", || {
        let mark = rig.mark("worker-1").unwrap_or_default();
        let mut hooks = mark["hooks"].as_array().into_iter().flatten();
        hooks.any(|hook| {
            hook["policy"] == "notify before" && hook["state"].as_str().is_some_and(|it| !it.is_empty())
        })
    });
    drain.kill();
    let run = rig.run(&[&DRAIN[..], &["--notify-before", "1s", "--take-over"]].concat());
    is_drained(&run);
    assert_eq!(names(&rig), ["Deployment web", "Pod alone"]);
}

#[test]
fn it_does_not_tell_the_owner_of_a_newcomer_again_either() {
    let rig = cluster();
    let drain = rig.start(&[&DRAIN[..], &["--notify-before", "3s"]].concat());
    until("the first are told", || names(&rig).len() == 2);
    rig.apply(db());
    until("the newcomer's owner is told", || names(&rig).len() == 3);
    drain.kill();
    let run = rig.run(&[&DRAIN[..], &["--notify-before", "3s", "--take-over"]].concat());
    is_drained(&run);
    assert_eq!(names(&rig), ["Deployment web", "Pod alone", "StatefulSet db"]);
}

#[test]
fn it_is_refused_also_on_a_node_that_is_cordoned_already() {
    let rig = cluster();
    rig.apply(objects::node("worker-1").cordoned());
    let file = undoing::config(&rig, &[("before-drain", "failed|it was called")]);
    let options = ["--notify-before", "1h", "--timeout", "30m", "--config", &file];
    let run = rig.run(&[&DRAIN[..], &options].concat());
    let why = "no pod may leave for 1h00m (drain.notify-before), and the drain's deadline is in";
    assert!(run.stdout.contains(why), "{run:#?}");
    assert_eq!(run.code, Some(7), "{run:#?}");
    assert!(!run.stdout.contains("it was called"), "{run:#?}");
    assert!(told(&rig).is_empty());
    assert_eq!(rig.pods().len(), 4);
}

#[test]
fn a_drain_that_would_end_before_is_refused_while_nothing_has_changed() {
    let rig = cluster();
    let run = rig.run(&[&DRAIN[..], &["--notify-before", "1h", "--timeout", "30m"]].concat());
    assert_ne!(run.code, Some(0), "{run:#?}");
    assert!(
        run.stdout
            .contains("no pod may leave for 1h00m (drain.notify-before), and the drain's deadline is in"),
        "{run:#?}"
    );
    assert!(!rig.is_cordoned("worker-1") && told(&rig).is_empty());
    assert_eq!(rig.pods().len(), 4);
}

#[test]
fn an_event_that_is_refused_delays_the_drain_no_longer_than_one_that_is_written() {
    for action in [Action::Hang, Action::Status(403, None)] {
        let rig = cluster();
        let refused = Fault::new(action).path("/apis/events.k8s.io/v1/namespaces/*/events*");
        rig.api.faults([refused]);
        let run = rig.run(&[&DRAIN[..], &["--notify-before", "1s"]].concat());
        is_drained(&run);
        assert!(
            run.stdout.contains("was not told that its pods leave"),
            "{run:#?}"
        );
    }
}
