//! Force at the deadline: which remaining pods a drain deletes shortly before it, and how.

use alloc::collections::BTreeSet;
use alloc::string::String;
use core::fmt;
use core::time::Duration;

use crate::{Pod, Time, Verdict};

/// Shortly before the deadline the drain deletes remaining pods, whatever their wave and without asking their
/// disruption budgets. It never bypasses a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ForceAtDeadline {
    /// Which pods.
    pub pods: ForcedPods,
    /// The longest grace period that a pod gets; one whose own is shorter keeps its own.
    pub grace_seconds: u64,
    /// How long before the deadline the drain begins to delete them.
    pub within: Duration,
}

/// The pods that the operator allows to be deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ForcedPods {
    /// Only pods in these namespaces; `None`: in all.
    pub namespaces: Option<BTreeSet<String>>,
    /// Only pods whose priority is lower; `None`: of any priority.
    pub priority_below: Option<i32>,
    /// Also pods that the plan lets finish by themselves.
    pub await_completion: bool,
}

impl ForceAtDeadline {
    /// The grace period of a deleted pod ends at least this long before the deadline: afterwards the kubelet kills the
    /// pod and reports it, a list must confirm that it is gone, and its volumes are detached.
    pub const RESERVE: Duration = Duration::from_secs(10);

    /// When the drain begins to delete them, if it has evicted before.
    pub fn begins(&self, deadline: Time) -> Time {
        deadline - self.within
    }

    /// When it deletes them at the latest: so that they still get the whole grace period.
    pub fn latest(&self, deadline: Time) -> Time {
        deadline - Self::RESERVE - Duration::from_secs(self.grace_seconds)
    }
}

impl ForcedPods {
    /// Whether the drain deletes a pod with this verdict if it remains.
    pub fn covers(&self, pod: &Pod, verdict: Verdict) -> bool {
        let awaits = verdict == Verdict::AwaitCompletion && !pod.is_finished();
        verdict.leaves()
            && (self.await_completion || !awaits)
            && self
                .namespaces
                .as_ref()
                .is_none_or(|namespaces| namespaces.contains(&pod.id.namespace))
            && self.priority_below.is_none_or(|limit| pod.priority < limit)
    }
}

impl fmt::Display for ForcedPods {
    /// `in batch, shop with a priority below 1000`, after the word "pods"; empty: all of them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "in ";
        for namespace in self.namespaces.iter().flatten() {
            write!(f, "{separator}{namespace}")?;
            separator = ", ";
        }
        if let Some(limit) = self.priority_below {
            let space = if separator == ", " { " " } else { "" };
            write!(f, "{space}with a priority below {limit}")?;
        }
        Ok(())
    }
}
