//! Why a command does not drain a node.

use scupper_engine::{Checkpoint, Intent, Phase, PodRef, Trigger, named};

/// The most pods to name.
const MOST_PODS: usize = 5;

/// Why a command does not drain a node.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// Another process drains it, or died while draining it.
    #[error(
        "{}: {phase}, for {trigger} {name}; {}",
        at_work(trigger, *intent, node), busy_advice(trigger, *intent, *wanted, node)
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
        /// What it does.
        intent: Intent,
        /// What the command wants.
        wanted: Intent,
    },
    /// A command drained it, and nothing shows whether its process still runs.
    #[error(
        "node {node}: {phase}, for {trigger} {name}; no process holds the node's Lease, so it may be abandoned; {}",
        advice(trigger, *intent, node)
    )]
    MayBeAbandoned {
        /// The node.
        node: String,
        /// Who asked for that.
        trigger: String,
        /// What it is called.
        name: String,
        /// Where it stands.
        phase: String,
        /// What it does.
        intent: Intent,
    },
    /// No driver offers to drain it.
    #[error(
        "driver {driver} publishes no drain transition for node {node}; --local drains from here without it"
    )]
    NoDriver {
        /// The node.
        node: String,
        /// The driver.
        driver: String,
    },
    /// Its machine is not off.
    #[error("{message}")]
    Alive {
        /// The sign of life, and what to do.
        message: String,
    },
    /// There is no drain to take over.
    #[error(
        "node {node}: no drain is under way that --take-over could continue; to begin one: scupper drain {node}, which asks the \
         node's driver where there is one"
    )]
    NothingToTakeOver {
        /// The node.
        node: String,
    },
    /// A driver's drain can be continued only if the driver is certainly gone.
    #[error(
        "node {node}: {phase}, for {trigger} {name}; the node's Lease could not be taken, so the process that drains it may still \
         run; to see it: scupper status {node}"
    )]
    Unproven {
        /// The node.
        node: String,
        /// Who asked for that.
        trigger: String,
        /// What it is called.
        name: String,
        /// Where it stands.
        phase: String,
    },
    /// A command drains the whole node.
    #[error(
        "node {node} is drained for DrainRequest {name}, perhaps of some of its pods only, and a driver alone can continue \
         that; to undo it: scupper cancel {node}; to drain the whole node after that: scupper drain {node}"
    )]
    OfDrainRequest {
        /// The node.
        node: String,
        /// The request.
        name: String,
    },
    /// A drain that is continued with fewer flags than it was begun with would never end.
    #[error(
        "the drain of node {node} cannot be continued without {}: {} may not leave then. Give the flags that the drain was \
         begun with; nothing has changed",
        flags.join(" "), named(pods, MOST_PODS)
    )]
    FlagsMissing {
        /// The node.
        node: String,
        /// The flags that are missing.
        flags: Vec<&'static str>,
        /// The pods that may not leave without them.
        pods: Vec<PodRef>,
    },
    /// Continued without its flags, the drain would be of other pods.
    #[error(
        "node {node} is drained for LifecycleEvent {name} with {flags}, and without that other pods would leave as well; \
         nothing has changed. To continue it: scupper drain {node} --take-over {flags}",
        flags = flags.join(" ")
    )]
    OfOtherPods {
        /// The node.
        node: String,
        /// The event.
        name: String,
        /// The flags, as they are to be typed.
        flags: Vec<String>,
    },
    /// Other policies have made its plan.
    #[error(
        "the drain of node {node} was planned by policies that are not active here: {}. Without them other pods would leave, or in \
         another order; nothing has changed. Give the configuration that it was begun with (for a driver's drain, that of the \
         driver, with the policies' files as they are here): scupper drain {node} --take-over --ignore-daemonsets --config \
         scupper.yaml; to undo the drain instead: scupper cancel {node}",
        policies.join(", ")
    )]
    PlannersAbsent {
        /// The node.
        node: String,
        /// Their names.
        policies: Vec<String>,
    },
    /// Nothing would undo the part of these policies.
    #[error(
        "the process that drained node {node} is gone, and policies that took part are not active here: {}. Nothing would \
         undo their changes. Name the driver's configuration: scupper cancel {node} --config scupper.yaml",
        policies.join(", ")
    )]
    PoliciesAbsent {
        /// The node.
        node: String,
        /// Their names.
        policies: Vec<String>,
    },
    /// Its cordon is not ours.
    #[error(
        "node {node} was not cordoned by Scupper, so its cordon stays, and nothing has changed; to lift it: scupper \
         uncordon {node} --force (from here, with hooks only from --config or --policy)"
    )]
    ForeignCordon {
        /// The node.
        node: String,
    },
    /// A foreign cordon could not be made ours.
    #[error("could not take over the cordon of node {node}: {message}")]
    Adopt {
        /// The node.
        node: String,
        /// The API server's message.
        message: String,
    },
}

