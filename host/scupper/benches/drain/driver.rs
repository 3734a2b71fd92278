//! The driver as a separate process, driven by the kubelet simulator.

#[path = "../support/memory.rs"]
mod memory;

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use scupper_simulator::kubelet::{Attempt, Kubelet, KubeletHandle, Options, Record, Timing};
use serde_json::{Value, json};

use super::testbed::Testbed;

const LIMIT: Duration = Duration::from_secs(300);
const LIFECYCLE_EVENTS: &str = "/apis/lifecycle.k8s.io/v1alpha1/lifecycleevents";
const TRANSITIONS: &str = "/apis/lifecycle.k8s.io/v1alpha1/lifecycletransitions";

/// The time from its start until the kubelet had registered it, and until `/readyz` reported it as ready.
#[derive(Clone, Copy)]
pub(crate) struct Started {
    pub(crate) registered: Duration,
    pub(crate) ready: Duration,
}

/// A running driver of one node, ended when dropped.
pub(crate) struct Driver {
    child: Child,
    command: Command,
    kubelet: KubeletHandle,
    name: String,
    node: String,
    story: PathBuf,
    probes: SocketAddr,
    started: Started,
    _dir: tempfile::TempDir,
}

impl Driver {
    /// `name`: of the driver, which begins the names of its transitions.
    pub(crate) async fn start(testbed: &Testbed, name: &str, node: &str, slurm: Option<&Path>) -> Self {
        Self::start_as(testbed, name, node, &testbed.kubeconfig(), slurm).await
    }

    /// With an account of its own.
    pub(crate) async fn start_as(
        testbed: &Testbed,
        name: &str,
        node: &str,
        kubeconfig: &Path,
        slurm: Option<&Path>,
    ) -> Self {
        let dir = tempfile::Builder::new().prefix("scupper-k-").tempdir().unwrap();
        let config = kube::config::Kubeconfig::read_from(testbed.kubeconfig()).unwrap();
        let config = kube::Config::from_custom_kubeconfig(config, &Default::default())
            .await
            .unwrap();
        let client = kube::Client::try_from(config).unwrap();
        let timing = Timing {
            registry_tick: Duration::from_millis(10),
            ..Timing::faster(100)
        };
        let kubelet = Kubelet::start(Options {
            timing,
            ..Options::new(client, node, dir.path())
        })
        .unwrap();
        let story = dir.path().join("story.json");
        let probes = free_address();
        let mut command = Command::new(env!("CARGO_BIN_EXE_scupper"));
        command
            .args([
                "kubelet-plugin",
                "--output",
                "json",
                "--driver-name",
                name,
                "--node-name",
                node,
            ])
            .args(["--claim", "auto", "--metrics-address", &probes.to_string()])
            .args(["--force", "--kubelet-root"])
            .arg(dir.path())
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .env("SCUPPER_CACHE_DIR", dir.path().join("cache"))
            .env("SCUPPER_LOG", "warn")
            .stdin(Stdio::null());
        if let Some(slurm) = slurm {
            command
                .arg("--policy")
                .arg(format!("slurm={}", slurm.display()))
                .args(["--grant", "slurm=node-annotations:nodeset.slinky.slurm.net/"]);
        }
        let (child, started) = start(&mut command, &story, &kubelet, probes).await;
        let begin = Instant::now();
        while transitions(testbed, name) < 2 {
            assert!(begin.elapsed() < LIMIT, "the driver publishes no transitions");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Self {
            child,
            command,
            kubelet,
            name: name.to_owned(),
            node: node.to_owned(),
            story,
            probes,
            started,
            _dir: dir,
        }
    }

    /// Ends it and starts it again, with its state on disk.
    pub(crate) async fn restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        (self.child, self.started) = start(&mut self.command, &self.story, &self.kubelet, self.probes).await;
    }

    /// The same, with these additional arguments from now on.
    pub(crate) async fn restart_with(&mut self, more: &[&str]) {
        self.command.args(more);
        self.restart().await;
    }

