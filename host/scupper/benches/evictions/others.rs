//! What another client of the API server notices while pods are evicted: 500 on one node by `scupper drain`, by a client
//! with 50 evictions in flight, and by `kubectl drain`, by turns; and on three nodes at once, by three drivers that do
//! not know of each other and by three such clients.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures::{StreamExt, future, stream};
use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::installed::{Installed, ask, client, until};

const PODS: usize = 500;
const FLOOD: usize = 50;
const TURNS: usize = 3;
const NODES: [&str; 3] = ["node-0", "node-1", "node-2"];
/// How often the other client reads, and how often it writes.
const EVERY: Duration = Duration::from_millis(20);
/// What it writes by turns. Writes of one object that overlap would conflict, and the server would repeat them: the client
/// would then measure mostly itself.
const WRITTEN: u64 = 200;
const IDLE: Duration = Duration::from_secs(10);

const WAYS: [(&str, usize); 6] = [
    ("idle", 1),
    ("scupper", 1),
    ("flood", 1),
    ("kubectl", 1),
    ("scupper", 3),
    ("flood", 3),
];

/// All ways, or those that `chosen` names, such as `scupper` or `flood-3`.
pub(crate) async fn compare(chosen: &[String]) {
    let installed = Installed::bare(&["--nodes", "4"]).await;
    let written = (0..WRITTEN).map(|number| {
        json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("other-{number}"), "namespace": "default"}})
    });
    installed.create(&written.collect::<Vec<_>>());
    println!("{PODS} pods leave, and die at once; another client reads and writes 50 times a second each\n");
    println!(
        "{:<20} {:>9} {:>22} {:>22}  nodes empty after",
        "evicted by", "wall", "reads p50, p99", "writes p50, p99"
    );
    for _ in 0..TURNS {
        for (way, nodes) in WAYS {
            let name = if nodes == 1 {
                way.to_owned()
            } else {
                format!("{way}-{nodes}")
            };
            if chosen.is_empty() || chosen.contains(&name) {
                let ends = turn(&installed, way, &NODES[..nodes]).await;
                println!("{name:<20} {ends}");
            }
        }
    }
}

/// One measurement, as a line.
async fn turn(installed: &Installed, way: &str, nodes: &[&str]) -> String {
    for node in nodes {
        let count = (PODS / nodes.len()).to_string();
        let of = [
            "--node",
            node,
            "--namespace",
            "crowd",
            "--name",
            node,
            "--count",
            &count,
        ];
        installed.testbed.make_pods(&of);
    }
    // A server that is still busy with their start is slow for all.
    let pending = "/api/v1/namespaces/crowd/pods?fieldSelector=status.phase=Pending&limit=1";
    let run = async || {
        let pods = installed.get(pending).await;
        pods["items"].as_array().is_some_and(Vec::is_empty)
    };
    until(run, || "the pods do not begin to run".to_owned()).await;
    let other = Other::start(&installed.testbed.kubeconfig()).await;
    let begun = Instant::now();
    let mut ends = Vec::new();
    if way == "idle" {
        tokio::time::sleep(IDLE).await;
    } else {
        let drains: Vec<_> = nodes
            .iter()
            .map(|node| Drain::start(installed, way, node))
            .collect();
        let empty = nodes.iter().map(|node| is_empty(installed, node, begun));
        ends = future::join_all(empty).await;
        for drain in drains {
            drain.ended().await;
        }
    }
    let [reads, writes] = other.end().await;
    let wall = ends.iter().max().copied().unwrap_or(IDLE);
    installed.testbed.kubectl(&[
        "delete",
        "pods",
        "--all",
        "--namespace",
        "crowd",
        "--force",
        "--grace-period=0",
    ]);
    installed.testbed.kubectl(&[&["uncordon"], nodes].concat());
    let ends: Vec<_> = ends
        .iter()
        .map(|end| format!("{:.2}", end.as_secs_f64()))
        .collect();
    let ends = ends.join(", ");
    format!(
        "{:>7.2} s {:>22} {:>22}  {ends}",
        wall.as_secs_f64(),
        quantiles(reads),
        quantiles(writes)
    )
}

