//! A simulated node, and the real program that drains it: with a configuration file, and everything logged.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use scupper_simulator::api::{self, ApiServer, objects};
use scupper_simulator::kubelet::{self, Kubelet, KubeletHandle, Timing};
use serde_json::{Value, json};

use super::guests_of;
use super::search::contains;
use crate::limit::LIMIT;

const DRIVER: &str = "drain.example";
/// The folder of its output: not the folder of its configuration, which it watches and, at this log level, reports.
const SAID: &str = "said";
const RECORDINGS: &str = "state/recordings";
/// The simulator's objects that a user could read.
const KINDS: [&str; 6] = [
    "nodes",
    "pods",
    "events",
    "events.events.k8s.io",
    "lifecycleevents.lifecycle.k8s.io",
    "lifecycletransitions.lifecycle.k8s.io",
];

/// The number of memories to keep, of a megabyte or two each: the first ones, and the last ones.
const MEMORIES: [usize; 2] = [10, 30];

/// The policy, and its settings in `scupper.yaml`.
pub(crate) struct Setup<'a> {
    pub(crate) node: &'a str,
    pub(crate) policy: Value,
    /// Objects of the cluster besides the node.
    pub(crate) objects: Vec<Value>,
}

/// Everything captured so far, each text once, from any thread.
#[derive(Clone, Default)]
pub(crate) struct Captured(Arc<Mutex<CapturedData>>);

#[derive(Default)]
struct CapturedData {
    process: Option<u32>,
    store: Option<api::Store>,
    objects: BTreeSet<String>,
    memories: Vec<Vec<u8>>,
}

impl Captured {
    /// Captures the API server's objects and the policies' memories, while a policy's request is under way.
    pub(crate) fn capture(&self) {
        let mut seen = self.0.lock().unwrap();
        if let Some(store) = seen.store.clone() {
            let objects = KINDS.into_iter().flat_map(|kind| store.list(kind));
            seen.objects.extend(objects.map(|object| object.to_string()));
        }
        if let Some(process) = seen.process {
            seen.memories.extend(guests_of(process));
        }
        let [first, most] = MEMORIES;
        if seen.memories.len() > most {
            seen.memories.remove(first);
        }
    }
}

/// The node, and the driver on it.
pub(crate) struct Node {
    api: ApiServer,
    kubelet: KubeletHandle,
    name: String,
    child: Child,
    captured: Captured,
    folder: tempfile::TempDir,
}

impl Node {
    pub(crate) async fn start(setup: Setup<'_>, captured: Captured) -> Self {
        let api = ApiServer::start(api::Options::default()).await.unwrap();
        let store = api.store();
        store.apply(objects::node(setup.node).build()).unwrap();
        for object in setup.objects {
            store.apply(object).unwrap();
        }
        // A short path: a kubelet's socket lies below it.
        let folder = tempfile::Builder::new().prefix("sl-").tempdir_in("/tmp").unwrap();
        let mut config = api.client_config();
        config.auth_info.token = Some(format!("system:node:{}", setup.node).into());
        let client = kube::Client::try_from(config).unwrap();
        let kubelet = Kubelet::start(kubelet::Options {
            timing: Timing::faster(20),
            ..kubelet::Options::new(client, setup.node, folder.path().join("k"))
        })
        .unwrap();
        std::fs::write(folder.path().join("kubeconfig"), api.kubeconfig()).unwrap();
        let whole = json!({
            "apiVersion": "scupper.dev/v1alpha1", "kind": "Configuration", "policies": [setup.policy],
        });
        std::fs::write(folder.path().join("scupper.yaml"), whole.to_string()).unwrap();
        let child = spawn(folder.path(), setup.node, kubelet.root());
        {
            let mut seen = captured.0.lock().unwrap();
            seen.process = Some(child.id());
            seen.store = Some(store);
        }
        let node = Self {
            api,
            kubelet,
            name: setup.node.to_owned(),
            child,
            captured,
            folder,
        };
        node.until("the transitions are published", || {
            node.api.store().list(KINDS[5]).len() == 2
        })
        .await;
        node
    }

    /// Requests a drain, and returns how its event ended.
    pub(crate) async fn drain(&self, event: &str) -> String {
        self.transition(event, DRIVER).await
    }

    /// Requests the uncordon, and returns how its event ended.
    pub(crate) async fn give_back(&self, event: &str) -> String {
        self.transition(event, &format!("{DRIVER}-uncordon")).await
    }

    async fn transition(&self, event: &str, transition: &str) -> String {
        self.ask(event, transition);
        self.ends(event).await
    }

    /// Requests a drain, and does not wait.
    pub(crate) fn begin(&self, event: &str) {
        self.ask(event, DRIVER);
    }

    fn ask(&self, event: &str, transition: &str) {
        let object = objects::lifecycle_event(event, transition, &self.name).build();
        self.api.store().apply(object).unwrap();
    }

    /// How an event ends.
    pub(crate) async fn ends(&self, event: &str) -> String {
        let ended = |record: &kubelet::Record| record.finished().iter().any(|(name, _)| name == event);
        let waited = self.kubelet.wait_for(ended, LIMIT).await;
        waited.unwrap_or_else(|why| panic!("{why}\n{}", self.reported()));
        self.captured.capture();
        let finished = self.kubelet.record().finished();
        finished.into_iter().find(|(name, _)| name == event).unwrap().1
    }

