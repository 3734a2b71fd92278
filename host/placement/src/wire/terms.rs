//! What pods require of nodes and of each other.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1 as api;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use scupper_engine::{Operator, Requirement, Selector};

use crate::model::{NodeTerm, PodTerm, Resident, Spread, Toleration};
use crate::pod_terms::NAMESPACE_NAME;

/// The terms of a node selector. One that is empty selects no node.
pub(super) fn node_terms(selector: api::NodeSelector) -> Vec<NodeTerm> {
    let expressions = |terms: Option<Vec<api::NodeSelectorRequirement>>| Selector {
        expressions: terms
            .into_iter()
            .flatten()
            .filter_map(|term| requirement(term.key, &term.operator, term.values))
            .collect(),
        ..Selector::EVERYTHING
    };
    let is_empty = |terms: &Option<Vec<_>>| terms.as_ref().is_none_or(Vec::is_empty);
    let term = |term: api::NodeSelectorTerm| {
        let nothing = is_empty(&term.match_expressions) && is_empty(&term.match_fields);
        NodeTerm {
            labels: Selector {
                nothing,
                ..expressions(term.match_expressions)
            },
            fields: expressions(term.match_fields),
        }
    };
    selector.node_selector_terms.into_iter().map(term).collect()
}

/// A requirement; one with an unknown operator is left out.
fn requirement(key: String, operator: &str, values: Option<Vec<String>>) -> Option<Requirement> {
    let operator = match operator {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        "Gt" => Operator::GreaterThan,
        "Lt" => Operator::LessThan,
        _ => return None,
    };
    Some(Requirement {
        key,
        operator,
        values: values.unwrap_or_default(),
    })
}

fn labels(selector: LabelSelector) -> Selector {
    let expressions = selector.match_expressions.into_iter().flatten();
    Selector {
        labels: selector.match_labels.unwrap_or_default(),
        expressions: expressions
            .filter_map(|term| requirement(term.key, &term.operator, term.values))
            .collect(),
        nothing: false,
    }
}

/// The terms of a pod of this namespace. Left out are those without a selector, which are about no pod, and those that
/// select namespaces by labels.
pub(super) fn pod_terms(terms: Option<Vec<api::PodAffinityTerm>>, own: &str) -> Vec<PodTerm> {
    let terms = terms.into_iter().flatten();
    terms.filter_map(|term| pod_term(term, own)).collect()
}

fn pod_term(term: api::PodAffinityTerm, own: &str) -> Option<PodTerm> {
    let selector = labels(term.label_selector?);
    let namespace_selector = term.namespace_selector.map(labels);
    let by_name = |selector: &Selector| {
        let keys = selector.expressions.iter().map(|term| &term.key);
        keys.chain(selector.labels.keys())
            .all(|key| key == NAMESPACE_NAME)
    };
    if !namespace_selector.iter().all(by_name) {
        return None;
    }
    let mut namespaces: BTreeSet<String> = term.namespaces.into_iter().flatten().collect();
    if namespaces.is_empty() && namespace_selector.is_none() {
        namespaces.insert(own.to_owned());
    }
    Some(PodTerm {
        selector,
        namespaces,
        namespace_selector,
        topology_key: term.topology_key,
    })
}

pub(super) fn toleration(toleration: api::Toleration) -> Toleration {
    Toleration {
        // Operators that compare numbers are not judged: they tolerate every value.
        any_value: !matches!(toleration.operator.as_deref(), None | Some("" | "Equal")),
        key: toleration.key.unwrap_or_default(),
        value: toleration.value.unwrap_or_default(),
        effect: toleration.effect.unwrap_or_default(),
    }
}

/// It is more than a preference.
pub(super) fn keeps_away(spread: &api::TopologySpreadConstraint) -> bool {
    spread.when_unsatisfiable == "DoNotSchedule"
}

/// A constraint of this pod.
pub(super) fn spread(spread: api::TopologySpreadConstraint, pod: &Resident) -> Spread {
    let mut selector = spread.label_selector.map_or(Selector::NOTHING, labels);
    for key in spread.match_label_keys.into_iter().flatten() {
        let value = pod.labels.get(&key).cloned();
        selector.labels.extend(value.map(|value| (key, value)));
    }
    let whole = |number: i32| u64::try_from(number).unwrap_or(0);
    Spread {
        topology_key: spread.topology_key,
        max_skew: whole(spread.max_skew),
        min_domains: spread.min_domains.map(whole),
        selector,
        honors_affinity: spread.node_affinity_policy.as_deref() != Some("Ignore"),
        honors_taints: spread.node_taints_policy.as_deref() == Some("Honor"),
    }
}
