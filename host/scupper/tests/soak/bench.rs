//! One node with an API server in memory, and one driver process that claims its events itself.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use scupper_simulator::api::{ApiServer, Options, objects};
use serde_json::{Value, json};

const NODE: &str = "worker-1";
const DRIVER: &str = "drain.soak";
const EVENTS: &str = "lifecycleevents.lifecycle.k8s.io";
const BUDGETS: &str = "poddisruptionbudgets.policy";
/// The limit for every wait, on a busy machine.
const LIMIT: Duration = Duration::from_secs(180);
/// The driver's output is read within this time.
const LATE: Duration = Duration::from_secs(10);
/// The drain's annotation.
const MARK: &str = "scupper.dev/drain";

/// Drains that began, and drains that ended with their outcome, as the driver prints them.
type Reported = Mutex<Vec<(String, Option<String>)>>;

/// See the module.
pub(crate) struct Bench {
    pub(crate) api: ApiServer,
    dir: tempfile::TempDir,
    driver: Child,
    reported: Arc<Reported>,
    pods: Cell<u32>,
    offset: Cell<i64>,
}

impl Bench {
    pub(crate) async fn start(policies: &Path) -> Self {
        let api = ApiServer::start(Options::default()).await.unwrap();
        let store = api.store();
        store.apply(objects::node(NODE).build()).unwrap();
        store.apply(objects::namespace("scupper").build()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("kubeconfig"), api.kubeconfig()).unwrap();
        fs::write(dir.path().join("offset"), "0").unwrap();
        for folder in ["plugins", "plugins_registry"] {
            fs::create_dir_all(dir.path().join("kubelet").join(folder)).unwrap();
        }
        let mut driver = spawn(dir.path(), policies);
        let reported: Arc<Reported> = Arc::default();
        let lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let hears = Arc::clone(&reported);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                record(&hears, &line);
            }
        });
        let mut bench = Self {
            api,
            dir,
            driver,
            reported,
            pods: Cell::new(0),
            offset: Cell::new(0),
        };
        bench
            .until("the driver offers its transition", |bench| {
                let transitions = bench.api.store().list("lifecycletransitions.lifecycle.k8s.io");
                transitions.iter().any(|it| it["spec"]["driver"] == DRIVER)
            })
            .await;
        bench
    }

    pub(crate) fn pid(&self) -> u32 {
        self.driver.id()
    }

    /// Requests a drain with this time limit.
    pub(crate) fn ask(&self, event: &str, timeout: Duration) {
        let timeout = format!("{}ms", timeout.as_millis());
        let flags = json!({
            "force": "false", "ignore-daemonsets": "true", "delete-emptydir-data": "true", "pod-selector": "",
            "skip-wait-for-delete-timeout": "0", "eviction-timeout": "1s", "timeout": timeout,
        });
        let event = objects::lifecycle_event(event, DRIVER, NODE);
        let event = event.annotation("scupper.dev/drain-flags", &flags.to_string());
        self.api.store().apply(event.build()).unwrap();
    }

    /// Waits until the driver has started it, or it is already over.
    pub(crate) async fn begun(&mut self, event: &str) {
        let what = format!("drain {event} begins");
        self.until(&what, |bench| {
            bench.has_begun(event) || bench.status(event).is_none()
        })
        .await;
    }

    /// Waits until the drain and its event are over; returns how it ended. Events that fail before their drain begins
    /// end with their own status, or with their Kubernetes Event.
    pub(crate) async fn end_of(&mut self, event: &str) -> String {
        let last = Cell::new(None);
        let gone = Cell::new(None::<Instant>);
        let what = format!("drain {event} ends");
        self.until(&what, |bench| {
            if let Some(status) = bench.status(event) {
                if ["Succeeded", "Failed", "SlaExpired"].contains(&status.as_str()) {
                    last.set(Some(status));
                }
                return false;
            }
            // The driver's output comes through a pipe, later than its writes to the API server.
            let since = gone.get().unwrap_or_else(Instant::now);
            gone.set(Some(since));
            bench.outcome(event).is_some() || since.elapsed() > LATE
        })
        .await;
        let claimed = || last.take().map(|status| format!("event {status}"));
        let reported = || {
            self.is_reported_as_failed(event)
                .then(|| "event Failed".to_owned())
        };
        let end = self.outcome(event).or_else(claimed).or_else(reported);
        self.reported.lock().unwrap().clear();
        end.unwrap_or_else(|| {
            panic!(
                "drain {event} has no named end; the driver logged:\n{}",
                self.log()
            )
        })
    }

    /// A Kubernetes Event reports it.
    fn is_reported_as_failed(&self, event: &str) -> bool {
        let words = format!("LifecycleEvent {event} failed");
        let events = self.api.store().list("events.events.k8s.io");
        events
            .iter()
            .any(|it| it["note"].as_str().is_some_and(|note| note.contains(&words)))
    }

    fn outcome(&self, event: &str) -> Option<String> {
        let reported = self.reported.lock().unwrap();
        reported
            .iter()
            .rev()
            .find(|(name, _)| name == event)
            .and_then(|(_, outcome)| outcome.clone())
    }

    fn has_begun(&self, event: &str) -> bool {
        let reported = self.reported.lock().unwrap();
        reported.iter().any(|(name, _)| name == event)
    }

    fn status(&self, event: &str) -> Option<String> {
        let event = self.api.store().get(EVENTS, "", event)?;
        Some(
            event["status"]["claimStatus"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        )
    }

    pub(crate) fn pods(&self, count: u32) {
        for _ in 0..count {
            self.pod(|pod| pod);
        }
    }

    pub(crate) fn slow_pod(&self) {
        self.pod(|pod| pod.takes(0.4));
    }

    pub(crate) fn stuck_pod(&self) {
        self.pod(objects::Object::stuck);
    }

    fn pod(&self, with: impl FnOnce(objects::Object) -> objects::Object) {
        let pod = objects::pod("shop", &self.name(), NODE)
            .owner_replicaset("web")
            .label("app", "web");
        self.api.store().apply(with(pod).build()).unwrap();
    }

    pub(crate) fn unmanaged_pod(&self) {
        let pod = objects::pod("shop", &self.name(), NODE);
        self.api.store().apply(pod.build()).unwrap();
    }

    fn name(&self) -> String {
        self.pods.set(self.pods.get() + 1);
        format!("web-{}", self.pods.get())
    }

    pub(crate) fn delete_a_pod(&self) {
        if let Some(pod) = self.api.store().list("pods").first() {
            let name = pod["metadata"]["name"].as_str().unwrap();
            // It may already be gone.
            self.api.store().delete("pods", "shop", name);
        }
    }

    pub(crate) fn close_budget(&self) {
        self.api
            .store()
            .apply(objects::budget("shop", "web", &[("app", "web")], "100%"))
            .unwrap();
    }

    pub(crate) fn open_budget(&self) {
        self.api.store().delete(BUDGETS, "shop", "web");
    }

    pub(crate) fn cancel(&self, event: &str) {
        // It may already be over.
        self.api.store().delete_gracefully(EVENTS, "", event).ok();
    }

    pub(crate) fn wipe_mark(&self) {
        self.edit_node(|node| {
            if let Some(annotations) = node["metadata"]["annotations"].as_object_mut() {
                annotations.remove(MARK);
            }
        });
    }

    pub(crate) fn cordon(&self, is_cordoned: bool) {
        self.edit_node(|node| node["spec"]["unschedulable"] = json!(is_cordoned));
    }

    fn edit_node(&self, change: impl FnOnce(&mut Value)) {
        self.api.store().edit("nodes", "", NODE, change).unwrap();
    }

    /// Sets the wall clock of the driver's machine.
    pub(crate) fn step_clock(&self, seconds: i64) {
        self.offset.set(self.offset.get() + seconds);
        let next = self.dir.path().join("offset.next");
        fs::write(&next, self.offset.get().to_string()).unwrap();
        fs::rename(next, self.dir.path().join("offset")).unwrap();
    }

    /// As before the drain, mostly without its cordon.
    pub(crate) fn clean_up(&self, uncordon: bool) {
        self.api.clear_faults();
        self.api.clear_forbidden();
        self.open_budget();
        for pod in self.api.store().list("pods") {
            let name = pod["metadata"]["name"].as_str().unwrap();
            self.api.store().delete("pods", "shop", name);
        }
        if uncordon {
            self.cordon(false);
        }
    }

    fn log(&self) -> String {
        let log = fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(60)..].join("\n")
    }

    async fn until(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            let ended = self.driver.try_wait().unwrap();
            assert!(
                begun.elapsed() < LIMIT && ended.is_none(),
                "not within {LIMIT:?}: {what} (driver: {ended:?}); the driver logged:\n{}",
                self.log()
            );
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.driver.kill().ok();
        self.driver.wait().ok();
    }
}