    pub(crate) const fn started(&self) -> Started {
        self.started
    }

    /// The peak of its resident memory since its start.
    pub(crate) fn most_rss_mib(&self) -> f64 {
        status_mib(self.child.id(), "VmHWM:")
    }

    /// Resets the peak.
    pub(crate) fn forget_the_most(&self) {
        std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5").unwrap();
    }

    pub(crate) fn rss_mib(&self) -> f64 {
        status_mib(self.child.id(), "VmRSS:")
    }

    /// Drains the node and returns the time from the kubelet's call to the end.
    pub(crate) async fn drain(&self, testbed: &Testbed) -> Duration {
        let name = self.event(testbed, &self.name).await;
        let finished = self.reported(&name);
        assert_eq!(finished["outcome"], "Drained", "{finished}");
        Duration::from_secs_f64(finished["seconds"].as_f64().unwrap())
    }

    pub(crate) async fn give_back(&self, testbed: &Testbed) {
        self.event(testbed, &format!("{}-uncordon", self.name)).await;
    }

    /// Creates an event and waits until the kubelet has finished it with success.
    async fn event(&self, testbed: &Testbed, transition: &str) -> String {
        let (name, status) = self.ended_event(testbed, transition).await;
        assert_eq!(status, "Succeeded", "{name}");
        name
    }

    /// Creates an event and waits until the kubelet has finished it. Returns its name and its last state.
    pub(crate) async fn ended_event(&self, testbed: &Testbed, transition: &str) -> (String, String) {
        let finished = self.kubelet.record().finished().len();
        let name = format!("{transition}-{}-{finished}", self.node);
        let event = json!({
            "apiVersion": "lifecycle.k8s.io/v1alpha1", "kind": "LifecycleEvent", "metadata": { "name": name },
            "spec": { "transitionName": transition, "bindingNode": self.node },
        });
        testbed.post(LIFECYCLE_EVENTS, &event);
        let is_it = |(event, _): &(String, String)| *event == name;
        self.kubelet
            .wait_for(|record| record.finished().iter().any(is_it), LIMIT)
            .await
            .unwrap();
        let ended = self.kubelet.record().finished();
        ended.into_iter().find(is_it).unwrap()
    }

    /// What it has printed of a drain.
    pub(crate) fn lines(&self, drain: &str) -> Vec<Value> {
        let story = std::fs::read_to_string(&self.story).unwrap();
        let lines = story
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["drain"] == drain).collect()
    }

    fn reported(&self, drain: &str) -> Value {
        let mut lines = self.lines(drain).into_iter().rev();
        lines.find(|line| line["kind"] == "finished").unwrap()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

async fn start(
    command: &mut Command,
    story: &Path,
    kubelet: &KubeletHandle,
    probes: SocketAddr,
) -> (Child, Started) {
    let before = registrations(kubelet.record());
    let begin = Instant::now();
    let child = command.stdout(File::create(story).unwrap()).spawn().unwrap();
    kubelet
        .wait_for(|record| registrations(record) > before, LIMIT)
        .await
        .unwrap();
    let registered = begin.elapsed();
    while !is_ready(probes) {
        assert!(begin.elapsed() < LIMIT, "the driver does not get ready");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let ready = begin.elapsed();
    (child, Started { registered, ready })
}

/// The number of transitions that this driver has published.
fn transitions(testbed: &Testbed, driver: &str) -> usize {
    let all = testbed.get(TRANSITIONS);
    let all = all["items"].as_array().unwrap().iter();
    all.filter(|it| it["spec"]["driver"] == driver).count()
}

fn registrations(record: &Record) -> usize {
    let is_done = |attempt: &&Attempt| attempt.notified.as_ref().is_some_and(|(ok, _)| *ok);
    record.attempts().iter().filter(is_done).count()
}

fn status_mib(pid: u32, field: &str) -> f64 {
    memory::kib(pid, field).unwrap() as f64 / 1024.0
}

fn free_address() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap()
}

/// The state that a kubelet's readiness probe sees.
fn is_ready(address: SocketAddr) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}