/// When the node's pods were gone.
async fn is_empty(installed: &Installed, node: &str, begun: Instant) -> Duration {
    let path = format!("/api/v1/namespaces/crowd/pods?fieldSelector=spec.nodeName={node}&limit=1");
    let are_gone = async || {
        let pods = installed.get(&path).await;
        pods["items"].as_array().is_some_and(Vec::is_empty)
    };
    until(are_gone, || format!("pods of {node} do not leave")).await;
    begun.elapsed()
}

/// A drain of a node, in another process or, for a flood, in a task of ours.
enum Drain {
    Process(Child),
    Task(tokio::task::JoinHandle<()>),
}

impl Drain {
    fn start(installed: &Installed, way: &str, node: &str) -> Self {
        let kubeconfig = installed.testbed.kubeconfig();
        let mut command = match way {
            "scupper" => {
                let mut scupper = Command::new(env!("CARGO_BIN_EXE_scupper"));
                scupper.args(["drain", node, "--force", "--local", "--kubeconfig"]);
                scupper.arg(kubeconfig);
                scupper
            }
            "kubectl" => installed.testbed.kubectl_command(&["drain", node, "--force"]),
            _ => return Self::Task(tokio::spawn(flood(node.to_owned(), kubeconfig))),
        };
        let silent = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self::Process(silent.spawn().unwrap())
    }

    async fn ended(self) {
        match self {
            Self::Process(mut child) => {
                let status = tokio::task::spawn_blocking(move || child.wait()).await;
                assert!(status.unwrap().unwrap().success(), "the drain failed");
            }
            Self::Task(task) => task.await.unwrap(),
        }
    }
}

/// Evicts all pods of the node, always as many at once.
async fn flood(node: String, kubeconfig: PathBuf) {
    let client = client(&kubeconfig).await;
    let path = format!("/api/v1/namespaces/crowd/pods?fieldSelector=spec.nodeName={node}");
    let pods = ask(&client, Method::GET, &path, &Value::Null).await.1;
    let pods = pods["items"].as_array().unwrap().iter();
    let names: Vec<_> = pods
        .map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned())
        .collect();
    let evictions = names.into_iter().map(|name| {
        let client = client.clone();
        async move {
            let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction",
                "metadata": {"name": name, "namespace": "crowd"}});
            let path = format!("/api/v1/namespaces/crowd/pods/{name}/eviction");
            let (code, answer) = ask(&client, Method::POST, &path, &eviction).await;
            assert!(code.is_success(), "{answer}");
        }
    });
    stream::iter(evictions)
        .buffer_unordered(FLOOD)
        .collect::<()>()
        .await;
}

/// A client that reads and writes small objects at a steady pace, however long the answers take.
struct Other {
    stop: tokio::sync::oneshot::Sender<()>,
    pace: tokio::task::JoinHandle<[Vec<Duration>; 2]>,
}

impl Other {
    async fn start(kubeconfig: &Path) -> Self {
        let client = client(kubeconfig).await;
        let (stop, mut stopped) = tokio::sync::oneshot::channel();
        let pace = tokio::spawn(async move {
            let mut ticks = tokio::time::interval(EVERY);
            let mut requests = JoinSet::new();
            for number in 0_u64.. {
                tokio::select! {
                    _ = ticks.tick() => {}
                    _ = &mut stopped => break,
                }
                let path = format!("/api/v1/namespaces/default/configmaps/other-{}", number % WRITTEN);
                let body = json!({"data": {"number": number.to_string()}});
                let read = ("/api/v1/nodes/node-3".to_owned(), Method::GET, Value::Null);
                for (kind, (path, method, body)) in
                    [read, (path, Method::PATCH, body)].into_iter().enumerate()
                {
                    let client = client.clone();
                    requests.spawn(async move {
                        let begun = Instant::now();
                        ask(&client, method, &path, &body).await;
                        (kind, begun.elapsed())
                    });
                }
            }
            // Whatever is under way ends before the next turn begins.
            let mut times = [Vec::new(), Vec::new()];
            for (kind, took) in requests.join_all().await {
                times[kind].push(took);
            }
            times
        });
        Self { stop, pace }
    }

    async fn end(self) -> [Vec<Duration>; 2] {
        self.stop.send(()).unwrap();
        self.pace.await.unwrap()
    }
}

/// The median, and the time that one in a hundred exceeds.
fn quantiles(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let [half, most] = [50, 99].map(|percent| times[times.len() * percent / 100].as_secs_f64() * 1000.0);
    format!("{half:.1}, {most:.1} ms")
}
