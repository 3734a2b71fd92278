//! Disruption budgets with the pods of the call that they cover.

use scupper_api::facts::{FactKind, FactObject, FactQuery, FactType as _};
use scupper_engine::{Budget, UnhealthyPods};

use super::cache::{Answer, AskError, Facts};
use super::caller::FactCaller;
use crate::wit::bindings::scupper::drain::facts;

/// Budgets that cover pods of one node.
const BUDGETS: usize = 1000;

impl Facts {
    /// The disruption budgets that cover a pod of the call.
    pub(crate) async fn budgets(&self, caller: &FactCaller) -> Answer<Vec<facts::Budget>> {
        let mut reader = self.reader(caller).await;
        let covers = |object: &FactObject| {
            let mut pods = caller.pods.iter();
            Budget::of(object).is_some_and(|budget| pods.any(|pod| pod.is_of(budget)))
        };
        let found = reader.ask(FactQuery::all(FactKind::Budget), covers).await?;
        if found.len() > BUDGETS {
            return Err(AskError::TooMany);
        }
        let budgets = found.iter().filter_map(Budget::of);
        Ok(budgets.map(|budget| to_wit(budget, caller)).collect())
    }
}

fn to_wit(budget: &Budget, caller: &FactCaller) -> facts::Budget {
    let covered = caller.pods.iter().filter(|pod| pod.is_of(budget));
    let count = |number: i32| u32::try_from(number).unwrap_or(0);
    facts::Budget {
        pods: covered.map(|pod| pod.id.uid.as_str().to_owned()).collect(),
        namespace: budget.namespace.clone(),
        name: budget.name.clone(),
        expected_pods: count(budget.expected_pods),
        desired_healthy: count(budget.desired_healthy),
        current_healthy: count(budget.current_healthy),
        disruptions_allowed: count(budget.disruptions_allowed),
        unhealthy_pod_eviction_policy: match budget.unhealthy_pods {
            UnhealthyPods::IfHealthyBudget => facts::UnhealthyPodEvictionPolicy::IfHealthyBudget,
            UnhealthyPods::AlwaysAllow => facts::UnhealthyPodEvictionPolicy::AlwaysAllow,
        },
        observed: budget.observed,
    }
}
