//! A request for one node, the same from every trigger.

use core::time::Duration;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use crate::{ForceAtDeadline, HookPhase, Node, PodRef, Selector, SurgeSettings, Time, VolumeWait};

/// What is to become of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Intent {
    /// Cordon it and make its pods leave.
    Drain,
    /// Maintenance is over: run the hooks and lift the cordon, if it is ours.
    Uncordon,
}

impl Intent {
    /// As the command that asks for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Drain => "drain",
            Self::Uncordon => "uncordon",
        }
    }
}

/// A request for one node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Request {
    /// Its unique identity, such as the UID of the LifecycleEvent.
    pub id: String,
    /// Its name for display, such as that of the LifecycleEvent.
    pub name: String,
    /// Its origin, for reports: `LifecycleEvent`, `command`.
    pub trigger: String,
    /// Drain or uncordon.
    pub intent: Intent,
    /// The node's name.
    pub node: String,
    /// When it must have ended; `None`: whenever it is done.
    pub deadline: Option<Time>,
    /// How pods are chosen and evicted.
    pub settings: Settings,
    /// The policies in chain order.
    pub policies: Vec<PolicyInfo>,
}

/// A loaded policy, as far as the engine cares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PolicyInfo {
    /// The operator's name for it.
    pub name: String,
    /// It exports `planner`.
    pub planner: bool,
    /// The phases its `hooks` want to be called in.
    pub phases: Vec<HookPhase>,
    /// It takes part only on a node that has all of these labels when it is first seen.
    pub node_selector: BTreeMap<String, String>,
}

impl PolicyInfo {
    /// It has a hook for an uncordon, in which it undoes what it did before.
    pub fn undoes_later(&self) -> bool {
        let mut phases = self.phases.iter();
        phases.any(|phase| HookPhase::UNCORDON.contains(phase))
    }

    /// Whether it takes part in drains of this node.
    pub fn is_for(&self, node: &Node) -> bool {
        let mut selector = self.node_selector.iter();
        selector.all(|(key, value)| node.labels.get(key) == Some(value))
    }
}

/// How pods are chosen and evicted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Settings {
    /// `kubectl drain`'s filters.
    pub filters: Filters,
    /// Overrides every pod's own grace period; `None`: the pod's own.
    pub grace_seconds: Option<u64>,
    /// `grace_seconds` may lengthen a pod's own grace period and not shorten it: a plan refuses pods whose own is
    /// longer, and a pod that leaves all the same keeps its own.
    pub grace_only_longer: bool,
    /// How many eviction requests may be on their way at once. Waiting for pods to end holds no place.
    pub max_in_flight: usize,
    /// The driver's own pod, which goes last or never.
    pub own_pod: Option<PodRef>,
    /// Whether our own cordon is lifted when the drain fails, passes its deadline or is lost.
    pub uncordon_on_failure: bool,
    /// How often pods of one controller are evicted that come back to the cordoned node; after that they stay. At
    /// least 1, and at least [`LEAST_RACES`] for pods that do not tolerate the cordon and were bound to the node before
    /// the scheduler had seen it.
    pub returning_pod_evictions: u32,
    /// Pods that are certain to stay, as pre-flight finds, refuse the drain before anything changes.
    pub refuse_certain: bool,
    /// The operator's word that the node's machine is off, so nothing on it runs and its kubelet ends no pod.
    pub machine_is_off: bool,
    /// What follows from pods whose volumes only this node can use.
    pub local_data: LocalData,
    /// How long before its first pod leaves the owner of a workload learns of it; zero: it does not.
    pub notify_before: Duration,
    /// How long the API server may keep refusing writes of the node with 401 or 403 before the drain fails. Only
    /// time between two refusals in a row counts; zero: the first one fails it.
    pub forbidden_timeout: Duration,
    /// Whether the drain waits for the node's volumes after its last pod; `None`: it does not.
    pub wait_for_volumes: Option<VolumeWait>,
    /// Which pods that still stand are deleted shortly before the deadline; `None`: none are.
    pub at_deadline: Option<ForceAtDeadline>,
    /// Deployments are surged whose pods a budget never lets go; `None`: none is.
    pub surge: Option<SurgeSettings>,
}

