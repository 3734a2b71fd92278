//! The configuration.

use std::time::Duration;

use scupper_sdk::{Problem, config};

pub(crate) const KEYS: [&str; 6] = [
    "kinds",
    "labels",
    "cap",
    "cap-annotation",
    "checkpoints",
    "checkpoint-cap",
];

const KINDS: &str = "Job, JobSet, Workflow, RayJob, PyTorchJob, MPIJob, TFJob, TrainJob";
const LABELS: &str = "ray.io/originated-from-crd=RayJob";
const CAP: Duration = Duration::from_secs(4 * 3600);
const CHECKPOINT_CAP: Duration = Duration::from_secs(600);

/// See `config.schema.json`.
pub(crate) struct Settings {
    pub(crate) kinds: Vec<String>,
    /// Keys, and patterns of values.
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) cap: Duration,
    pub(crate) cap_annotation: Option<String>,
    /// The prefix of the annotations.
    pub(crate) checkpoints: Option<String>,
    pub(crate) checkpoint_cap: Duration,
}

impl Settings {
    pub(crate) fn read() -> Result<Self, Problem> {
        let checkpoints = config::get("checkpoints").filter(|prefix| !prefix.is_empty());
        if let Some(prefix) = checkpoints.as_deref().filter(|prefix| !prefix.ends_with('/')) {
            let what = "must be a domain and a slash, such as checkpoint.example.com/";
            return Err(Problem::new("checkpoints", format!("`{prefix}`: {what}")));
        }
        Ok(Self {
            kinds: config::list("kinds", KINDS),
            labels: config::parsed_list("labels", LABELS, label)?,
            cap: config::time("cap", CAP)?,
            cap_annotation: config::get("cap-annotation"),
            checkpoints,
            checkpoint_cap: config::time("checkpoint-cap", CHECKPOINT_CAP)?,
        })
    }
}

fn label(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((key, pattern)) if !key.is_empty() => Ok((key.to_owned(), pattern.to_owned())),
        _ => Err("must be LABEL=VALUE; LABEL=* matches every value"),
    }
}
