//! Asks pods for a checkpoint. A pod that cannot be asked, for example because an admission webhook denies it, delays the
//! others by no more than a minute, and leaves at its cap.

use std::time::Duration;

use scupper_sdk::{
    Call, Outcome, Pod, cluster, count,
    handshake::Handshake,
    log,
    retry::{Backoff, Retry},
};

/// How often pods are asked before the drain goes on: a minute. Those that could not be asked are asked again before their
/// wave.
const BACKOFF: Backoff = Backoff::from_secs(5).at_most(Duration::from_secs(5)).tries(13);

/// The pods that could not be asked in this step, and why.
#[derive(Default)]
pub(crate) struct Unasked<'c>(Vec<(&'c Pod, cluster::Error)>);

/// The step before the drain: asks all pods that leave.
pub(crate) fn ask_all(checkpoints: &Handshake, call: &Call) -> Outcome {
    let Unasked(unasked) = Unasked::of(checkpoints, call);
    if unasked.is_empty() {
        return Outcome::Done;
    }
    // Unlike what the API server refuses, this is wrong in the configuration.
    let not_granted = unasked
        .iter()
        .find(|(_, error)| matches!(error, cluster::Error::NotGranted(_)));
    if let Some((_, error)) = not_granted {
        return error.clone().into();
    }
    let mut retry = Retry::of(&call.state);
    let Some(wait) = retry.failed(&BACKOFF) else {
        for (pod, error) in unasked {
            log::warn!("{} cannot be asked for a checkpoint: {error}", pod.full_name());
        }
        return Outcome::Done;
    };
    let mut pending = Outcome::pending(format!(
        "{} cannot be asked for a checkpoint",
        count(unasked.len(), "pod")
    ));
    for (pod, error) in unasked {
        pending = pending.waiting_for(pod.full_name(), error.to_string(), None);
    }
    pending.again_after(wait).state(retry.to_bytes()).into()
}

impl<'c> Unasked<'c> {
    /// Asks the pods of the call that were not asked yet.
    pub(crate) fn of(checkpoints: &Handshake, call: &'c Call) -> Self {
        Self(checkpoints.ask(call))
    }

    /// Why a pod that can save a checkpoint has not done so.
    pub(crate) fn why(&self, pod: &Pod) -> String {
        let found = self.0.iter().find(|(unasked, _)| unasked.uid == pod.uid);
        match found {
            Some((_, error)) => format!("cannot be asked for a checkpoint: {error}"),
            None => "was asked for a checkpoint".to_owned(),
        }
    }
}
