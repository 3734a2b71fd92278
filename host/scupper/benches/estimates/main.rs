//! How often a drain on a real API server ends in the time that was forecast: workloads whose pods end and are ready each
//! after times of their own move from node to node, and every drain is recorded for the next forecast.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    dead_code,
    reason = "a benchmark stops at what it did not expect, and prints; others share its helpers"
)]

#[path = "../drain/testbed.rs"]
mod testbed;

use std::collections::BTreeMap;
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use testbed::Testbed;

/// The owner's kind, how many pods, the seconds in which one ends and in which one is ready, and how many must be healthy.
const WORKLOADS: [(&str, &str, &str, &str, Option<&str>); 7] = [
    ("statefulset", "3", "2.1", "1.4", Some("2")),
    ("deployment", "4", "5.6", "2.2", Some("3")),
    ("deployment", "1", "0.6", "2.1", None),
    ("deployment", "2", "1.3", "4.0", Some("1")),
    ("statefulset", "2", "3.0", "3.1", Some("1")),
    ("deployment", "4", "8.2", "1.0", None),
    ("deployment", "3", "0.9", "6.3", Some("2")),
];
const DRAINS: usize = 30;
/// So many drains teach the forecasts before these are counted.
const LEARN: usize = 10;

fn main() {
    // `cargo test --benches` only checks that it starts.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    let testbed = Testbed::bare(&[]);
    let recordings = tempfile::tempdir().unwrap();
    testbed.kubectl(&["create", "namespace", "scupper"]);
    testbed.kubectl(&["create", "namespace", "lab"]);
    for (number, (kind, pods, takes, ready, budget)) in WORKLOADS.into_iter().enumerate() {
        let (name, node) = (format!("w{number}"), format!("node-{}", number % 3));
        let mut options = vec![
            "--node",
            &node,
            "--count",
            pods,
            "--owner",
            kind,
            "--namespace",
            "lab",
            "--name",
            &name,
            "--takes",
            takes,
            "--ready",
            ready,
        ];
        options.extend(budget.iter().flat_map(|least| ["--pdb", least]));
        testbed.make_pods(&options);
    }
    println!("a real API server {}, {DRAINS} drains\n", testbed.version());
    println!(
        "{:>4} {:>8} {:>8} {:>8} {:>8}",
        "pods", "p10", "p50", "p90", "took"
    );
    let mut inside = 0;
    for number in 0..DRAINS {
        let (node, pods) = fullest(&testbed);
        let recordings = format!("{}/", recordings.path().to_str().unwrap());
        let forecast = scupper(&testbed, &["forecast", &node, "--recordings", &recordings]);
        let drained = scupper(&testbed, &["drain", &node, "--local", "--record", &recordings]);
        scupper(&testbed, &["uncordon", &node, "--local"]);
        let took = drained["seconds"].as_f64().unwrap();
        let ends = ["p10Seconds", "p50Seconds", "p90Seconds"].map(|end| forecast[end].as_f64());
        let text = ends.map(|end| end.map_or_else(|| "-".to_owned(), |end| format!("{end:.1} s")));
        println!(
            "{pods:>4} {:>8} {:>8} {:>8} {took:>6.1} s",
            text[0], text[1], text[2]
        );
        let is_inside = matches!(ends, [Some(early), _, Some(late)] if (early..=late).contains(&took));
        inside += usize::from(number >= LEARN && is_inside);
    }
    println!(
        "\nafter the first {LEARN}, {inside} of {} ended between p10 and p90",
        DRAINS - LEARN
    );
}

/// The node with the most pods once all are ready, and how many it has.
fn fullest(testbed: &Testbed) -> (String, usize) {
    loop {
        thread::sleep(Duration::from_secs(1));
        let pods = testbed.get("/api/v1/namespaces/lab/pods");
        let pods = pods["items"].as_array().unwrap();
        if !pods.iter().all(is_ready) {
            continue;
        }
        let mut nodes: BTreeMap<&str, usize> = BTreeMap::new();
        for pod in pods {
            *nodes
                .entry(pod["spec"]["nodeName"].as_str().unwrap())
                .or_default() += 1;
        }
        let (node, pods) = nodes.into_iter().max_by_key(|(_, pods)| *pods).unwrap();
        return (node.to_owned(), pods);
    }
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let is_ready = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
    pod["metadata"]["deletionTimestamp"].is_null() && conditions.is_some_and(|all| all.iter().any(is_ready))
}

/// The last line that the command prints.
fn scupper(testbed: &Testbed, args: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_scupper"))
        .args(args)
        .args(["-o", "json"])
        .env("KUBECONFIG", testbed.kubeconfig())
        .output()
        .unwrap();
    let (text, errors) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert!(output.status.success(), "{args:?}: {text}{errors}");
    serde_json::from_str(text.lines().last().unwrap()).unwrap()
}
