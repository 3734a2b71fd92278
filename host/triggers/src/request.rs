//! What a door and the rest of the driver tell each other. It must not know which door it is.

use std::time::Duration;

use scupper_engine::{Filters, Intent, Outcome, Time};

/// Somebody wants something done to this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainRequest {
    /// Tells this wish from every other one: the UID of the LifecycleEvent, for instance.
    pub id: String,
    /// What it is called by people: the LifecycleEvent's name, for instance.
    pub name: String,
    /// Who asked, for reports.
    pub trigger: String,
    /// Drain or uncordon.
    pub intent: Intent,
    /// When it must have ended; `None`: whenever it is done.
    pub deadline: Option<Time>,
    /// What they say of it besides; `None`: as the driver does it.
    pub flags: Option<Box<DrainFlags>>,
}

/// What a wish says of how pods are chosen and evicted, as far as the operator lets it: all of it comes before what the
/// driver would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainFlags {
    /// How pods are chosen.
    pub filters: Filters,
    /// Overrides the pods' own grace period; `None`: their own.
    pub grace_seconds: Option<u64>,
    /// `grace_seconds` may not shorten a pod's own grace period.
    pub grace_only_longer: bool,
    /// How often pods are evicted that come back to the cordoned node; `None`: as the driver does it.
    pub returning_pod_evictions: Option<u32>,
    /// How long one eviction request may take.
    pub eviction_timeout: Duration,
    /// How long it may take altogether; `None`: as long as its transition says.
    pub timeout: Option<Duration>,
}

/// What a door asks of the driver. Every demand may come again; it then changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrainCommand {
    /// Begin, or go on from the checkpoint that has the wish's id.
    Begin(DrainRequest),
    /// The deadline is now this one.
    Deadline {
        /// The wish.
        id: String,
        /// When it must have ended.
        deadline: Option<Time>,
    },
    /// It is not wanted any more: stop and put back what is ours.
    Cancel {
        /// The wish.
        id: String,
        /// Who says so, for people.
        reason: String,
    },
    /// It is over without us: stop. Also said of a checkpoint whose wish is over.
    Lost {
        /// The wish.
        id: String,
        /// How we know, for people.
        reason: String,
    },
}

/// What the driver is at. Shown as a level, so it must stay readable: an end stays until the next wish begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DriverState {
    /// Nothing.
    #[default]
    Idle,
    /// This wish.
    Running {
        /// The wish.
        id: String,
    },
    /// Nothing any more; this wish came to an end.
    Ended {
        /// The wish.
        id: String,
        /// How it ended.
        outcome: Outcome,
    },
}

/// What a former process of this driver was at, as its checkpoint tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumePoint {
    /// The wish.
    pub id: String,
    /// What it is called by people.
    pub name: String,
    /// Drain or uncordon.
    pub intent: Intent,
    /// When it must have ended.
    pub deadline: Option<Time>,
    /// It had come to its end: remembered, but not begun again unless somebody asks.
    pub finished: bool,
}
