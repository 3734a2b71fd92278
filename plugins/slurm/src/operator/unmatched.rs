//! Pods that look like workers of slurm-operator but are not selected by the configuration. With a wrong label or namespace
//! their jobs would be killed with them.

use scupper_sdk::{Draft, Pod};

use crate::settings::{Settings, Unmatched};

/// The prefix of slurm-operator's labels on its workers.
const WORKER_LABEL: &str = "nodeset.slinky.slurm.net/";
/// The prefix of the conditions with their states in Slurm.
const WORKER_CONDITION: &str = "SlurmNodeState";
/// The owner of workers.
const OWNER: (&str, &str) = ("slinky.slurm.net/", "NodeSet");
/// The label of `slurmd` pods of its chart and others.
const NAME: (&str, &str) = ("app.kubernetes.io/name", "slurmd");

/// Refuses the drain if such a pod would leave, unless configured otherwise.
pub(crate) fn refuse(settings: &Settings, draft: &mut Draft<'_>) {
    if settings.unmatched == Unmatched::Ignore {
        return;
    }
    for pod in draft.leaving() {
        if let Some(sign) = sign(pod)
            && !pod.is_finished()
            && !settings.covers(pod)
        {
            draft.refuse(pod, reason(settings, pod, &sign));
        }
    }
}

/// Why the pod looks like a worker.
fn sign(pod: &Pod) -> Option<String> {
    let owned = pod
        .controller
        .as_ref()
        .is_some_and(|owner| owner.api_version.starts_with(OWNER.0) && owner.kind == OWNER.1);
    if owned {
        return Some(format!("a pod of a {}", OWNER.1));
    }
    let label = pod
        .labels
        .iter()
        .find(|label| label.key.starts_with(WORKER_LABEL));
    if let Some(label) = label {
        return Some(format!("label {}", label.key));
    }
    let mut conditions = pod.conditions.iter();
    if let Some(condition) = conditions.find(|it| it.type_.starts_with(WORKER_CONDITION)) {
        return Some(format!("condition {}", condition.type_));
    }
    (pod.label(NAME.0) == Some(NAME.1)).then(|| format!("label {}={}", NAME.0, NAME.1))
}

/// What does not match, and what to do, in at most 256 bytes.
fn reason(settings: &Settings, pod: &Pod, sign: &str) -> String {
    let misfit = settings.misfit(pod);
    format!(
        "looks like a Slurm worker ({sign}), but {misfit}: its jobs would be killed; correct the configuration, or set \
         `unmatched-slurm-pods` to `ignore`"
    )
}
