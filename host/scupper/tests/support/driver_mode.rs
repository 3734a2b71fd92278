//! The program in `kubelet-plugin` mode on a simulated API server and kubelet. A test can kill and restart it, and run
//! commands beside it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use scupper_simulator::api::{self, ApiServer, objects};
use scupper_simulator::kubelet::{self, Entry, Kubelet, KubeletHandle, Timing};
use serde_json::{Value, json};

use crate::limit::LIMIT;

pub(crate) const DRIVER: &str = "drain.example";
const LIFECYCLE_EVENTS: &str = "lifecycleevents.lifecycle.k8s.io";
const TRANSITIONS: &str = "lifecycletransitions.lifecycle.k8s.io";
const LOOK: Duration = Duration::from_millis(50);

/// A node, and the driver on it once it is started.
pub(crate) struct DriverMode {
    pub(crate) api: Arc<ApiServer>,
    kubelet: KubeletHandle,
    name: String,
    driver: Option<Child>,
    commands: usize,
    folder: tempfile::TempDir,
}

/// A running command. Dropped, it is killed.
pub(crate) struct Typed {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl DriverMode {
    /// The node and these objects. `drain` and `policies` are the parts of `scupper.yaml` of those names.
    pub(crate) async fn new(node: &str, objects: Vec<Value>, drain: Value, policies: Value) -> Self {
        let api = ApiServer::start(api::Options::default()).await.unwrap();
        api.store().apply(objects::namespace("scupper").build()).unwrap();
        Self::on(Arc::new(api), node, objects, drain, policies)
    }

    /// Another node of the same cluster.
    pub(crate) fn beside(&self, node: &str, objects: Vec<Value>, drain: Value, policies: Value) -> Self {
        Self::on(Arc::clone(&self.api), node, objects, drain, policies)
    }

    fn on(api: Arc<ApiServer>, node: &str, objects: Vec<Value>, drain: Value, policies: Value) -> Self {
        let store = api.store();
        store.apply(objects::node(node).build()).unwrap();
        for object in objects {
            store.apply(object).unwrap();
        }
        // A short path: a kubelet's socket lies below it.
        let folder = tempfile::Builder::new().prefix("sd-").tempdir_in("/tmp").unwrap();
        let mut config = api.client_config();
        config.auth_info.token = Some(format!("system:node:{node}").into());
        let client = kube::Client::try_from(config).unwrap();
        let kubelet = Kubelet::start(kubelet::Options {
            timing: Timing::faster(20),
            ..kubelet::Options::new(client, node, folder.path().join("k"))
        })
        .unwrap();
        std::fs::write(folder.path().join("kubeconfig"), api.kubeconfig()).unwrap();
        let rig = Self {
            api,
            kubelet,
            name: node.to_owned(),
            driver: None,
            commands: 0,
            folder,
        };
        rig.configure(drain, policies);
        rig
    }

    /// Rewrites `scupper.yaml`: a running driver reads it again.
    pub(crate) fn configure(&self, drain: Value, policies: Value) {
        let whole = json!({
            "apiVersion": "scupper.dev/v1alpha1", "kind": "Configuration", "drain": drain, "policies": policies,
        });
        let (new, file) = (
            self.folder.path().join("new.yaml"),
            self.folder.path().join("scupper.yaml"),
        );
        std::fs::write(&new, whole.to_string()).unwrap();
        std::fs::rename(new, file).unwrap();
    }

    /// Starts the driver, and waits until it publishes its transitions.
    pub(crate) async fn start(&mut self) {
        let before = self.registrations();
        let args = [
            "kubelet-plugin",
            "--driver-name",
            DRIVER,
            "--node-name",
            &self.name,
            "--kubelet-root",
            self.kubelet.root().to_str().unwrap(),
        ];
        let (out, err) = (self.output_file("out"), self.output_file("err"));
        let driver = self.spawn(&args, &out, &err);
        self.driver = Some(driver);
        self.until("the driver offers its transitions", || {
            self.api.store().list(TRANSITIONS).len() == 2 && self.registrations() > before
        })
        .await;
    }

    fn registrations(&self) -> usize {
        let is_one = |entry: &Entry| matches!(entry, Entry::Registered { .. }).then_some(());
        self.kubelet.record().pick(is_one).len()
    }

    /// `kill -9`
    pub(crate) fn kill(&mut self) {
        if let Some(mut driver) = self.driver.take() {
            driver.kill().unwrap();
            driver.wait().unwrap();
        }
    }

    /// Requests a drain, and returns how its event ended.
    pub(crate) async fn drain(&self, event: &str) -> String {
        self.begin_drain(event);
        self.ends(event).await
    }

    /// Requests the uncordon, and returns how its event ended.
    pub(crate) async fn uncordon(&self, event: &str) -> String {
        self.begin_uncordon(event);
        self.ends(event).await
    }

    /// Requests the uncordon, and does not wait.
    pub(crate) fn begin_uncordon(&self, event: &str) {
        self.ask(event, &format!("{DRIVER}-uncordon"));
    }

