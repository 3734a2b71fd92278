//! The options of a simulated kubelet, and its faults while it runs.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use kube::api::ApiResource;
use scupper_contract::{GROUP, VERSION};

/// The options of a kubelet. `Options::new` sets the contract's values for the other fields.
#[derive(Clone)]
pub struct Options {
    /// The API server.
    pub client: Client,
    /// The kubelet's node.
    pub node: String,
    /// The kubelet's root, with `plugins_registry` and `plugins` below it.
    pub root: PathBuf,
    /// The node's `/`: drivers' endpoints are relative to it.
    pub slash: PathBuf,
    /// Intervals and time limits.
    pub timing: Timing,
    /// The seed for the choice of events; the same seed and events give the same choices.
    pub seed: u64,
    /// The description of SLM that it follows.
    pub mode: Mode,
    /// Whether this kubelet knows SLM. Otherwise it refuses plugins of the type `SLMPlugin` and claims nothing.
    pub gate: bool,
    /// The wall clock for objects and deadlines.
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// The kind of the events.
    pub events: ApiResource,
    /// The kind of the transitions.
    pub transitions: ApiResource,
}

impl Options {
    /// A kubelet of `node` with its root at `root`.
    pub fn new(client: Client, node: &str, root: impl Into<PathBuf>) -> Self {
        Self {
            client,
            node: node.to_owned(),
            root: root.into(),
            slash: PathBuf::from("/"),
            timing: Timing::default(),
            seed: 0,
            mode: Mode::Prototype,
            gate: true,
            now: Arc::new(Timestamp::now),
            events: kind("LifecycleEvent", "lifecycleevents"),
            transitions: kind("LifecycleTransition", "lifecycletransitions"),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("node", &self.node)
            .field("root", &self.root)
            .field("slash", &self.slash)
            .field("timing", &self.timing)
            .field("seed", &self.seed)
            .field("mode", &self.mode)
            .field("gate", &self.gate)
            .finish_non_exhaustive()
    }
}

fn kind(name: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: GROUP.to_owned(),
        version: VERSION.to_owned(),
        api_version: format!("{GROUP}/{VERSION}"),
        kind: name.to_owned(),
        plural: plural.to_owned(),
    }
}

/// Which description of SLM the kubelet follows where they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The prototype's: `status.driver` is a name; an expired event ends without a call.
    Prototype,
    /// The enhancement proposal's: `status.driver` is an object, an expired event is spelled `SLAExpired` and an End
    /// call with `sla_expired` informs its driver, and events that another component claimed stay unchanged.
    Proposal,
}

/// Intervals and time limits of a kubelet.
#[derive(Clone, Debug)]
pub struct Timing {
    /// From the end of a pass to the next one.
    pub pass_pause: Duration,
    /// For a call and the patch of the node that follows it.
    pub call: Duration,
    /// For the channel to be ready when an event is claimed.
    pub readiness: Duration,
    /// From the loss of a driver's last endpoint to the removal of its node-scoped transitions.
    pub cleanup_delay: Duration,
    /// Between two checks for the kind of the events.
    pub sync_poll: Duration,
    /// Between two checks of the sockets.
    pub registry_tick: Duration,
    /// For dialling a registration socket.
    pub dial: Duration,
    /// For `GetInfo`.
    pub info: Duration,
    /// For `NotifyRegistrationStatus`.
    pub notify: Duration,
    /// After the first failure of a socket path; doubled after each further one.
    pub backoff: Duration,
    /// The longest pause.
    pub backoff_max: Duration,
    /// Without a call for this long, a channel becomes idle and stays so until the next call.
    pub idle: Duration,
    /// Before a refused connection is retried; grows by the factor 1.6.
    pub reconnect: Duration,
    /// Between two attempts at a write after a conflict.
    pub conflict_pause: Duration,
    /// Before a failed removal of transitions is retried; doubled.
    pub cleanup_retry: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            pass_pause: Duration::from_secs(10),
            call: Duration::from_secs(45),
            readiness: Duration::from_secs(30),
            cleanup_delay: Duration::from_secs(30),
            sync_poll: Duration::from_secs(1),
            registry_tick: Duration::from_secs(1),
            dial: Duration::from_secs(10),
            info: Duration::from_secs(1),
            notify: Duration::from_secs(5),
            backoff: Duration::from_millis(500),
            backoff_max: Duration::from_secs(122),
            idle: Duration::from_secs(30 * 60),
            reconnect: Duration::from_secs(1),
            conflict_pause: Duration::from_millis(10),
            cleanup_retry: Duration::from_secs(1),
        }
    }
}

impl Timing {
    /// Every pause `divisor` times as short, for tests in real time: with 100, a pause of 10 s becomes 100 ms. The limits for other
    /// processes (dialling, readiness, calls) stay: a busy machine needs them, and 100 times as short they end a drain as Failed.
    pub fn faster(divisor: u32) -> Self {
        let plain = Self::default();
        let by = |time: Duration| time / divisor.max(1);
        Self {
            pass_pause: by(plain.pass_pause),
            cleanup_delay: by(plain.cleanup_delay),
            sync_poll: by(plain.sync_poll),
            registry_tick: by(plain.registry_tick),
            backoff: by(plain.backoff),
            backoff_max: by(plain.backoff_max),
            reconnect: by(plain.reconnect),
            cleanup_retry: by(plain.cleanup_retry),
            ..plain
        }
    }
}

/// The current faults of a kubelet. Shared: a change applies from the next request on.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<Broken>>);

#[derive(Clone, Debug, Default)]
struct Broken {
    patch_delay: Option<Duration>,
    patch_refused: Option<u16>,
    status_conflicts: u32,
}

impl Faults {
    /// Delays each patch of the node's condition.
    pub fn delay_patch(&self, delay: Option<Duration>) {
        self.lock().patch_delay = delay;
    }

    /// Each patch of the node's condition fails with this HTTP status, without reaching the server.
    pub fn refuse_patch(&self, status: Option<u16>) {
        self.lock().patch_refused = status;
    }

    /// This many next writes of an event's status fail with 409, without reaching the server.
    pub fn refuse_status_writes(&self, times: u32) {
        self.lock().status_conflicts = times;
    }

    pub(super) fn patch(&self) -> (Option<Duration>, Option<u16>) {
        let broken = self.lock();
        (broken.patch_delay, broken.patch_refused)
    }

    /// Whether to refuse this write of a status. Counts it.
    pub(super) fn takes_status_write(&self) -> bool {
        let mut broken = self.lock();
        let refused = broken.status_conflicts > 0;
        broken.status_conflicts = broken.status_conflicts.saturating_sub(1);
        refused
    }

    fn lock(&self) -> MutexGuard<'_, Broken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
