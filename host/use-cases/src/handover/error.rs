//! Why something cannot be handed over or cancelled.

use scupper_cluster::{ReadError, WriteError};
use scupper_engine::PodRef;
use scupper_report::unreleased_text;

/// Why something cannot be handed over or cancelled.
#[derive(Debug, thiserror::Error)]
pub enum HandOverError {
    /// Whether there is a driver cannot be found out.
    #[error("cannot tell whether driver {driver} is running; --local does it from here, without asking")]
    Discover {
        /// The driver.
        driver: String,
        /// Why not.
        #[source]
        source: ReadError,
    },
    /// A driver's pod is there, and no transition.
    #[error(
        "a driver's pod is on node {node}, and driver {driver} publishes no {what} transition for the node; {}; to do it from here, \
         without the driver and its policies: scupper {what} {node} --local",
        why(pod, *is_ready)
    )]
    NotOffered {
        /// The node.
        node: String,
        /// The driver.
        driver: String,
        /// `drain` or `uncordon`.
        what: &'static str,
        /// The driver's pod.
        pod: Box<PodRef>,
        /// Whether that is ready.
        is_ready: bool,
    },
    /// The drain for an earlier LifecycleEvent has ended, and its driver has not released that.
    #[error(
        "node {node}: {}; is the driver running? kubectl get pods -A --field-selector spec.nodeName={node}; to do it from here \
         without the driver: scupper {what} {node} --local; what else to do: scupper status {node}",
        unreleased_text(&format!("LifecycleEvent {event}"))
    )]
    NotReleased {
        /// The node.
        node: String,
        /// The event.
        event: String,
        /// `drain` or `uncordon`.
        what: &'static str,
    },
    /// It is for a drain from here.
    #[error("{flag} cannot be passed to driver {driver}; leave it out, or add --local to do it from here")]
    OwnFlag {
        /// The driver.
        driver: String,
        /// The flag.
        flag: String,
    },
    /// The LifecycleEvent could not be created.
    #[error("could not create the LifecycleEvent; --local drains from here without the driver")]
    Ask(#[source] WriteError),
    /// The LifecycleEvent could not be read.
    #[error("could not follow LifecycleEvent {event}, which continues")]
    Follow {
        /// The LifecycleEvent.
        event: String,
        /// Why not.
        #[source]
        source: ReadError,
    },
    /// The LifecycleEvent that the command has created could not be deleted.
    #[error(
        "could not withdraw LifecycleEvent {event}, which a driver may still carry out; to withdraw it: scupper cancel {node}"
    )]
    Withdraw {
        /// The LifecycleEvent.
        event: String,
        /// Its node.
        node: String,
        /// Why not.
        #[source]
        source: WriteError,
    },
    /// What is to be cancelled could not be withdrawn.
    #[error("could not withdraw the LifecycleEvent")]
    TakeBack(#[source] WriteError),
}

/// What to look at.
fn why(pod: &PodRef, is_ready: bool) -> String {
    let PodRef { namespace, name, .. } = pod;
    match is_ready {
        true => format!(
            "{pod} is ready, so ask again in 30s; if that does not help: kubectl -n {namespace} logs {name}; has the driver another \
             name (--driver-name)? kubectl get lifecycletransitions"
        ),
        false => format!("{pod} is not ready: kubectl -n {namespace} describe pod {name}"),
    }
}
