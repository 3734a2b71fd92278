//! Why a node is left alone.

/// Why a node is left alone.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// Another process is at it, or died over it.
    #[error(
        "node {node} is {phase} for {trigger} {name}, which another process does; \
         {}",
        remedy(trigger, node)
    )]
    Busy {
        /// The node.
        node: String,
        /// Who asked for that.
        trigger: String,
        /// What it is called.
        name: String,
        /// Where it stands.
        phase: String,
    },
    /// Its cordon is somebody else's.
    #[error("node {node} was cordoned by somebody else; --force lifts that cordon, too")]
    ForeignCordon {
        /// The node.
        node: String,
    },
    /// A foreign cordon could not be made ours.
    #[error("could not take over the cordon of node {node}: {message}")]
    Adopt {
        /// The node.
        node: String,
        /// What the API server says.
        message: String,
    },
}

fn remedy(trigger: &str, node: &str) -> String {
    if trigger == super::TRIGGER {
        "stop it there, or, where it is gone, go on in its place with --take-over".to_owned()
    } else {
        format!("to stop it: kubectl delete the LifecycleEvent that is bound to {node}")
    }
}
