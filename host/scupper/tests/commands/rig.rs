//! A simulated cluster, and the program that runs against it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) use crate::limit::LIMIT;
use crate::program::program;
use rustix::process::{Pid, Signal, kill_process};
use scupper_simulator::api::{ApiServer, Options, objects};
use serde_json::Value;

/// A cluster of three nodes, each unchanged.
pub(crate) struct Rig {
    pub(crate) api: ApiServer,
    pub(crate) dir: tempfile::TempDir,
    /// Whether drains may be recorded where whoever runs the tests wants to have them.
    pub(crate) is_recorded: bool,
    runtime: tokio::runtime::Runtime,
}

/// The result of a run of the program.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The running program. Dropped, it is killed.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Rig {
    pub(crate) fn new() -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let api = runtime.block_on(async { ApiServer::start(Options::default()).await.unwrap() });
        for (node, pool) in [("worker-1", "a"), ("worker-2", "a"), ("worker-3", "b")] {
            api.store()
                .apply(objects::node(node).label("pool", pool).build())
                .unwrap();
        }
        api.store().apply(objects::namespace("scupper").build()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("kubeconfig"), api.kubeconfig()).unwrap();
        Self {
            api,
            dir,
            is_recorded: true,
            runtime,
        }
    }

    /// A handle to the runtime that spawns tasks.
    pub(crate) fn inside<T>(&self, does: impl FnOnce() -> T) -> T {
        let _inside = self.runtime.enter();
        does()
    }

    /// What is started from now on acts as this user.
    pub(crate) fn act_as(&self, user: &str) {
        fs::write(self.dir.path().join("kubeconfig"), self.api.kubeconfig_for(user)).unwrap();
    }

    /// A pod of a ReplicaSet.
    pub(crate) fn pod(&self, name: &str, node: &str) -> objects::Object {
        objects::pod("shop", name, node)
            .owner_replicaset("web")
            .label("app", name)
    }

    pub(crate) fn apply(&self, object: impl Into<Value>) {
        self.api.store().apply(object.into()).unwrap();
    }

    /// A budget that allows no eviction of this name's pods, once it has counted them.
    pub(crate) fn budget(&self, name: &str, of: &str) {
        self.apply(objects::budget("shop", name, &[("app", of)], 1));
        let begun = Instant::now();
        let counted = || {
            let budgets = self.objects("poddisruptionbudgets.policy").into_iter();
            budgets
                .filter(|budget| budget["metadata"]["name"] == name)
                .any(|budget| budget["status"]["currentHealthy"] == 1)
        };
        while !counted() {
            assert!(begun.elapsed() < LIMIT, "the budget {name} is not counted");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// A Service of the pods of this app.
    pub(crate) fn service(&self, app: &str) {
        self.apply(objects::service("shop", app, ("app", app)));
    }

    pub(crate) fn start(&self, args: &[&str]) -> Running {
        self.start_in(args, &[])
    }

    /// With these variables in its environment.
    pub(crate) fn start_in(&self, args: &[&str], environment: &[(&str, &str)]) -> Running {
        static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let file = |what: &str| self.dir.path().join(format!("{what}-{number}"));
        let (out, err) = (file("out"), file("err"));
        let mut command = Command::new(program());
        if !self.is_recorded {
            command
                .env_remove("SCUPPER_RECORD")
                .env_remove("SCUPPER_RECORDINGS");
        }
        let child = command
            .args(args)
            .env("KUBECONFIG", self.dir.path().join("kubeconfig"))
            .env("SCUPPER_LOG", "warn")
            .env_remove("POD_NAME")
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(File::create(&out).unwrap())
            .stderr(File::create(&err).unwrap())
            .spawn()
            .unwrap();
        Running { child, out, err }
    }

    pub(crate) fn run(&self, args: &[&str]) -> Run {
        self.start(args).ended()
    }

    /// A drain of worker-1 from a terminal, which has asked the only pod to leave and waits for it.
    pub(crate) fn drain_of_stuck_pod(&self) -> Running {
        self.apply(self.pod("stuck", "worker-1").stuck());
        let mut drain = self.start(&["drain", "worker-1"]);
        drain.prints("evict    shop/stuck");
        drain
    }

    /// Others cordon worker-1, which has the label by which a cordon drains it.
    pub(crate) fn drain_by_cordon(&self) {
        let edited = self.inside(|| {
            self.api.store().edit("nodes", "", "worker-1", |node| {
                node["metadata"]["labels"] = serde_json::json!({"scupper.dev/drain-on-cordon": "true"});
                node["spec"]["unschedulable"] = serde_json::json!(true);
            })
        });
        edited.unwrap();
    }

    /// A process of another machine holds the Lease of worker-1, for so many seconds.
    pub(crate) fn leased_to(&self, holder: &str, seconds: u32) {
        self.apply(serde_json::json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"namespace": "scupper", "name": "worker-1"},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": seconds, "leaseTransitions": 1},
        }));
    }

    pub(crate) fn node(&self, name: &str) -> Value {
        self.objects("nodes")
            .into_iter()
            .find(|node| node["metadata"]["name"] == name)
            .unwrap()
    }

    pub(crate) fn is_cordoned(&self, name: &str) -> bool {
        self.node(name)["spec"]["unschedulable"] == true
    }

    pub(crate) fn mark(&self, name: &str) -> Option<Value> {
        let text = self.node(name)["metadata"]["annotations"]["scupper.dev/drain"]
            .as_str()?
            .to_owned();
        Some(serde_json::from_str(&text).unwrap())
    }

    /// The names of the existing pods.
    pub(crate) fn pods(&self) -> Vec<String> {
        let pods = self.objects("pods").into_iter();
        let mut names: Vec<String> = pods
            .map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    }

    pub(crate) fn objects(&self, resource: &str) -> Vec<Value> {
        let _inside = self.runtime.enter();
        self.api.store().list(resource)
    }
}

impl Running {
    pub(crate) fn stdout(&self) -> String {
        fs::read_to_string(&self.out).unwrap()
    }

    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(&self.err).unwrap()
    }

    /// Waits for a line of its output with this text.
    #[track_caller]
    pub(crate) fn prints(&mut self, text: &str) {
        let begun = Instant::now();
        while !self.stdout().contains(text) {
            assert!(
                begun.elapsed() < LIMIT && self.child.try_wait().unwrap().is_none(),
                "it does not say {text:?}: {}{}",
                self.stdout(),
                read(&self.err)
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// `kill -9`, and waits until it is gone.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until it ends by itself.
    #[track_caller]
    pub(crate) fn ended(mut self) -> Run {
        let begun = Instant::now();
        let code = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.code();
            }
            assert!(
                begun.elapsed() < LIMIT,
                "it does not end: {}{}",
                self.stdout(),
                read(&self.err)
            );
            std::thread::sleep(Duration::from_millis(10));
        };
        Run {
            code,
            stdout: self.stdout(),
            stderr: read(&self.err),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to do.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
