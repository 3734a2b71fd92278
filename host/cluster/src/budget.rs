//! Converts PodDisruptionBudgets from the API's form to the engine's.

use scupper_api::facts::{FactKind, FactObject};
use scupper_engine::{Amount, Budget, BudgetLimit, Operator, Requirement, Selector, UnhealthyPods};
use serde::Deserialize;

use super::facts::WireFact;
use super::wire::{Meta, Object, Texts, nullable};

/// The fields of a budget that the driver needs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireBudget {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: Spec,
    #[serde(deserialize_with = "nullable")]
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    selector: Option<WireSelector>,
    unhealthy_pod_eviction_policy: Option<String>,
    min_available: Option<WireAmount>,
    max_unavailable: Option<WireAmount>,
}

/// An `IntOrString`.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum WireAmount {
    Pods(i32),
    Percent(String),
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireSelector {
    #[serde(deserialize_with = "nullable")]
    match_labels: Texts,
    #[serde(deserialize_with = "nullable")]
    match_expressions: Vec<Expression>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Expression {
    key: String,
    operator: String,
    #[serde(deserialize_with = "nullable")]
    values: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    disruptions_allowed: i32,
    current_healthy: i32,
    desired_healthy: i32,
    expected_pods: i32,
    observed_generation: Option<i64>,
}

impl Object for WireBudget {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl WireFact for WireBudget {
    fn into_fact(self, _kind: &FactKind) -> FactObject {
        self.into_engine().into()
    }
}

impl WireBudget {
    /// Converts to the engine's type, with its UID.
    pub(super) fn with_uid(self) -> (String, Budget) {
        (self.metadata.uid.clone(), self.into_engine())
    }

    /// Converts to the engine's type.
    pub(super) fn into_engine(self) -> Budget {
        let Self {
            metadata: meta,
            spec,
            status,
        } = self;
        let observed = status.observed_generation.unwrap_or(0) >= meta.generation.unwrap_or(0);
        let unhealthy_pods = match spec.unhealthy_pod_eviction_policy.as_deref() {
            Some("AlwaysAllow") => UnhealthyPods::AlwaysAllow,
            _ => UnhealthyPods::IfHealthyBudget,
        };
        let limit = spec.limit();
        Budget {
            namespace: meta.namespace,
            name: meta.name,
            selector: spec.selector.map_or(Selector::NOTHING, WireSelector::into_engine),
            unhealthy_pods,
            disruptions_allowed: status.disruptions_allowed,
            current_healthy: status.current_healthy,
            desired_healthy: status.desired_healthy,
            expected_pods: status.expected_pods,
            limit,
            observed,
        }
    }
}

impl Spec {
    fn limit(&self) -> Option<BudgetLimit> {
        let amount = |amount: &Option<WireAmount>| amount.as_ref().and_then(WireAmount::to_engine);
        let most = || amount(&self.max_unavailable).map(BudgetLimit::MaxUnavailable);
        let least = || amount(&self.min_available).map(BudgetLimit::MinAvailable);
        most().or_else(least)
    }
}

impl WireAmount {
    fn to_engine(&self) -> Option<Amount> {
        match self {
            Self::Pods(pods) => u32::try_from(*pods).ok().map(Amount::Pods),
            Self::Percent(text) => text.strip_suffix('%')?.parse().ok().map(Amount::Percent),
        }
    }
}

/// The most bytes of a selector: every driver keeps those of all budgets.
const LARGEST_SELECTOR: usize = 16 << 10;

impl WireSelector {
    /// About how much memory it takes.
    fn size(&self) -> usize {
        let labels = self
            .match_labels
            .iter()
            .map(|(key, value)| key.len() + value.len());
        let value = |text: &String| text.len() + size_of::<String>();
        let term = |term: &Expression| term.key.len() + term.values.iter().map(value).sum::<usize>();
        labels.chain(self.match_expressions.iter().map(term)).sum()
    }

    /// Converts to the engine's type. An unknown term selects nothing: a missing explanation is better than a wrong
    /// budget. The same holds for a selector that is too large to keep.
    fn into_engine(self) -> Selector {
        if self.size() > LARGEST_SELECTOR {
            return Selector::NOTHING;
        }
        let expressions: Option<Vec<_>> = self
            .match_expressions
            .into_iter()
            .map(Expression::into_engine)
            .collect();
        match expressions {
            Some(expressions) => Selector {
                labels: self.match_labels,
                expressions,
                nothing: false,
            },
            None => Selector::NOTHING,
        }
    }
}

impl Expression {
    fn into_engine(self) -> Option<Requirement> {
        let operator = match self.operator.as_str() {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            _ => return None,
        };
        Some(Requirement {
            key: self.key,
            operator,
            values: self.values,
        })
    }
}
