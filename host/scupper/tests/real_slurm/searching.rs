//! No output contains a token: not after whole drains, and not while they fail, with a server in between that repeats
//! the requests it received. And the node's Events about all that.

use scupper_simulator::api::objects;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::leaks::{Captured, Node, Secrets, Setup, traitor};
use crate::rig::module;
use crate::testbed::{NODE, Testbed, until};

/// The node's name in Kubernetes.
const WORKER: &str = "worker-1";

fn policy(url: &str, token: &std::path::Path) -> serde_json::Value {
    json!({
        "name": "slurm",
        "module": module(),
        "config": {
            "way": "slurmrestd",
            "url": url,
            "slurm-node-table": format!("{WORKER}={NODE}"),
            "poll-seconds": "1",
            // A drain has three minutes: a signal that does no harm at once, and the end soon.
            "ladder": "200s signal CONT, 190s cancel",
            "ladder-too-long": "scale",
        },
        "grants": {
            "events": ["node"],
            "http": [{
                "origin": url, "methods": ["GET", "POST", "DELETE"], "paths": ["/slurm/"], "networks": ["loopback"],
            }],
            "secrets": [{"name": "token", "file": token, "origins": [url]}],
        },
    })
}

/// Each change once, after any number of polls: two drains, one of which meets a job that stays.
fn reported_on_the_node(node: &Node) {
    node.reported_so_often(&[
        (
            "Normal SlurmNodeDraining: policy slurm: Slurm gives no more jobs to slurm-worker-0: ",
            2,
        ),
        (
            "Normal SlurmNodeUndrained: policy slurm: Slurm gives jobs to slurm-worker-0 again: ",
            2,
        ),
        (
            "Warning SlurmJobsSignalled: policy slurm: near the deadline of drain-1: SIGCONT sent to 1 job (",
            1,
        ),
        (
            "Warning SlurmJobsCancelled: policy slurm: near the deadline of drain-1: 1 job cancelled (",
            1,
        ),
        ("Warning Slurm", 2),
    ]);
}

#[tokio::test]
async fn no_output_contains_a_token() {
    let Some(testbed) = Testbed::up("searched", &[]) else {
        return;
    };
    let captured = Captured::default();
    let proxy = traitor(&testbed.url(), &captured, &[3, 9, 20]);
    let file = testbed.folder().join("token-of-the-driver");
    let first = testbed.token("slurm", 600);
    std::fs::write(&file, &first).unwrap();
    let pod = |name: &str| {
        objects::pod("shop", name, WORKER)
            .owner_replicaset("cart")
            .build()
    };
    let setup = Setup {
        node: WORKER,
        policy: policy(&proxy.url, &file),
        objects: vec![pod("cart-1")],
    };
    let node = Node::start(setup, captured).await;
    // A job that would stay: the ladder ends it.
    let job = testbed.submit(600, &[]);
    assert_eq!(node.drain("drain-1").await, "Succeeded", "{}", node.reported());
    assert_eq!(testbed.job(job), "CANCELLED", "{}", node.reported());
    assert_eq!(
        node.give_back("uncordon-1").await,
        "Succeeded",
        "{}",
        node.reported()
    );
    // A token that Slurm rejects makes the drain fail; then there is a good one again.
    let wrong: String = first.chars().rev().collect();
    std::fs::write(&file, &wrong).unwrap();
    node.apply(pod("cart-2"));
    node.begin("drain-2");
    node.prints("Slurm rejects the token").await;
    assert_eq!(node.ends("drain-2").await, "Failed", "{}", node.reported());
    let second = testbed.token("slurm", 601);
    std::fs::write(&file, &second).unwrap();
    assert_eq!(node.drain("drain-3").await, "Succeeded", "{}", node.reported());
    assert_eq!(
        node.give_back("uncordon-2").await,
        "Succeeded",
        "{}",
        node.reported()
    );
    reported_on_the_node(&node);

    let mut secrets = Secrets::default();
    for (name, token) in [
        ("the token", &first),
        ("the wrong token", &wrong),
        ("the new token", &second),
    ] {
        assert!(proxy.tokens().contains(token), "{name} was never sent");
        secrets.add(name, token);
    }
    let all = node.everything([
        "/slurm/v0.0.",
        "scupper.dev/drain",
        "scupper_policy_calls_total",
        "slurm-worker-1",
    ]);
    secrets.search(&all);
    // The server's own messages arrived, without the repeated requests.
    let reported = node.reported();
    assert!(reported.contains("[secret token]"), "{reported}");
}

