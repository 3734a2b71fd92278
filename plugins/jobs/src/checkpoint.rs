//! The handshake: a pod says that it can save a checkpoint, the policy asks for it with the drain's id, and the pod answers
//! with the same id. So an answer to an earlier drain counts for nothing.

use std::time::Duration;

use scupper_sdk::{Call, Drain, Pod, cluster, config};

use crate::settings::Settings;

/// Set by the pod's owner: the time that a checkpoint takes.
const SUPPORTED: &str = "supported";
/// Set by the policy.
const REQUESTED: &str = "requested";
/// Set by the pod, or by what saves for it.
const DONE: &str = "done";

fn annotation<'p>(settings: &Settings, pod: &'p Pod, name: &str) -> Option<&'p str> {
    pod.annotation(&key(settings, name)?)
}

fn key(settings: &Settings, name: &str) -> Option<String> {
    Some(format!("{}{name}", settings.checkpoints.as_deref()?))
}

/// How long the pod may take for a checkpoint; `None`: it saves none.
pub(crate) fn time(settings: &Settings, pod: &Pod) -> Option<Duration> {
    let wanted = config::duration(annotation(settings, pod, SUPPORTED)?);
    // A value that is no time still says that the pod can.
    Some(wanted.map_or(settings.checkpoint_cap, |wanted| {
        wanted.min(settings.checkpoint_cap)
    }))
}

/// Asks all pods that were not asked for this drain.
pub(crate) fn request(settings: &Settings, call: &Call) -> Result<(), cluster::Error> {
    let Some(key) = key(settings, REQUESTED) else {
        return Ok(());
    };
    let leaves = |pod: &&Pod| !pod.is_finished() && pod.deletion_timestamp.is_none();
    for pod in call.pods.iter().filter(leaves) {
        if time(settings, pod).is_some() && pod.annotation(&key) != Some(&call.drain.id) {
            unless_gone(cluster::annotate_pod(pod, &key, &call.drain.id))?;
        }
    }
    Ok(())
}

/// The drain is over: pods that are still there need no checkpoint.
pub(crate) fn withdraw(settings: &Settings, call: &Call) -> Result<(), cluster::Error> {
    let Some(key) = key(settings, REQUESTED) else {
        return Ok(());
    };
    for pod in call.pods.iter().filter(|pod| pod.annotation(&key).is_some()) {
        unless_gone(cluster::remove_pod_annotation(pod, &key))?;
    }
    Ok(())
}

fn unless_gone(result: Result<(), cluster::Error>) -> Result<(), cluster::Error> {
    match result {
        Err(cluster::Error::NotFound(_)) => Ok(()),
        other => other,
    }
}

/// What a pod still has to do before it may leave.
pub(crate) fn awaited(settings: &Settings, pod: &Pod, drain: &Drain) -> Option<String> {
    if time(settings, pod).is_none() {
        return Some("still runs".to_owned());
    }
    let is_done = annotation(settings, pod, DONE) == Some(&drain.id);
    (!is_done).then(|| "was asked for a checkpoint".to_owned())
}
