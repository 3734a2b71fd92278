//! What a drain waited for, in words, and how much of each.

use std::collections::BTreeMap;
use std::time::Duration;

use scupper_engine::{PodRef, Reason};
use scupper_forecast::NOTICE;
use scupper_recording::{DrainHistory, Part, PodHistory};

/// A kind of cause, with a colour of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A hook of a policy.
    Hook,
    /// A disruption budget.
    Budget,
    /// The pod is ending.
    Ending,
    /// An earlier wave.
    Wave,
    /// A limit of evictions at once.
    Limit,
    /// The API server or its answers.
    Cluster,
    /// Scupper itself.
    Host,
}

impl Kind {
    pub(crate) const ALL: [Self; 7] = [
        Self::Hook,
        Self::Budget,
        Self::Ending,
        Self::Wave,
        Self::Limit,
        Self::Cluster,
        Self::Host,
    ];

    /// Its name for programs, and as a class in HTML.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hook => "hook",
            Self::Budget => "budget",
            Self::Ending => "ending",
            Self::Wave => "wave",
            Self::Limit => "limit",
            Self::Cluster => "cluster",
            Self::Host => "host",
        }
    }

    /// In a legend.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Hook => "a hook of a policy",
            Self::Budget => "a disruption budget",
            Self::Ending => "the pod is ending",
            Self::Wave => "an earlier wave",
            Self::Limit => "a limit of evictions at once",
            Self::Cluster => "the API server or its answers",
            Self::Host => "Scupper itself",
        }
    }
}

/// One cause and how long it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Total {
    /// What kind of cause.
    pub kind: Kind,
    /// In words.
    pub cause: String,
    /// How long.
    pub took: Duration,
}

/// What the drain as a whole waited for, the longest first.
pub fn of_drain(history: &DrainHistory) -> Vec<Total> {
    let parts = history.path.iter();
    totals(parts.map(|part| {
        let (kind, cause) = of_part(history, part);
        (kind, cause, part.to.since(part.from))
    }))
}

/// What the drain waited for last.
pub fn last_of_drain(history: &DrainHistory) -> Option<String> {
    history.path.last().map(|part| of_part(history, part).1)
}

/// What a pod waited for, the longest first.
pub(crate) fn of_pod(pod: &PodHistory) -> Vec<Total> {
    totals(pod.waits.iter().map(|wait| {
        let (kind, cause) = of_reason(&wait.reason, &pod.pod, None);
        (kind, cause, wait.to.since(wait.from))
    }))
}

/// The kind and the words of a part of the path.
pub(crate) fn of_part(history: &DrainHistory, part: &Part) -> (Kind, String) {
    match &part.pod {
        Some((pod, owner, reason)) => {
            let who = owner.clone().unwrap_or_else(|| pod.to_string());
            of_reason(reason, pod, Some(&who))
        }
        None if part.to == history.ended => {
            let text = "the end: hooks, volumes and a last look at the node";
            (Kind::Host, text.to_owned())
        }
        None => (Kind::Host, "before the first look at the pods".to_owned()),
    }
}

/// Why this pod was still there. `who`: whose pods these are; `None`: the pod is named already.
pub(crate) fn of_reason(reason: &Reason, pod: &PodRef, who: Option<&str>) -> (Kind, String) {
    let of = |text: &str| who.map_or_else(|| text.to_owned(), |who| format!("{text} of {who}"));
    match reason {
        Reason::HookRunning { policy, .. } if policy == NOTICE => {
            (Kind::Hook, "notice to workloads (--notify-before)".to_owned())
        }
        Reason::HookRunning { policy, phase } => (Kind::Hook, format!("{phase} hook of policy {policy}")),
        Reason::BudgetExhausted { budget, .. } if !budget.is_empty() => (
            Kind::Budget,
            format!("disruption budget {}/{budget}", pod.namespace),
        ),
        Reason::BudgetExhausted { .. }
        | Reason::BudgetNotObserved { .. }
        | Reason::MoreThanOneBudget { .. } => (Kind::Budget, of("disruption budget")),
        Reason::Surging { workload, .. } => (Kind::Budget, format!("surge of {workload}")),
        Reason::Terminating { .. } => (Kind::Ending, of("ending")),
        Reason::TerminatingPastGrace { finalizers, .. } if finalizers.is_empty() => {
            (Kind::Ending, of("ending past the grace period"))
        }
        Reason::TerminatingPastGrace { finalizers, .. } => (Kind::Ending, format!("finalizers {finalizers}")),
        Reason::AwaitingCompletion => (Kind::Ending, of("work until its end")),
        Reason::WaveNotStarted { wave } => (Kind::Wave, format!("waves before {wave}")),
        Reason::ParallelLimit => (Kind::Limit, "limit of evictions at once".to_owned()),
        Reason::NotPlanned => (Kind::Host, "planning".to_owned()),
        Reason::PlannerFailed { policy, .. } => (Kind::Hook, format!("planner of policy {policy}")),
        Reason::DriverStopping => (Kind::Host, "restart of the driver".to_owned()),
        Reason::EvictionRefused { code, .. } => (Kind::Cluster, format!("evictions refused with {code}")),
        Reason::Refused { policy, .. } if !policy.is_empty() => {
            (Kind::Hook, format!("refusal of policy {policy}"))
        }
        other => (Kind::Cluster, of_cluster(other).to_owned()),
    }
}

const fn of_cluster(reason: &Reason) -> &'static str {
    match reason {
        Reason::EvictionRequested => "answers to evictions",
        Reason::Throttled { .. } => "API server that asked to slow down",
        Reason::Unreachable { .. } => "API server that did not answer",
        Reason::Forbidden { .. } => "missing right to evict",
        Reason::NamespaceTerminating => "deletion of the namespace",
        Reason::NodeUncordoned => "cordon that others had lifted",
        Reason::UidDisproved => "watch that was behind",
        other => other.name(),
    }
}

fn totals(waits: impl Iterator<Item = (Kind, String, Duration)>) -> Vec<Total> {
    let mut sums: BTreeMap<(Kind, String), Duration> = BTreeMap::new();
    for (kind, cause, took) in waits {
        *sums.entry((kind, cause)).or_default() += took;
    }
    let mut totals: Vec<_> = sums
        .into_iter()
        .map(|((kind, cause), took)| Total { kind, cause, took })
        .collect();
    totals.sort_by_key(|total| std::cmp::Reverse(total.took));
    totals
}
