//! The configuration.

use std::time::Duration;

use scupper_sdk::{LabelPattern, Pod, Problem, config, handshake::Handshake};

pub(crate) const KEYS: [&str; 7] = [
    "kinds",
    "labels",
    "cap",
    "cap-annotation",
    "checkpoints",
    "checkpoint-cap",
    "fails-job",
];

const KINDS: &str = "Job, JobSet, Workflow, RayJob, PyTorchJob, MPIJob, TFJob, TrainJob";
const LABELS: &str = "ray.io/originated-from-crd=RayJob";
const CAP: Duration = Duration::from_secs(4 * 3600);
const CHECKPOINT_CAP: Duration = Duration::from_secs(600);

/// See `config.schema.json`.
pub(crate) struct Settings {
    pub(crate) kinds: Vec<String>,
    pub(crate) labels: Vec<LabelPattern>,
    cap: Duration,
    cap_annotation: Option<String>,
    pub(crate) checkpoints: Option<Handshake>,
    /// A pod whose eviction would fail its Job for good is not evicted.
    pub(crate) keeps_jobs: bool,
}

impl Settings {
    pub(crate) fn read() -> Result<Self, Problem> {
        Ok(Self {
            kinds: config::list("kinds", KINDS),
            labels: config::parsed_list("labels", LABELS, str::parse)?,
            cap: config::time("cap", CAP)?,
            cap_annotation: config::get("cap-annotation"),
            checkpoints: Handshake::read("checkpoints", config::time("checkpoint-cap", CHECKPOINT_CAP)?)?,
            keeps_jobs: config::choice("fails-job", false, &[("evict", false), ("wait", true)])?,
        })
    }

    /// How long a pod may take for a checkpoint; `None`: it saves none.
    pub(crate) fn checkpoint_time(&self, pod: &Pod) -> Option<Duration> {
        self.checkpoints.as_ref()?.time(pod)
    }

    /// How long a pod may run. Its owner can shorten that, and not lengthen the drain.
    pub(crate) fn cap_of(&self, pod: &Pod) -> Duration {
        let own = self.cap_annotation.as_deref().and_then(|key| pod.annotation(key));
        let own = own.and_then(config::duration);
        own.map_or(self.cap, |own| own.min(self.cap))
    }
}
