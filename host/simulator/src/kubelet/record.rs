//! A record of a simulated kubelet's actions, in order, for tests.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio::time::Instant;

/// One action of the kubelet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It tried to register the driver behind a socket.
    Attempted(Attempt),
    /// A driver's endpoint is registered.
    Registered {
        /// The driver.
        driver: String,
        /// Its service socket.
        endpoint: PathBuf,
    },
    /// A driver's endpoint is no longer registered.
    Deregistered {
        /// The driver.
        driver: String,
        /// Its service socket.
        endpoint: PathBuf,
    },
    /// It claimed an event.
    Claimed {
        /// The event.
        event: String,
        /// Its UID.
        uid: String,
        /// The driver for it.
        driver: String,
        /// Its deadline.
        sla: Option<String>,
    },
    /// It calls a driver.
    Calling {
        /// Start or End.
        kind: Kind,
        /// The event.
        event: String,
    },
    /// The call of a driver ended.
    Called(Call),
    /// It wrote the node's condition, or failed to.
    Patched {
        /// The reason written.
        reason: String,
        /// Why it failed.
        error: Option<String>,
    },
    /// It wrote a terminal status to an event, or failed to.
    Finished {
        /// The event.
        event: String,
        /// Its UID.
        uid: String,
        /// The status.
        status: String,
        /// Why the write failed; then the event is driven again.
        error: Option<String>,
    },
    /// A pass ended.
    Passed(Pass),
    /// It deleted node-scoped transitions.
    CleanedUp {
        /// The field selector.
        selector: String,
        /// Why it failed; then it is retried.
        error: Option<String>,
    },
    /// It was restarted.
    Restarted,
}

/// One attempt to register the plugin behind a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The registration socket.
    pub socket: PathBuf,
    /// The driver's name, if `GetInfo` answered.
    pub driver: Option<String>,
    /// The notification of the driver: registered or not, and the text. `None`: it could not be reached.
    pub notified: Option<(bool, String)>,
    /// The cause of its failure.
    pub error: Option<String>,
}

/// One of the two calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// StartLifecycleTransition
    Start,
    /// EndLifecycleTransition
    End,
}

/// A driver's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The wanted reason of the node's condition.
    pub condition: String,
    /// The node to write it to.
    pub node: String,
    /// The driver's error.
    pub error: String,
}

/// A call of a driver and its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Start or End.
    pub kind: Kind,
    /// The driver called.
    pub driver: String,
    /// Its endpoint, if one was registered.
    pub endpoint: Option<PathBuf>,
    /// The transition.
    pub transition: String,
    /// The event.
    pub event: String,
    /// End only: whether the deadline was reported as passed.
    pub sla_expired: bool,
    /// The response, or the reason why there is none.
    pub answer: Result<Answer, String>,
}

/// A pass of the loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    /// The chosen action.
    pub step: Step,
    /// The chosen event.
    pub event: Option<String>,
    /// The result.
    pub outcome: Outcome,
}

/// The actions of a pass, in order of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Continue a claimed event.
    Drive,
    /// Claim a pending one.
    Claim,
    /// Remove a terminal one.
    CleanUp,
    /// There is no event.
    Nothing,
}

/// The result of a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded.
    Done,
    /// It did not change the event, for this reason, and will try it again.
    Unchanged(String),
}

/// Every action of a kubelet since its creation, restarts included.
#[derive(Clone, Debug)]
pub struct Record {
    entries: Arc<Mutex<Vec<(Instant, Entry)>>>,
    count: Arc<watch::Sender<usize>>,
}

impl Record {
    pub(super) fn new() -> Self {
        Self {
            entries: Arc::default(),
            count: Arc::new(watch::Sender::new(0)),
        }
    }

    pub(super) fn add(&self, entry: Entry) {
        tracing::debug!(target: "scupper_simulator::kubelet", ?entry, "kubelet");
        let count = {
            let mut entries = self.lock();
            entries.push((Instant::now(), entry));
            entries.len()
        };
        self.count.send_replace(count);
    }

    /// Changes with each entry.
    pub(super) fn watch(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }

    /// All entries, oldest first.
    pub fn entries(&self) -> Vec<Entry> {
        self.lock().iter().map(|(_, entry)| entry.clone()).collect()
    }

    /// All entries with the time of each, by tokio's clock.
    pub fn timed(&self) -> Vec<(Instant, Entry)> {
        self.lock().clone()
    }

    /// The calls.
    pub fn calls(&self) -> Vec<Call> {
        self.pick(|entry| match entry {
            Entry::Called(call) => Some(call.clone()),
            _ => None,
        })
    }

    /// The passes.
    pub fn passes(&self) -> Vec<Pass> {
        self.pick(|entry| match entry {
            Entry::Passed(pass) => Some(pass.clone()),
            _ => None,
        })
    }

    /// The attempts at registration.
    pub fn attempts(&self) -> Vec<Attempt> {
        self.pick(|entry| match entry {
            Entry::Attempted(attempt) => Some(attempt.clone()),
            _ => None,
        })
    }

    /// The reasons set in the node's condition.
    pub fn reasons(&self) -> Vec<String> {
        self.pick(|entry| match entry {
            Entry::Patched { reason, error: None } => Some(reason.clone()),
            _ => None,
        })
    }

    /// The ended events: name and terminal status.
    pub fn finished(&self) -> Vec<(String, String)> {
        self.pick(|entry| match entry {
            Entry::Finished {
                event,
                status,
                error: None,
                ..
            } => Some((event.clone(), status.clone())),
            _ => None,
        })
    }

    /// The entries for which `choose` returns a value.
    pub fn pick<T>(&self, choose: impl Fn(&Entry) -> Option<T>) -> Vec<T> {
        self.lock()
            .iter()
            .filter_map(|(_, entry)| choose(entry))
            .collect()
    }

    /// The last entries, formatted.
    pub fn tail(&self) -> String {
        const SHOWN: usize = 40;
        let entries = self.lock();
        let skipped = entries.len().saturating_sub(SHOWN);
        let lines = entries
            .iter()
            .skip(skipped)
            .map(|(_, entry)| format!("  {entry:?}\n"));
        lines.collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Instant, Entry)>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