    /// Requests a drain, and does not wait.
    pub(crate) fn begin_drain(&self, event: &str) {
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
        let finished = self.kubelet.record().finished();
        finished.into_iter().find(|(name, _)| name == event).unwrap().1
    }

    /// Withdraws the request for a drain, and waits until the driver has ended it.
    pub(crate) async fn cancel(&self, event: &str) {
        let ends = self.reported().matches("Cancelled").count();
        self.api
            .store()
            .delete_gracefully(LIFECYCLE_EVENTS, "", event)
            .unwrap();
        self.until("the drain is cancelled", || {
            self.reported().matches("Cancelled").count() > ends
        })
        .await;
    }

    /// Runs `scupper <command>`; for a policy's part it uses `scupper.yaml`.
    pub(crate) fn types(&mut self, args: &[&str]) -> Typed {
        self.commands += 1;
        let (out, err) = (
            self.output_file(&format!("out-{}", self.commands)),
            self.output_file(&format!("err-{}", self.commands)),
        );
        Typed {
            child: self.spawn(args, &out, &err),
            out,
            err,
        }
    }

    fn spawn(&self, args: &[&str], out: &Path, err: &Path) -> Child {
        let folder = self.folder.path();
        std::fs::create_dir_all(folder.join("said")).unwrap();
        let open = |file: &Path| File::options().create(true).append(true).open(file).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_scupper"));
        command.args(args);
        if matches!(
            args.first(),
            Some(&("kubelet-plugin" | "drain" | "uncordon" | "plan" | "doctor"))
        ) {
            command.args(["--config", "scupper.yaml"]);
        }
        if matches!(
            args.first(),
            Some(&("kubelet-plugin" | "drain" | "uncordon" | "plan"))
        ) {
            command.args(["--policy-cache", "cache"]);
        }
        command
            .current_dir(folder)
            .env("KUBECONFIG", folder.join("kubeconfig"))
            .env_remove("POD_NAME")
            .env_remove("SCUPPER_LOG")
            .stdin(Stdio::null())
            .stdout(open(out))
            .stderr(open(err))
            .spawn()
            .unwrap()
    }

    fn output_file(&self, file: &str) -> PathBuf {
        self.folder.path().join("said").join(file)
    }

    /// The driver's output, followed by its log.
    pub(crate) fn reported(&self) -> String {
        let read = |file| std::fs::read_to_string(self.output_file(file)).unwrap_or_default();
        format!("{}{}", read("out"), read("err"))
    }

    pub(crate) fn is_cordoned(&self) -> bool {
        let node = self.api.store().get("nodes", "", &self.name).unwrap();
        node["spec"]["unschedulable"] == true
    }

    /// The write of `kubectl uncordon`.
    pub(crate) fn kubectl_uncordon(&self) {
        let lift = |node: &mut Value| {
            if let Some(spec) = node["spec"].as_object_mut() {
                spec.remove("unschedulable");
                spec.remove("taints");
            }
        };
        self.api.store().edit("nodes", "", &self.name, lift).unwrap();
    }

    /// The Events of this reason: their notes.
    pub(crate) fn events(&self, reason: &str) -> Vec<String> {
        let events = self.api.store().list("events.events.k8s.io");
        let of = events.iter().filter(|event| event["reason"] == reason);
        of.map(|event| event["note"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    pub(crate) async fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let begun = Instant::now();
        while !holds() {
            assert!(
                begun.elapsed() < LIMIT,
                "not in time: {what}\n{}",
                self.reported()
            );
            tokio::time::sleep(LOOK).await;
        }
    }
}

impl Drop for DriverMode {
    fn drop(&mut self) {
        if let Some(driver) = &mut self.driver {
            driver.kill().ok();
            driver.wait().ok();
        }
    }
}

impl Typed {
    pub(crate) fn stdout(&self) -> String {
        std::fs::read_to_string(&self.out).unwrap()
    }

    fn stderr(&self) -> String {
        std::fs::read_to_string(&self.err).unwrap()
    }

    /// Ctrl-C.
    pub(crate) fn interrupt(&self) {
        let process = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    }

    /// Waits until it prints this.
    pub(crate) async fn prints(&mut self, words: &str) {
        let begun = Instant::now();
        while !self.stdout().contains(words) {
            let runs = self.child.try_wait().unwrap().is_none();
            assert!(
                runs && begun.elapsed() < LIMIT,
                "it does not say {words:?}: {}{}",
                self.stdout(),
                self.stderr()
            );
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until it has ended.
    pub(crate) async fn ended(mut self) -> Ended {
        let begun = Instant::now();
        let code = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.code();
            }
            assert!(
                begun.elapsed() < LIMIT,
                "it does not end: {}{}",
                self.stdout(),
                self.stderr()
            );
            tokio::time::sleep(LOOK).await;
        };
        Ended {
            code,
            stdout: self.stdout(),
            stderr: self.stderr(),
        }
    }
}

impl Drop for Typed {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