    /// A pod that came back.
    pub(crate) fn apply(&self, object: Value) {
        self.api.store().apply(object).unwrap();
    }

    fn output_file(&self, file: &str) -> PathBuf {
        self.folder.path().join(SAID).join(file)
    }

    /// Its standard output.
    pub(crate) fn reported(&self) -> String {
        std::fs::read_to_string(self.output_file("out")).unwrap()
    }

    /// All Events: `Type Reason: Note`.
    pub(crate) fn events(&self) -> Vec<String> {
        let events = self.api.store().list("events.events.k8s.io");
        let text = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
        events
            .iter()
            .map(|event| {
                let (kind, reason, note) = (text(event, "type"), text(event, "reason"), text(event, "note"));
                format!("{kind} {reason}: {note}")
            })
            .collect()
    }

    /// This many Events begin like this, after any number of polls.
    pub(crate) fn reported_so_often(&self, wanted: &[(&str, usize)]) {
        let events = self.events();
        for (event, count) in wanted {
            let found = events
                .iter()
                .filter(|reported| reported.starts_with(event))
                .count();
            assert_eq!(found, *count, "{event}: {events:#?}");
        }
    }

    /// The node is unschedulable.
    pub(crate) fn is_cordoned(&self) -> bool {
        let nodes = self.api.store().list("nodes");
        nodes.iter().any(|node| node["spec"]["unschedulable"] == true)
    }

    /// It has printed this.
    pub(crate) async fn prints(&self, words: &str) {
        self.until(words, || self.reported().contains(words)).await;
    }

    async fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let begun = Instant::now();
        while !holds() {
            assert!(
                begun.elapsed() < LIMIT,
                "not in time: {what}\n{}",
                self.reported()
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Everything, with names. Each of these words must be there, which proves that the place was searched: the log, an
    /// object of the API server, the metrics, a policy's memory. The recordings are searched as text.
    pub(crate) fn everything(&self, [logged, written, counted, kept]: [&str; 4]) -> Vec<(String, Vec<u8>)> {
        self.captured.capture();
        let mut all = Vec::new();
        let folder = self.folder.path();
        for file in ["out", "err"] {
            all.push((file.to_owned(), std::fs::read(self.output_file(file)).unwrap()));
        }
        assert!(contains(&all[1].1, logged), "`{logged}` was not logged");
        let metrics = self.metrics();
        assert!(contains(&metrics, counted), "`{counted}` is not in the metrics");
        all.push(("the metrics".to_owned(), metrics));
        for part in ["state", "cache"] {
            files(&folder.join(part), &mut all);
        }
        let recordings = all.iter().filter(|(name, _)| name.contains(RECORDINGS));
        let recordings: Vec<u8> = recordings.flat_map(|(_, file)| decompressed(file)).collect();
        assert!(contains(&recordings, &self.name), "no drain is recorded");
        all.push(("the recordings".to_owned(), recordings));
        let seen = self.captured.0.lock().unwrap();
        let objects: Vec<u8> = seen.objects.iter().flat_map(|object| object.bytes()).collect();
        assert!(
            contains(&objects, written),
            "`{written}` is not on the API server"
        );
        all.push(("the API server".to_owned(), objects));
        let memories = seen.memories.iter();
        let found = memories.clone().filter(|memory| contains(memory, kept)).count();
        assert!(
            found >= 3,
            "`{kept}` is in {found} of {} memories",
            seen.memories.len()
        );
        all.extend(memories.map(|memory| ("a policy's memory".to_owned(), memory.clone())));
        all
    }

    pub(crate) fn metrics(&self) -> Vec<u8> {
        let log = std::fs::read_to_string(self.output_file("err")).unwrap();
        let line = log.lines().find(|line| line.contains("metrics are served"));
        let address = line.unwrap().rsplit_once("address=").unwrap().1.trim();
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nhost: driver\r\nconnection: close\r\n\r\n")
            .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        answer
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn spawn(folder: &Path, node: &str, root: &Path) -> Child {
    let said = folder.join(SAID);
    std::fs::create_dir_all(&said).unwrap();
    let file = |name: &str| File::create(said.join(name)).unwrap();
    Command::new(env!("CARGO_BIN_EXE_scupper"))
        .args(["kubelet-plugin", "--driver-name", DRIVER, "--node-name", node])
        .args(["--metrics-address", "0", "--sla", "3m"])
        .arg("--kubelet-root")
        .arg(root)
        .args(["--config", "scupper.yaml", "--kubeconfig", "kubeconfig"])
        .args([
            "--policy-cache",
            "cache",
            "--state-dir",
            "state",
            "--recordings",
            RECORDINGS,
        ])
        .current_dir(folder)
        .env("SCUPPER_LOG", "trace")
        .env_remove("POD_NAME")
        .stdin(Stdio::null())
        .stdout(file("out"))
        .stderr(file("err"))
        .spawn()
        .unwrap()
}

fn files(folder: &Path, all: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, all);
        } else if path.is_file() {
            all.push((path.display().to_string(), std::fs::read(&path).unwrap()));
        }
    }
}

/// As far as it goes: its drain may still be under way.
fn decompressed(file: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    flate2::read::MultiGzDecoder::new(file)
        .read_to_end(&mut text)
        .ok();
    text
}
