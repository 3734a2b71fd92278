//! What the readiness probe waits for: the watches, the list of LifecycleEvents, the kubelet's registration.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::{Stream, StreamExt as _};
use tokio::sync::watch;

use scupper_cluster::Cluster;
use scupper_common::health::Health;
use scupper_triggers::slm::{Claimant, LifecycleChange, Registration};

/// What is missing while the driver is being put together.
const START: &str = "start";

/// The driver starts.
pub(crate) fn starting() -> Health {
    let health = Health::default();
    health.needs(START, || Err("the driver is starting".to_owned()));
    health
}

/// The driver cannot start yet: this is missing.
pub(crate) fn waiting(health: &Health, missing: &str) {
    let missing = missing.to_owned();
    health.needs(START, move || Err(missing.clone()));
}

/// The driver has started: from now on readiness depends on the kubelet and the watches.
pub(crate) fn started(
    health: &Health,
    cluster: &Cluster,
    registration: watch::Receiver<Registration>,
    claimant: Claimant,
) {
    health.needs(START, || Ok(()));
    health.needs("kubelet", move || settled(claimant, &registration.borrow()));
    let cluster = cluster.clone();
    health.needs("watch", move || {
        let broken = cluster.broken_watches();
        broken.is_empty().then_some(()).ok_or_else(|| broken.join("; "))
    });
}

/// The same stream; the driver is not ready before it has shown a full list.
pub(crate) fn synced<S>(
    health: &Health,
    events: S,
) -> impl Stream<Item = LifecycleChange> + Send + Unpin + use<S>
where
    S: Stream<Item = LifecycleChange> + Send + Unpin,
{
    let listed = Arc::new(AtomicBool::new(false));
    let is_listed = Arc::clone(&listed);
    health.needs("LifecycleEvents", move || {
        let listed = is_listed.load(Ordering::Relaxed);
        listed
            .then_some(())
            .ok_or_else(|| "they have not been listed yet".to_owned())
    });
    events.inspect(move |change| {
        if matches!(change, LifecycleChange::Listed(_)) {
            listed.store(true, Ordering::Relaxed);
        }
    })
}

/// A loop of this name calls the result in each turn.
pub(crate) fn pulse(health: &Health, name: &'static str) -> Arc<dyn Fn() + Send + Sync> {
    let pulse = health.pulse(name);
    Arc::new(move || pulse.beat())
}

fn settled(claimant: Claimant, registration: &Registration) -> Result<(), String> {
    if claimant.is_settled(registration) {
        return Ok(());
    }
    Err(match registration {
        Registration::Waiting | Registration::Registered => "it has not registered the driver yet".to_owned(),
        Registration::Silent => {
            "it has not looked at the registration socket; is --kubelet-root its root directory?".to_owned()
        }
        Registration::Unsupported { message } => {
            format!(
                "it does not know SLM plugins, and with --claim kubelet nothing else claims LifecycleEvents: {message}"
            )
        }
        Registration::Refused { message } => format!("it refuses the driver: {message}"),
    })
}
