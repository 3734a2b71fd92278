//! The simulated rest of a cluster: kubelets, the disruption controller, namespaces, owners of pods, attached volumes. They
//! use the store, not HTTP.

mod disruption;
mod kubelets;
mod namespaces;
mod owners;
pub(crate) mod status;
mod volumes;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::server::Options;
use super::store::Store;

/// Blocks a part while the server is paused, and controllers also while controllers are paused.
pub(super) struct Gate(Vec<watch::Receiver<bool>>);

impl Gate {
    /// Waits until it is open; false when the server is gone.
    pub(super) async fn open(&mut self) -> bool {
        for gate in &mut self.0 {
            if gate.wait_for(|it| *it).await.is_err() {
                return false;
            }
        }
        true
    }
}

/// Starts the parts that the options select. They stop while the server is paused, and end with it.
pub(crate) fn start(
    options: &Options,
    store: &Store,
    running: &watch::Receiver<bool>,
    controllers: &watch::Receiver<bool>,
    stop: &CancellationToken,
) {
    let gate = || Gate(vec![running.clone(), controllers.clone()]);
    if options.kubelets {
        let task = kubelets::run(store.clone(), Gate(vec![running.clone()]), options.takes);
        tokio::spawn(stop.clone().run_until_cancelled_owned(task));
    }
    if let Some(lag) = options.disruption {
        let task = disruption::run(store.clone(), gate(), lag);
        tokio::spawn(stop.clone().run_until_cancelled_owned(task));
    }
    if options.owners {
        tokio::spawn(
            stop.clone()
                .run_until_cancelled_owned(owners::run(store.clone(), gate())),
        );
    }
    tokio::spawn(
        stop.clone()
            .run_until_cancelled_owned(volumes::run(store.clone(), gate())),
    );
    tokio::spawn(
        stop.clone()
            .run_until_cancelled_owned(namespaces::run(store.clone(), gate())),
    );
}
