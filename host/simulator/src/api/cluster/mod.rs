//! What plays the rest of a cluster: kubelets, the disruption controller, owners of pods. They know the store, not HTTP.

mod disruption;
mod kubelets;
mod owners;
pub(crate) mod status;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::server::Options;
use super::store::Store;

/// Starts what the options ask for. Everything rests while the server is paused, and ends with it.
pub(crate) fn start(
    options: &Options,
    store: &Store,
    running: &watch::Receiver<bool>,
    stop: &CancellationToken,
) {
    if options.kubelets {
        let task = kubelets::run(store.clone(), running.clone(), options.takes);
        tokio::spawn(stop.clone().run_until_cancelled_owned(task));
    }
    if let Some(lag) = options.disruption {
        let task = disruption::run(store.clone(), running.clone(), lag);
        tokio::spawn(stop.clone().run_until_cancelled_owned(task));
    }
    if options.owners {
        let task = owners::run(store.clone(), running.clone());
        tokio::spawn(stop.clone().run_until_cancelled_owned(task));
    }
}
