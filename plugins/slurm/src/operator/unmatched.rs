//! Pods that look like workers of slurm-operator and that the configuration does not name: a label or a namespace that
//! does not fit would let their jobs die with them.

use scupper_sdk::{Draft, Pod};

use crate::settings::{Settings, Unmatched};

/// Labels that slurm-operator gives its workers begin so.
const WORKER_LABEL: &str = "nodeset.slinky.slurm.net/";
/// So do the conditions in which it mirrors what Slurm says of them.
const WORKER_CONDITION: &str = "SlurmNodeState";
/// What owns them.
const OWNER: (&str, &str) = ("slinky.slurm.net/", "NodeSet");
/// The label of every slurmd that its chart and others run.
const NAME: (&str, &str) = ("app.kubernetes.io/name", "slurmd");

/// Refuses to let those leave that the plan so far lets leave, each by its name, unless the operator says otherwise.
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

/// By what it is known as a worker.
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

/// What does not fit, and what to do; at most 256 bytes are shown.
fn reason(settings: &Settings, pod: &Pod, sign: &str) -> String {
    let misfit = settings.misfit(pod);
    format!(
        "looks like a Slurm worker ({sign}), but {misfit}: its jobs would end with it; correct the configuration, or set \
         `unmatched-slurm-pods` to `ignore`"
    )
}
