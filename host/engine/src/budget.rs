//! PodDisruptionBudgets: which pods they select, and what they allow just now.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::{Pod, PodPhase};

/// A PodDisruptionBudget.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Budget {
    /// `metadata.namespace`
    pub namespace: String,
    /// `metadata.name`
    pub name: String,
    /// `spec.selector`
    pub selector: Selector,
    /// `spec.unhealthyPodEvictionPolicy`
    pub unhealthy_pods: UnhealthyPods,
    /// `status.disruptionsAllowed`
    pub disruptions_allowed: i32,
    /// `status.currentHealthy`
    pub current_healthy: i32,
    /// `status.desiredHealthy`
    pub desired_healthy: i32,
    /// `status.expectedPods`
    pub expected_pods: i32,
    /// `spec.minAvailable` or `spec.maxUnavailable`; `None`: neither, or unreadable.
    pub limit: Option<BudgetLimit>,
    /// `status.observedGeneration` has caught up with `metadata.generation`
    pub observed: bool,
}

/// What a budget demands of its pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum BudgetLimit {
    /// So many stay healthy.
    MinAvailable(Amount),
    /// No more than so many are unhealthy.
    MaxUnavailable(Amount),
}

/// A number of pods, or a share of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Amount {
    /// A number.
    Pods(u32),
    /// A share in percent.
    Percent(u32),
}

/// Whether pods that are not ready may go although the budget is not met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum UnhealthyPods {
    /// Only while the budget is met.
    #[default]
    IfHealthyBudget,
    /// Always.
    AlwaysAllow,
}

/// A label selector. One without terms selects every pod of its namespace; a budget without a selector (`None` in
/// the API) selects none, which the cluster edge says with [`Selector::NOTHING`].
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Selector {
    /// `matchLabels`
    pub labels: BTreeMap<String, String>,
    /// `matchExpressions`
    pub expressions: Vec<Requirement>,
    /// Selects nothing at all.
    pub nothing: bool,
}

/// One of `matchExpressions`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Requirement {
    /// The label's key.
    pub key: String,
    /// How it is compared.
    pub operator: Operator,
    /// With what.
    pub values: Vec<String>,
}

/// How a label is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Operator {
    /// Present with one of the values.
    In,
    /// Absent, or with none of the values.
    NotIn,
    /// Present.
    Exists,
    /// Absent.
    DoesNotExist,
    /// A whole number above the value. No budget has this; it comes from the command line.
    GreaterThan,
    /// A whole number below the value. Likewise.
    LessThan,
}

impl Selector {
    /// Selects every pod.
    pub const EVERYTHING: Self = Self {
        labels: BTreeMap::new(),
        expressions: Vec::new(),
        nothing: false,
    };

    /// Selects no pod.
    pub const NOTHING: Self = Self {
        labels: BTreeMap::new(),
        expressions: Vec::new(),
        nothing: true,
    };

    /// Whether a pod with these labels is selected.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        !self.nothing
            && self
                .labels
                .iter()
                .all(|(key, value)| labels.get(key) == Some(value))
            && self.expressions.iter().all(|term| term.matches(labels))
    }
}

impl Requirement {
    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        match self.operator {
            Operator::In => value.is_some_and(|value| self.values.contains(value)),
            Operator::NotIn => value.is_none_or(|value| !self.values.contains(value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan => self.compares(value, |value, bound| value > bound),
            Operator::LessThan => self.compares(value, |value, bound| value < bound),
        }
    }

    /// What is no whole number is neither above nor below one.
    fn compares(&self, value: Option<&String>, holds: fn(i64, i64) -> bool) -> bool {
        let number = |text: &String| text.parse::<i64>().ok();
        let bound = self.values.first().and_then(number);
        bound
            .zip(value.and_then(number))
            .is_some_and(|(bound, value)| holds(value, bound))
    }
}

/// What the Eviction API weighs a pod's eviction by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoverningBudget<'a> {
    /// By no budget: none selects the pod, or the API server does not look at budgets for this one.
    None,
    /// By this one.
    One(&'a Budget),
    /// By several, which the API server refuses to do.
    Several(&'a Budget, &'a Budget),
}

impl<'a> GoverningBudget<'a> {
    /// As the API server decides it, of all budgets that there are. A pod that does not run yet or any more goes
    /// without being weighed, and so does one that is not ready, as far as its budget spares those.
    pub fn of(pod: &Pod, budgets: impl IntoIterator<Item = &'a Budget>) -> Self {
        if !is_weighed(pod) {
            return Self::None;
        }
        let mut selecting = budgets.into_iter().filter(|budget| budget.selects(pod));
        match (selecting.next(), selecting.next()) {
            (Some(one), Some(other)) => Self::Several(one, other),
            (Some(budget), None) if budget.governs(pod) => Self::One(budget),
            _ => Self::None,
        }
    }
}

/// Of a pod that does not run yet or any more, no budget is asked.
fn is_weighed(pod: &Pod) -> bool {
    pod.phase != PodPhase::Pending && !pod.is_finished() && pod.deletion.is_none()
}

impl Budget {
    /// Follows the numbers of a budget that blocks pods although it has more than it needs.
    pub const SPENT: &str = ", and what it allows is spent on pods that were asked to leave";

    /// The eviction of this pod is weighed by it, if it alone selects the pod.
    pub(crate) fn governs(&self, pod: &Pod) -> bool {
        is_weighed(pod) && (pod.ready || !self.spares_unready())
    }

    /// A pod that is not ready may go without being counted.
    const fn spares_unready(&self) -> bool {
        match self.unhealthy_pods {
            UnhealthyPods::AlwaysAllow => true,
            UnhealthyPods::IfHealthyBudget => {
                self.desired_healthy > 0 && self.current_healthy >= self.desired_healthy
            }
        }
    }

    /// Whether this budget counts the pod.
    pub fn selects(&self, pod: &Pod) -> bool {
        self.namespace == pod.id.namespace && self.selector.matches(&pod.labels)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pods(pods) => write!(f, "{pods}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

impl fmt::Display for BudgetLimit {
    /// `minAvailable: 1`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MinAvailable(amount) => write!(f, "minAvailable: {amount}"),
            Self::MaxUnavailable(amount) => write!(f, "maxUnavailable: {amount}"),
        }
    }
}
