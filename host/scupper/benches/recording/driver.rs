//! A driver as a separate process with a simulated API server of its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use scupper_simulator::api::{ApiServer, Options, objects};

use crate::memory;
use crate::process::{NODE, Process, files};

const DRIVER: &str = "drain.bench";
const EVENTS: &str = "lifecycleevents.lifecycle.k8s.io";
const LIMIT: Duration = Duration::from_secs(180);
/// What follows from a drain is written by then, also to the disk.
const SETTLED: Duration = Duration::from_millis(1500);
/// Linux shows CPU time in this many steps a second, whatever its own clock.
const TICKS: u64 = 100;

/// The recordings that a driver has when its next drain begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    /// None, ever.
    Nothing,
    /// None: each one is removed before the next drain.
    Last,
    /// Those of all earlier drains.
    All,
}

/// A running driver, ended when dropped.
pub(crate) struct Driver {
    process: Process,
    api: ApiServer,
    keeps: Keeps,
    drains: usize,
    recorded: u64,
    /// How many of each kind, since the first drain.
    requests: BTreeMap<String, usize>,
}

impl Driver {
    pub(crate) async fn start(keeps: Keeps) -> Self {
        let api = ApiServer::start(Options::default()).await.unwrap();
        let store = api.store();
        store.apply(objects::node(NODE).build()).unwrap();
        store.apply(objects::namespace("scupper").build()).unwrap();
        let limits = match keeps {
            Keeps::Nothing => "number=0",
            Keeps::Last | Keeps::All => "number=200",
        };
        let process = Process::start(&api, DRIVER, files(), |command, _| {
            command.args(["--claim", "self", "--recording-limits", limits]);
        });
        let driver = Self {
            process,
            api,
            keeps,
            drains: 0,
            recorded: 0,
            requests: BTreeMap::new(),
        };
        driver
            .until(|driver| {
                let transitions = driver.api.store().list("lifecycletransitions.lifecycle.k8s.io");
                transitions.iter().any(|it| it["spec"]["driver"] == DRIVER)
            })
            .await;
        driver
    }

    /// Drains so many pods, and waits until the driver is idle again.
    pub(crate) async fn drain(&mut self, pods: usize) {
        if self.keeps == Keeps::Last {
            self.recordings()
                .iter()
                .for_each(|file| fs::remove_file(file).unwrap());
        }
        self.drains += 1;
        let (store, name) = (self.api.store(), format!("drain-{}", self.drains));
        for number in 0..pods {
            let pod = objects::pod(
                "shop",
                &format!("web-7c9f5d6b4-{}-{number:03}", self.drains),
                NODE,
            )
            .owner_replicaset("web-7c9f5d6b4")
            .label("app.kubernetes.io/name", "web")
            .label("app.kubernetes.io/part-of", "shop")
            .label("pod-template-hash", "7c9f5d6b4")
            .annotation("kubernetes.io/config.source", "api")
            .takes(0.5);
            store.apply(pod.build()).unwrap();
        }
        let mark = self.api.mark();
        let event = objects::lifecycle_event(&name, DRIVER, NODE);
        store.apply(event.build()).unwrap();
        self.until(|driver| {
            let event = driver.api.store().get(EVENTS, "", &name);
            // It deletes its own events at the end.
            event.is_none_or(|event| event["status"]["claimStatus"] == "Succeeded")
        })
        .await;
        assert!(store.list("pods").is_empty(), "{name} has not drained the node");
        if self.drains > 1 {
            for request in self.api.requests_since(mark) {
                let kind = [request.verb, request.resource, request.subresource].join(" ");
                *self.requests.entry(kind.trim_end().to_owned()).or_default() += 1;
            }
        }
        let node = |node: &mut serde_json::Value| node["spec"]["unschedulable"] = false.into();
        store.edit("nodes", "", NODE, node).unwrap();
        tokio::time::sleep(SETTLED).await;
        let newest = self.recordings().pop();
        let bytes = newest.map(|file| fs::metadata(file).unwrap().len());
        self.recorded = bytes.unwrap_or_default();
        assert_eq!(self.keeps == Keeps::Nothing, self.recorded == 0);
    }

    pub(crate) fn cpu(&self) -> Duration {
        cpu(self.process.pid())
    }

    /// A field of its status.
    pub(crate) fn mib(&self, field: &str) -> f64 {
        memory::kib(self.process.pid(), field).unwrap() as f64 / 1024.0
    }

    /// The bytes of the last recording.
    pub(crate) const fn recorded(&self) -> u64 {
        self.recorded
    }

    /// The requests from a drain's event to its end, of each kind, of all drains after the first.
    pub(crate) const fn requests(&self) -> &BTreeMap<String, usize> {
        &self.requests
    }

    /// The oldest first.
    pub(crate) fn recordings(&self) -> Vec<PathBuf> {
        let Ok(files) = fs::read_dir(self.process.file("state/recordings")) else {
            return Vec::new();
        };
        let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        files.sort();
        files
    }

    async fn until(&self, holds: impl Fn(&Self) -> bool) {
        let begin = Instant::now();
        while !holds(self) {
            assert!(begin.elapsed() < LIMIT, "not within {LIMIT:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// The CPU time of all threads of a process, also of those that have ended.
pub(crate) fn cpu(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
    let ticks = fields.skip(11).take(2).map(|field| field.parse::<u64>().unwrap());
    Duration::from_millis(ticks.sum::<u64>() * 1000 / TICKS)
}