#[tokio::test]
async fn in_the_driver_a_token_that_went_bad_is_waited_for_as_long_as_configured() {
    let Some(testbed) = Testbed::up("went-bad", &[]) else {
        return;
    };
    let file = testbed.folder().join("token-of-the-driver");
    std::fs::write(&file, testbed.token("slurm", 600)).unwrap();
    let mut policy = policy(&testbed.url(), &file);
    policy["config"]["token-timeout"] = json!("5s");
    // The cordon stays, and with it the drain in Slurm: without this nothing would be reverted.
    policy["config"]["on-failure"] = json!("undo");
    policy["config"]["ladder"] = json!("");
    let setup = Setup {
        node: WORKER,
        policy,
        objects: Vec::new(),
    };
    let node = Node::start(setup, Captured::default()).await;
    let job = testbed.submit(600, &[]);
    node.begin("drain-1");
    node.prints("slurm before-drain, running").await;
    std::fs::write(&file, "no.token.at-all").unwrap();
    let begun = Instant::now();
    node.prints("waiting for a valid token until").await;
    assert_eq!(node.ends("drain-1").await, "Failed", "{}", node.reported());
    // The drain has three minutes, and an undo fifteen seconds.
    assert!(
        begun.elapsed() < Duration::from_secs(150),
        "{:?}\n{}",
        begun.elapsed(),
        node.reported()
    );
    let reported = node.reported();
    for words in [
        "no valid token within 5s (`token-timeout`)",
        "anything that this drain changed in Slurm stays until the node is uncordoned",
        "slurm-worker-0 may still be drained in Slurm: Slurm rejects the token",
    ] {
        assert!(reported.contains(words), "{words}: {reported}");
    }
    assert_eq!(testbed.job(job), "RUNNING");
    // The uncordon waits for one as well, and then lifts the cordon alone.
    assert_eq!(
        node.give_back("uncordon-0").await,
        "Failed",
        "{}",
        node.reported()
    );
    assert!(!node.is_cordoned() && testbed.node().starts_with("draining scupper: "));
    let reported = node.reported();
    let still = "attention: policy slurm must still undo its part of the drain";
    assert!(reported.contains(still), "{reported}");
    until("the metric says so", async || {
        String::from_utf8_lossy(&node.metrics()).contains("scupper_policy_to_undo{policy=\"slurm\"} 1")
    })
    .await;
    // With a good one the uncordon resumes the node.
    std::fs::write(&file, testbed.token("slurm", 600)).unwrap();
    assert_eq!(
        node.give_back("uncordon-1").await,
        "Succeeded",
        "{}",
        node.reported()
    );
    assert!(!testbed.node().starts_with("drain"), "{}", testbed.node());
    until("the metric says so", async || {
        !String::from_utf8_lossy(&node.metrics()).contains("scupper_policy_to_undo{policy=\"slurm\"} 1")
    })
    .await;
}

/// One of them is the output of `scontrol token` as it is. With a good one the drain waits for the job, which is older.
#[tokio::test]
async fn in_the_driver_a_bad_token_fails_the_event_at_once_and_nothing_is_changed() {
    let Some(testbed) = Testbed::up("refused", &[]) else {
        return;
    };
    let file = testbed.folder().join("token-of-the-driver");
    let as_printed = testbed.client(&["scontrol", "token", "username=slurm"]);
    assert!(as_printed.starts_with("SLURM_JWT="), "{as_printed}");
    std::fs::write(&file, &as_printed).unwrap();
    let mut policy = policy(&testbed.url(), &file);
    policy["config"]["ladder"] = json!("");
    let setup = Setup {
        node: WORKER,
        policy,
        objects: Vec::new(),
    };
    let node = Node::start(setup, Captured::default()).await;
    let job = testbed.submit(600, &[]);
    let submitted = Instant::now();
    for (event, bad) in [("drain-1", as_printed.as_str()), ("drain-2", "no.token.at-all")] {
        std::fs::write(&file, bad).unwrap();
        let begun = Instant::now();
        assert_eq!(node.drain(event).await, "Failed", "{}", node.reported());
        // The drain has three minutes, and an undo fifteen seconds.
        assert!(
            begun.elapsed() < Duration::from_secs(150),
            "{:?}\n{}",
            begun.elapsed(),
            node.reported()
        );
    }
    let reported = node.reported();
    let named = "Slurm rejects the token (its file holds the token alone, without `SLURM_JWT=`): ";
    assert!(reported.matches(named).count() >= 2, "{reported}");
    assert!(
        !node.is_cordoned() && !reported.contains("the node is cordoned"),
        "{reported}"
    );
    assert!(!testbed.node().contains("drain"), "{}", testbed.node());

    until("the job is older than the drain", async || {
        submitted.elapsed() > Duration::from_secs(5)
    })
    .await;
    std::fs::write(&file, testbed.token("slurm", 600)).unwrap();
    let begun = Instant::now();
    node.begin("drain-3");
    let waits = format!("waits for job {job}: ");
    node.prints(&waits).await;
    let reported = node.reported();
    let line = reported.lines().find(|line| line.contains(&waits)).unwrap();
    assert!(waited(line) <= begun.elapsed(), "the job's age: {line}");
}

/// The time at the end of a line such as `waits for job 3: running, for 1m05s`; zero in the first second.
fn waited(line: &str) -> Duration {
    let Some((_, time)) = line.rsplit_once(", for ") else {
        return Duration::ZERO;
    };
    let (minutes, seconds) = time.split_once('m').unwrap_or(("0", time));
    let number = |text: &str| text.parse::<u64>().unwrap();
    Duration::from_secs(number(minutes) * 60 + number(seconds.trim_end_matches('s')))
}