impl Settings {
    /// How long before its first pod leaves a workload gets its notice. `None`: it gets none; on a machine that is off nobody
    /// could act on it.
    pub fn notice(&self) -> Option<Duration> {
        Some(self.notify_before).filter(|before| !before.is_zero() && !self.machine_is_off)
    }

    /// The default of [`Settings::forbidden_timeout`].
    pub const FORBIDDEN_TIMEOUT: Duration = Duration::from_secs(120);

    /// The grace period to ask for where it is not the pod's own (`own_seconds`).
    pub fn grace_override(&self, own_seconds: u64) -> Option<u64> {
        let shortens = |seconds: &u64| self.grace_only_longer && *seconds < own_seconds;
        self.grace_seconds.filter(|seconds| !shortens(seconds))
    }
}

/// What follows from pods whose volumes only the node of the drain can use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum LocalData {
    /// The drain does not read volumes.
    #[default]
    Unread,
    /// The drain reports these pods and begins.
    Warn,
    /// The drain is refused before anything changes.
    Refuse,
}

/// `kubectl drain`'s flags of the same names, with a driver's defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Filters {
    /// Pods without a controller, and those of a deleted DaemonSet, may go.
    pub force: bool,
    /// DaemonSet pods stay instead of blocking the drain.
    pub ignore_daemonsets: bool,
    /// Pods with an `emptyDir` may go.
    pub delete_emptydir_data: bool,
    /// Pods whose deletion is older than this are left out of the drain, and no longer waited for once it is; zero:
    /// none are.
    pub skip_wait_for_delete_timeout: Duration,
    /// Pods that it does not select stay, and nothing waits for them.
    pub pod_selector: Selector,
    /// Pods are deleted instead of evicted, past their disruption budgets.
    pub disable_eviction: bool,
    /// Pods that it does not name stay, and nothing waits for them; `None`: all are meant.
    pub only_pods: Option<NamedPods>,
}

/// Names of pods, by namespace.
pub type NamedPods = BTreeMap<String, BTreeSet<String>>;

/// Tells one set of named pods from another where their names take too much room (64-bit FNV-1a).
pub fn digest_of_pods(pods: &NamedPods) -> u64 {
    // No byte of a name: it is not part of UTF-8.
    const END: [u8; 1] = [0xff];
    let texts = pods.iter().flat_map(|(namespace, names)| {
        let names = names.iter().flat_map(|name| [name.as_bytes(), &END]);
        [namespace.as_bytes(), &END]
            .into_iter()
            .chain(names)
            .chain([&END[..]])
    });
    let digest = |digest: u64, byte: &u8| (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    texts.flatten().fold(0xcbf2_9ce4_8422_2325, digest)
}

/// How often pods are evicted that come back without a toleration of the cordon: a scheduler may be late to see it.
pub const LEAST_RACES: u32 = 4;

impl Filters {
    /// The request is about this pod.
    pub(crate) fn is_meant(&self, pod: &PodRef) -> bool {
        let names = |all: &NamedPods| {
            all.get(&pod.namespace)
                .is_some_and(|names| names.contains(&pod.name))
        };
        self.only_pods.as_ref().is_none_or(names)
    }
}

impl Default for Filters {
    fn default() -> Self {
        Self {
            force: false,
            ignore_daemonsets: true,
            delete_emptydir_data: true,
            skip_wait_for_delete_timeout: Duration::ZERO,
            pod_selector: Selector::default(),
            disable_eviction: false,
            only_pods: None,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            filters: Filters::default(),
            grace_seconds: None,
            grace_only_longer: false,
            max_in_flight: 32,
            own_pod: None,
            uncordon_on_failure: false,
            returning_pod_evictions: 1,
            refuse_certain: false,
            machine_is_off: false,
            local_data: LocalData::Unread,
            notify_before: Duration::ZERO,
            forbidden_timeout: Self::FORBIDDEN_TIMEOUT,
            wait_for_volumes: None,
            at_deadline: None,
            surge: None,
        }
    }
}