fn record(reported: &Reported, line: &str) {
    let Ok(notice) = serde_json::from_str::<Value>(line) else {
        return;
    };
    let Some(drain) = notice["drain"].as_str() else {
        return;
    };
    let mut reported = reported.lock().unwrap();
    if notice["kind"] == "finished" {
        let outcome = notice["outcome"].as_str().unwrap().to_owned();
        reported.push((drain.to_owned(), Some(outcome)));
    } else if reported.last().is_none_or(|(last, _)| last != drain) {
        reported.push((drain.to_owned(), None));
    }
}

fn spawn(dir: &Path, policies: &Path) -> Child {
    let text = |path: PathBuf| path.to_str().unwrap().to_owned();
    let policy = |name: &str| format!("{name}={}", text(policies.join(format!("{name}.wasm"))));
    Command::new(env!("CARGO_BIN_EXE_scupper"))
        .args([
            "--output",
            "json",
            "kubelet-plugin",
            "--driver-name",
            DRIVER,
            "--node-name",
            NODE,
        ])
        .args(["--claim", "self", "--sla", "30s"])
        .args(["--kubelet-root", &text(dir.join("kubelet"))])
        .args(["--kubeconfig", &text(dir.join("kubeconfig"))])
        .args(["--policy", &policy("priority"), "--policy", &policy("slurm")])
        .args(["--grant", "slurm=node-annotations:nodeset.slinky.slurm.net/"])
        .args([
            "--policy-cache",
            &text(dir.join("compiled")),
            "--state-dir",
            &text(dir.join("state")),
        ])
        .env("SCUPPER_LOG", "warn")
        .env_remove("POD_NAME")
        .env("LD_PRELOAD", crate::clock_library::library(dir))
        .env("WALL_OFFSET", dir.join("offset"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(File::create(dir.join("log")).unwrap())
        .spawn()
        .unwrap()
}
