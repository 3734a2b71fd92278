//! The types that triggers and the rest of the driver exchange. They must not depend on a particular trigger.

use std::collections::BTreeMap;
use std::time::Duration;

pub use scupper_engine::NamedPods;
use scupper_engine::{Intent, Outcome, Time};

/// A request to drain or uncordon this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerRequest {
    /// Identifies the request, for example by the UID of the LifecycleEvent.
    pub id: String,
    /// The name shown to users, for example that of the LifecycleEvent.
    pub name: String,
    /// The trigger's name, for reports.
    pub trigger: String,
    /// Drain or uncordon.
    pub intent: Intent,
    /// The request must have ended by this time; `None` sets no limit.
    pub deadline: Option<Time>,
    /// Settings that the request overrides; `None` uses the driver's own.
    pub flags: Option<RequestedSettings>,
    /// The only pods to evict, among those that the settings choose; `None`: all of them.
    pub only_pods: Option<NamedPods>,
}

/// Settings of a request, within the operator's limits. They take precedence over the driver's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestedSettings {
    /// Time limit of the whole request; `None` uses that of its transition.
    pub timeout: Option<Duration>,
    /// All of them, by the names of their flags. A trigger does not know what they mean.
    pub flags: BTreeMap<String, String>,
}

/// A trigger's command to the driver. Commands are idempotent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrainCommand {
    /// Begin, or resume from the checkpoint with the request's id.
    Begin(TriggerRequest),
    /// Change the deadline.
    Deadline {
        /// The request's id.
        id: String,
        /// The new deadline.
        deadline: Option<Time>,
    },
    /// The request is withdrawn: stop, and roll back the driver's own changes.
    Cancel {
        /// The request's id.
        id: String,
        /// The reason, for users.
        reason: String,
    },
    /// The request ended elsewhere: stop. Also sent for a checkpoint whose request is over.
    Lost {
        /// The request's id.
        id: String,
        /// The evidence, for users.
        reason: String,
    },
}

/// A report about one request. None is lost, and they come in order: a request may end and the next one begin before
/// its trigger looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrainReport {
    /// The driver holds the node's Lease and runs it now.
    Started {
        /// The request's id.
        id: String,
    },
    /// The policies that hold it have changed.
    Held {
        /// The request's id.
        id: String,
        /// Each that holds it, and what it waits for; empty: none.
        by: Vec<String>,
    },
    /// What it did, when it ends.
    Summary {
        /// The request's id.
        id: String,
        /// For people.
        text: String,
    },
    /// It has ended.
    Ended {
        /// The request's id.
        id: String,
        /// The outcome; `None`: it is not known.
        outcome: Option<Outcome>,
        /// It named its pods: whatever became of them, the node is not drained.
        partial: bool,
    },
}

impl DrainReport {
    /// The request's id.
    pub fn id(&self) -> &str {
        match self {
            Self::Started { id }
            | Self::Held { id, .. }
            | Self::Summary { id, .. }
            | Self::Ended { id, .. } => id,
        }
    }
}

/// The driver's current activity. It is a level: a trigger may miss one that lasts only a moment, so how a request
/// ended is a [`DrainReport`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DriverState {
    /// The driver is idle.
    #[default]
    Idle,
    /// The driver runs this request, or it continues one that a former process left before any other.
    Running {
        /// The request's id.
        id: String,
        /// Its name and trigger, for users.
        what: String,
    },
}

/// The request of a previous process of this driver, read from its checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumePoint {
    /// The request's id.
    pub id: String,
    /// The name shown to users.
    pub name: String,
    /// Drain or uncordon.
    pub intent: Intent,
    /// Its deadline.
    pub deadline: Option<Time>,
    /// A digest of the pods that it names; `None`: it means all of the node.
    pub only_pods: Option<u64>,
    /// The request had ended: it is remembered, but begins again only on a new request.
    pub finished: bool,
}