impl LocalError {
    /// A LifecycleEvent of the node is claimed.
    pub(super) fn claimed(node: &str, event: String, wanted: Intent) -> Self {
        Self::Busy {
            node: node.to_owned(),
            trigger: Trigger::LifecycleEvent.name().to_owned(),
            name: event,
            phase: "claimed".to_owned(),
            intent: Intent::Drain,
            wanted,
        }
    }

    /// Nothing shows that the process of this checkpoint is gone.
    pub(crate) fn unproven(node: &str, mark: &Checkpoint) -> Self {
        Self::Unproven {
            node: node.to_owned(),
            trigger: mark.trigger.clone(),
            name: mark.name.clone(),
            phase: doing(mark),
        }
    }

    /// Whether the process of this checkpoint still runs is not known.
    pub(crate) fn may_be_abandoned(node: &str, mark: Checkpoint) -> Self {
        Self::MayBeAbandoned {
            node: node.to_owned(),
            phase: doing(&mark),
            intent: mark.intent,
            trigger: mark.trigger,
            name: mark.name,
        }
    }

    /// Another process's checkpoint is on the node.
    pub(super) fn busy(node: &str, mark: Checkpoint, wanted: Intent) -> Self {
        Self::Busy {
            node: node.to_owned(),
            phase: doing(&mark),
            intent: mark.intent,
            wanted,
            trigger: mark.trigger,
            name: mark.name,
        }
    }
}

/// The checkpoint is written before the first pod leaves, and not again when it does.
fn doing(mark: &Checkpoint) -> String {
    match mark.phase {
        Phase::Holding | Phase::Evicting => "draining".to_owned(),
        phase => phase.to_string(),
    }
}

/// A driver that is away comes back, and its drain is not free meanwhile.
fn at_work(trigger: &str, intent: Intent, node: &str) -> String {
    let what = match intent {
        Intent::Drain => "a drain",
        Intent::Uncordon => "an uncordon",
    };
    match Trigger::of(trigger) {
        Trigger::Command => format!("another process works on node {node}"),
        _ => format!("node {node} has {what} of its driver, which continues it after a restart"),
    }
}

/// To give a node back, its drain need not be continued.
fn busy_advice(trigger: &str, intent: Intent, wanted: Intent, node: &str) -> String {
    match (wanted, intent) {
        (Intent::Uncordon, Intent::Drain) => {
            format!(
                "{}; to stop it and give the node back: scupper cancel {node}",
                see(node)
            )
        }
        _ => advice(trigger, intent, node),
    }
}

fn see(node: &str) -> String {
    format!("to see it: scupper status {node} --watch")
}

fn advice(trigger: &str, intent: Intent, node: &str) -> String {
    let process = match Trigger::of(trigger) {
        Trigger::Command => "that process is gone",
        _ => "its driver is gone for good",
    };
    let flags = match Trigger::of(trigger) {
        Trigger::Command => "",
        _ => " --ignore-daemonsets --config scupper.yaml (the driver's)",
    };
    let see = see(node);
    match intent {
        Intent::Drain if Trigger::of(trigger) == Trigger::DrainRequest => {
            format!("{see}; to stop it: scupper cancel {node}")
        }
        Intent::Drain => {
            format!(
                "{see}; to stop it: scupper cancel {node}; if {process}, continue its drain: scupper drain {node} --take-over{flags}"
            )
        }
        // The node takes pods once it has ended; a cancel is for drains.
        Intent::Uncordon => format!(
            "{see}; if {process}, finish its uncordon with scupper uncordon {node} --take-over, or drain the node with \
             scupper drain {node} --take-over"
        ),
    }
}
