//! Starts a simulated kubelet, and its handle for tests.

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use scupper_contract::{PLUGINS_DIR, REGISTRY_DIR};
use tokio::sync::OwnedMutexGuard;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::objects::Objects;
use super::options::{Faults, Options};
use super::plugins::Plugins;
use super::random::Random;
use super::record::{Attempt, Call, Entry, Pass, Record};
use super::sockets::{Sockets, WatchError};
use super::{cleanup, pass, registry};

/// The mode of a kubelet's folders.
const FOLDER_MODE: u32 = 0o750;

/// The kubelet did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A folder could not be created.
    #[error("cannot create {path}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The registry folder cannot be watched.
    #[error(transparent)]
    Watch(#[from] WatchError),
}

/// The state that the parts of a running kubelet share. A restart begins with a new one.
#[derive(Debug)]
pub(super) struct Inner {
    pub options: Options,
    pub plugins: Plugins,
    pub objects: Objects,
    pub random: Random,
    pub record: Record,
    /// Held during a pass.
    pub turn: Arc<Turn>,
}

/// Held by a pass, or by a test that blocks passes.
pub(super) type Turn = tokio::sync::Mutex<()>;

/// While this exists, no pass begins.
#[derive(Debug)]
pub struct Held(#[expect(dead_code, reason = "held, never read")] OwnedMutexGuard<()>);

/// A simulated kubelet.
#[derive(Debug)]
pub struct Kubelet;

impl Kubelet {
    /// Starts one. It runs on the current Tokio runtime until its handle is dropped.
    pub fn start(options: Options) -> Result<KubeletHandle, StartError> {
        let handle = KubeletHandle {
            faults: Faults::default(),
            record: Record::new(),
            turn: Arc::default(),
            gate: AtomicBool::new(options.gate),
            options,
            run: Mutex::new(None),
        };
        handle.up()?;
        Ok(handle)
    }
}

/// A running kubelet's tasks and memory.
#[derive(Debug)]
struct Run {
    tasks: JoinSet<()>,
    inner: Arc<Inner>,
}

impl Drop for Run {
    fn drop(&mut self) {
        // Running removals hold a reference to the state that contains them.
        self.inner.plugins.forget();
    }
}

/// A running simulated kubelet. Dropped, it ends.
#[derive(Debug)]
pub struct KubeletHandle {
    options: Options,
    /// Whether it knows SLM from its next start on.
    gate: AtomicBool,
    faults: Faults,
    record: Record,
    turn: Arc<Turn>,
    run: Mutex<Option<Run>>,
}

impl KubeletHandle {
    /// The kubelet's root.
    pub fn root(&self) -> &Path {
        &self.options.root
    }

    /// Its faults.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// The record of its actions so far.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Its calls of drivers.
    pub fn calls(&self) -> Vec<Call> {
        self.record.calls()
    }

    /// Its passes.
    pub fn passes(&self) -> Vec<Pass> {
        self.record.passes()
    }

    /// Its attempts to register drivers.
    pub fn attempts(&self) -> Vec<Attempt> {
        self.record.attempts()
    }

    /// The registered drivers, each with its endpoints, oldest first.
    pub fn registered(&self) -> BTreeMap<String, Vec<PathBuf>> {
        self.lock()
            .as_ref()
            .map(|run| run.inner.plugins.all())
            .unwrap_or_default()
    }

    /// Cuts every connection to every driver. The channels go idle, as after any loss of a connection.
    pub fn drop_connections(&self) {
        if let Some(run) = self.lock().as_ref() {
            run.inner.plugins.cut();
        }
    }

    /// Waits for the end of a running pass, and blocks the next one. No driver is called then, so it can be replaced.
    pub async fn hold(&self) -> Held {
        Held(Arc::clone(&self.turn).lock_owned().await)
    }

    /// Ends it like a crash: cuts a running call, without cleanup.
    pub async fn stop(&self) {
        let run = self.lock().take();
        if let Some(mut run) = run {
            run.tasks.shutdown().await;
        }
    }

    /// Starts it after `stop`, without its former state. Does nothing if it runs.
    pub fn up(&self) -> Result<(), StartError> {
        let mut slot = self.lock();
        if slot.is_none() {
            *slot = Some(self.begin()?);
        }
        Ok(())
    }

    /// Sets whether it knows SLM from its next start on.
    pub fn set_gate(&self, gate: bool) {
        self.gate.store(gate, Ordering::Relaxed);
    }

    /// Restarts it.
    pub async fn restart(&self) -> Result<(), StartError> {
        self.stop().await;
        self.record.add(Entry::Restarted);
        self.up()
    }

    /// Waits until `done` is true for the record; the error contains the record if it times out.
    pub async fn wait_for(&self, done: impl Fn(&Record) -> bool, limit: Duration) -> Result<(), String> {
        let mut changed = self.record.watch();
        let wait = async {
            while !done(&self.record) {
                if changed.changed().await.is_err() {
                    break;
                }
            }
        };
        timeout(limit, wait).await.map_err(|_| {
            format!(
                "not within {limit:?}; the kubelet did: {:#?}",
                self.record.entries()
            )
        })
    }

    fn begin(&self) -> Result<Run, StartError> {
        let registry = self.options.root.join(REGISTRY_DIR);
        for path in [&registry, &self.options.root.join(PLUGINS_DIR)] {
            DirBuilder::new()
                .recursive(true)
                .mode(FOLDER_MODE)
                .create(path)
                .map_err(|source| StartError::Folder {
                    path: path.clone(),
                    source,
                })?;
        }
        let sockets = Sockets::watch(&registry)?;
        let gate = self.gate.load(Ordering::Relaxed);
        let options = Options {
            gate,
            ..self.options.clone()
        };
        let inner = Arc::new(Inner {
            plugins: Plugins::new(&options.timing, &self.record),
            objects: Objects::new(&options, &self.faults),
            random: Random::new(options.seed),
            record: self.record.clone(),
            turn: Arc::clone(&self.turn),
            options,
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(registry::run(Arc::clone(&inner), sockets));
        if gate {
            tasks.spawn(cleanup::at_start(Arc::clone(&inner)));
            tasks.spawn(pass::run(Arc::clone(&inner)));
        }
        Ok(Run { tasks, inner })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Run>> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
