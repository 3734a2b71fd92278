//! How often a drain on a real API server ends in the time that was forecast. The cluster is drawn: replicas, owners,
//! budgets, grace periods, and how long pods take to end and to be ready; each pod then takes a time of its own. They move
//! from node to node, and every drain is recorded for the next forecast.
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

use fastrand::Rng;
use serde_json::{Value, json};
use testbed::Testbed;

const WORKLOADS: usize = 8;
const NODES: usize = 3;
const DRAINS: usize = 50;
/// So many drains teach the forecasts before these are counted.
const LEARN: usize = 20;
/// The cluster and all times are drawn from this.
const SEED: u64 = 26;

/// A workload of the cluster.
struct Workload {
    name: String,
    kind: &'static str,
    pods: usize,
    /// How many must be healthy.
    minimum: Option<usize>,
    /// In seconds: what a pod takes to end, in the middle, and to be ready; after its grace period it is killed.
    ends: f64,
    ready: f64,
    grace: u64,
}

impl Workload {
    fn draw(random: &mut Rng, number: usize) -> Self {
        let pods = random.usize(1..=4);
        Self {
            name: format!("w{number}"),
            kind: ["deployment", "statefulset"][random.usize(0..2)],
            pods,
            minimum: (pods > 1 && random.bool()).then(|| pods - 1),
            ends: 0.5 * 16f64.powf(random.f64()),
            ready: 1.0 + 5.0 * random.f64(),
            grace: [10, 30][random.usize(0..2)],
        }
    }

    fn make(&self, testbed: &Testbed, node: &str) {
        let [pods, grace] = [self.pods as u64, self.grace].map(|number| number.to_string());
        let [ends, ready] = [self.ends, self.ready].map(|seconds| format!("{seconds:.1}"));
        let mut options = vec![
            "--node",
            node,
            "--count",
            &pods,
            "--owner",
            self.kind,
            "--namespace",
            "lab",
            "--name",
            &self.name,
            "--takes",
            &ends,
            "--ready",
            &ready,
            "--grace",
            &grace,
        ];
        let minimum = self.minimum.map(|least| least.to_string());
        options.extend(minimum.iter().flat_map(|least| ["--pdb", least.as_str()]));
        testbed.make_pods(&options);
    }
}

fn main() {
    // `cargo test --benches` only checks that it starts.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    let testbed = Testbed::bare(&[]);
    let recordings = tempfile::tempdir().unwrap();
    testbed.kubectl(&["create", "namespace", "scupper"]);
    testbed.kubectl(&["create", "namespace", "lab"]);
    let mut random = Rng::with_seed(SEED);
    let workloads: Vec<_> = (0..WORKLOADS)
        .map(|number| Workload::draw(&mut random, number))
        .collect();
    for (number, workload) in workloads.iter().enumerate() {
        workload.make(&testbed, &format!("node-{}", number % NODES));
    }
    println!(
        "a real API server {}, {WORKLOADS} workloads of seed {SEED}, {DRAINS} drains\n",
        testbed.version()
    );
    println!(
        "{:>4} {:>8} {:>8} {:>8} {:>8}",
        "pods", "p10", "p50", "p90", "took"
    );
    let mut inside = 0;
    for number in 0..DRAINS {
        let node = fullest(&testbed);
        let pods = vary(&testbed, &node, &workloads, &mut random);
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

/// Gives each pod of the node another time to end, and returns how many these are. Most differ by less than a half.
fn vary(testbed: &Testbed, node: &str, workloads: &[Workload], random: &mut Rng) -> usize {
    let pods = testbed.get(&format!(
        "/api/v1/namespaces/lab/pods?fieldSelector=spec.nodeName%3D{node}"
    ));
    let pods = pods["items"].as_array().unwrap();
    for pod in pods {
        let name = pod["metadata"]["name"].as_str().unwrap();
        let workload = workloads
            .iter()
            .find(|workload| name.starts_with(&format!("{}-", workload.name)));
        // The sum of many is nearly normal.
        let normal = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
        let takes = workload.unwrap().ends * (0.35 * normal).exp();
        let takes = json!({"metadata": {"annotations": {"testbed/takes": format!("{takes:.2}")}}});
        testbed.patch(&format!("/api/v1/namespaces/lab/pods/{name}"), &takes);
    }
    pods.len()
}

/// The node with the most pods once all are ready.
fn fullest(testbed: &Testbed) -> String {
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
        let (node, _) = nodes.into_iter().max_by_key(|(_, pods)| *pods).unwrap();
        return node.to_owned();
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
