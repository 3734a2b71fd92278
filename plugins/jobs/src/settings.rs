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
/// The characters of a pod's annotation that a reason shows.
const SHOWN: usize = 20;

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
            cap_annotation: annotation("cap-annotation")?,
            checkpoints: Handshake::read("checkpoints", config::time("checkpoint-cap", CHECKPOINT_CAP)?)?,
            keeps_jobs: config::choice("fails-job", false, &[("evict", false), ("wait", true)])?,
        })
    }

    /// How long a pod may take for a checkpoint; `None`: it saves none.
    pub(crate) fn checkpoint_time(&self, pod: &Pod) -> Option<Duration> {
        self.checkpoints.as_ref()?.time(pod)
    }

    /// How long a pod may run. Its owner can shorten that, and not lengthen the drain. If what the owner wrote is no time,
    /// the second text says so.
    pub(crate) fn cap_of(&self, pod: &Pod) -> (Duration, Option<String>) {
        let Some(key) = &self.cap_annotation else {
            return (self.cap, None);
        };
        let Some(text) = pod.annotation(key) else {
            return (self.cap, None);
        };
        match config::duration(text.trim()) {
            Some(own) => (own.min(self.cap), None),
            None => {
                let shown: String = text.chars().take(SHOWN).collect();
                let odd = format!("its {key} `{shown}` is not a time such as 90s, 5m or 1h");
                (self.cap, Some(odd))
            }
        }
    }
}

/// The key of an annotation.
fn annotation(key: &str) -> Result<Option<String>, Problem> {
    let text = config::get(key).unwrap_or_default();
    let name = text.trim();
    if name.contains(char::is_whitespace) {
        let what = "must be the key of an annotation, such as example.com/cap";
        return Err(Problem::new(key, format!("`{text}`: {what}")));
    }
    Ok((!name.is_empty()).then(|| name.to_owned()))
}
