//! The configuration.

use std::time::Duration;

use scupper_sdk::{Call, OnFailure, Pod, Problem, config};

use crate::slurmrestd::settings::{KEYS as SLURMRESTD, Slurmrestd};

const KEYS: [&str; 8] = [
    "hold",
    "label",
    "namespace",
    "on-failure",
    "poll-seconds",
    "reason",
    "unmatched-slurm-pods",
    "way",
];

/// The policy's configuration.
pub(crate) struct Settings {
    pub(crate) way: Way,
    /// The settings of `way: slurmrestd`; unused with `operator`.
    pub(crate) slurmrestd: Slurmrestd,
    pub(crate) hold: HeldPods,
    pub(crate) unmatched: Unmatched,
    pub(crate) on_failure: OnFailure,
    pub(crate) poll: Duration,
    /// A text for Slurm after the name of the drain.
    pub(crate) reason: Option<String>,
    labels: Vec<(String, String)>,
    /// Empty: any.
    namespaces: Vec<String>,
}

/// How to control Slurm.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Through slurm-operator.
    Operator,
    /// Through slurmrestd.
    Slurmrestd,
}

/// Which pods wait for the jobs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeldPods {
    /// All pods of the node, as any of them may serve a job.
    Node,
    /// Only the Slurm pods: the others leave while the jobs end.
    SlurmPods,
}

/// What to do with pods that look like slurm-operator's workers but that `label` and `namespace` do not select.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unmatched {
    /// Refuse the drain.
    Refuse,
    /// Treat them like other pods.
    Ignore,
}

impl Settings {
    /// Reads the configuration, or returns everything that is wrong with it.
    pub(crate) fn read() -> Result<Self, Vec<Problem>> {
        let mut problems = config::unknown_keys(&[&KEYS[..], &SLURMRESTD].concat());
        let way = way();
        let slurmrestd = match way {
            Ok(Way::Slurmrestd) => Slurmrestd::read(&mut problems),
            Ok(Way::Operator) => {
                problems.extend(other_ways_keys());
                Slurmrestd::default()
            }
            Err(_) => Slurmrestd::default(),
        };
        let way = way.unwrap_or_else(|problem| {
            problems.push(problem);
            Way::Operator
        });
        let hold = hold().unwrap_or_else(|problem| {
            problems.push(problem);
            HeldPods::Node
        });
        let unmatched = unmatched().unwrap_or_else(|problem| {
            problems.push(problem);
            Unmatched::Refuse
        });
        let on_failure = on_failure().unwrap_or_else(|problem| {
            problems.push(problem);
            OnFailure::Follow
        });
        let poll = poll().unwrap_or_else(|problem| {
            problems.push(problem);
            Duration::ZERO
        });
        let labels = labels().unwrap_or_else(|problem| {
            problems.push(problem);
            Vec::new()
        });
        let reason = config::get("reason").filter(|text| !text.trim().is_empty());
        let namespaces = list(&config::get("namespace").unwrap_or_default());
        if problems.is_empty() {
            Ok(Self {
                way,
                slurmrestd,
                hold,
                unmatched,
                on_failure,
                poll,
                reason,
                labels,
                namespaces,
            })
        } else {
            Err(problems)
        }
    }

    /// Whether it is a Slurm pod that has not ended. A pod that has ended runs no jobs.
    pub(crate) fn covers(&self, pod: &Pod) -> bool {
        !pod.is_finished()
            && (self.namespaces.is_empty() || self.namespaces.contains(&pod.namespace))
            && self
                .labels
                .iter()
                .all(|(key, value)| pod.label(key) == Some(value))
    }

    /// Whether a Slurm pod leaves the node.
    pub(crate) fn has_leaving_worker(&self, call: &Call) -> bool {
        call.leaving().into_iter().any(|pod| self.covers(pod))
    }

    /// Why the configuration does not select a running pod.
    pub(crate) fn misfit(&self, pod: &Pod) -> String {
        let missing = self
            .labels
            .iter()
            .find(|(key, value)| pod.label(key) != Some(value));
        match missing {
            Some((key, value)) => format!("has no label {key}={value} (`label`)"),
            None => format!("is not in a namespace of `namespace`: {}", pod.namespace),
        }
    }
}

pub(crate) fn way() -> Result<Way, Problem> {
    match config::get("way").as_deref() {
        None | Some("operator") => Ok(Way::Operator),
        Some("slurmrestd") => Ok(Way::Slurmrestd),
        Some(other) => Err(Problem::new(
            "way",
            format!("`{other}`: must be `operator` or `slurmrestd`"),
        )),
    }
}

/// The keys that are set although their way is not used.
fn other_ways_keys() -> impl Iterator<Item = Problem> {
    let keys = config::keys()
        .into_iter()
        .filter(|key| SLURMRESTD.contains(&key.as_str()));
    keys.map(|key| Problem::new(key, "only for `way: slurmrestd`"))
}

fn hold() -> Result<HeldPods, Problem> {
    match config::get("hold").as_deref() {
        None | Some("node") => Ok(HeldPods::Node),
        Some("slurm-pods") => Ok(HeldPods::SlurmPods),
        Some(other) => {
            let message = format!(
                "`{other}`: must be `node`, which holds every pod until the jobs have ended, or `slurm-pods`"
            );
            Err(Problem::new("hold", message))
        }
    }
}

fn unmatched() -> Result<Unmatched, Problem> {
    const KEY: &str = "unmatched-slurm-pods";
    match config::get(KEY).as_deref() {
        None | Some("refuse") => Ok(Unmatched::Refuse),
        Some("ignore") => Ok(Unmatched::Ignore),
        Some(other) => Err(Problem::new(
            KEY,
            format!("`{other}`: must be `refuse` or `ignore`"),
        )),
    }
}

fn on_failure() -> Result<OnFailure, Problem> {
    const KEY: &str = "on-failure";
    match config::get(KEY).as_deref() {
        None | Some("follow") => Ok(OnFailure::Follow),
        Some("undo") => Ok(OnFailure::Undo),
        Some("keep") => Ok(OnFailure::Keep),
        Some(other) => Err(Problem::new(
            KEY,
            format!("`{other}`: must be `follow`, `undo` or `keep`"),
        )),
    }
}

fn poll() -> Result<Duration, Problem> {
    let seconds = config::parse("poll-seconds", 5_u64)?;
    if (1..=300).contains(&seconds) {
        Ok(Duration::from_secs(seconds))
    } else {
        Err(Problem::new(
            "poll-seconds",
            format!("`{seconds}`: must be a number from 1 to 300"),
        ))
    }
}

/// `key=value,key=value`: a pod must have all of them.
fn labels() -> Result<Vec<(String, String)>, Problem> {
    let text = config::get("label").unwrap_or_else(|| "app.kubernetes.io/name=slurmd".to_owned());
    let labels: Option<Vec<_>> = list(&text)
        .iter()
        .map(|label| {
            label
                .split_once('=')
                .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
        })
        .collect();
    // Without any label every pod on the node would be a Slurm pod.
    labels.filter(|labels| !labels.is_empty()).ok_or_else(|| {
        Problem::new(
            "label",
            format!("`{text}`: must be labels such as app.kubernetes.io/name=slurmd"),
        )
    })
}

fn list(text: &str) -> Vec<String> {
    text.split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect()
}
