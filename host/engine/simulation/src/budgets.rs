//! Evictions, deletions and disruption budgets, as the API server and the disruption controller handle them.

use std::collections::BTreeMap;
use std::time::Duration;

use scupper_engine::{Budget, EvictAnswer, Pod, PodPhase, PodRef, UnhealthyPods};

use crate::cluster::{Change, Cluster, NODE};
use crate::timers::Chore;

#[derive(Clone, Debug)]
pub(crate) struct BudgetTruth {
    pub(crate) budget: Budget,
    /// Its healthy pods on other nodes.
    pub(crate) elsewhere: i32,
    /// Whether its pods are replaced elsewhere, and after what time.
    pub(crate) recovers: Option<u64>,
    /// The delay until the disruption controller reacts.
    pub(crate) lag: u64,
    /// `status.disruptedPods`: the name, and when the entry expires.
    pub(crate) disrupted: BTreeMap<String, u64>,
}

impl Cluster {
    pub(crate) fn add_budget(&mut self, budget: Budget, elsewhere: i32, recovers: Option<u64>, lag: u64) {
        let name = budget.name.clone();
        let truth = BudgetTruth {
            budget,
            elsewhere,
            recovers,
            lag,
            disrupted: BTreeMap::new(),
        };
        self.budgets.insert(name, truth);
    }

    /// The answer to `POST eviction`, its delay beyond the usual, and whether it had an effect.
    pub(crate) fn evict(&mut self, now: u64, id: &PodRef, grace: Option<u64>) -> (EvictAnswer, u64, bool) {
        if self.dying.contains(&id.namespace) && self.named(&id.namespace, &id.name).is_some() {
            let message = String::from("namespace is being terminated");
            return (EvictAnswer::NamespaceTerminating { message }, 0, false);
        }
        let Some(pod) = self.named(&id.namespace, &id.name).map(|truth| truth.pod.clone()) else {
            return (EvictAnswer::NotFound, 0, false);
        };
        let mismatch = pod.id.uid != id.uid;
        let free = pod.deletion.is_some() || pod.is_finished() || pod.phase == PodPhase::Pending;
        if !free && let Some(refusal) = self.spend(now, &pod) {
            return (refusal, 0, false);
        }
        if mismatch {
            let slow = if pod.deletion.is_some() || pod.is_finished() {
                10_000
            } else {
                0
            };
            let message = String::from("the UID in the precondition does not match");
            return (EvictAnswer::UidMismatch { message }, slow, false);
        }
        let effect = self.delete(now, &id.uid, grace);
        (EvictAnswer::Accepted, 0, effect)
    }

    /// The answer to `DELETE`, and whether it had an effect.
    pub(crate) fn delete_named(
        &mut self,
        now: u64,
        id: &PodRef,
        grace: Option<u64>,
    ) -> (EvictAnswer, u64, bool) {
        match self.named(&id.namespace, &id.name) {
            None => (EvictAnswer::NotFound, 0, false),
            Some(truth) if truth.pod.id.uid != id.uid => {
                let message = String::from("the UID in the precondition does not match");
                (EvictAnswer::UidMismatch { message }, 0, false)
            }
            Some(_) => {
                self.shorten(now, &id.uid, grace);
                let effect = self.delete(now, &id.uid, grace);
                (EvictAnswer::Accepted, 0, effect)
            }
        }
    }

    /// Takes one disruption from the pod's budget, or returns why it cannot.
    fn spend(&mut self, now: u64, pod: &Pod) -> Option<EvictAnswer> {
        let names: Vec<String> = self
            .budgets
            .iter()
            .filter(|(_, budget)| budget.budget.selects(pod))
            .map(|(name, _)| name.clone())
            .collect();
        if names.len() > 1 {
            let message = String::from("This pod has more than one PodDisruptionBudget");
            return Some(EvictAnswer::MoreThanOneBudget { message });
        }
        let name = names.first()?;
        let truth = self.budgets.get_mut(name)?;
        let message = String::from("Cannot evict pod as it would violate the pod's disruption budget.");
        if !truth.budget.observed {
            return Some(EvictAnswer::BudgetNotObserved {
                message,
                retry_after: Duration::from_secs(10),
            });
        }
        let met =
            truth.budget.desired_healthy > 0 && truth.budget.current_healthy >= truth.budget.desired_healthy;
        let always = truth.budget.unhealthy_pods == UnhealthyPods::AlwaysAllow;
        if !pod.ready && (always || met) {
            return None;
        }
        if truth.budget.disruptions_allowed <= 0 {
            return Some(EvictAnswer::BudgetExhausted {
                budget: name.clone(),
                message,
            });
        }
        truth.budget.disruptions_allowed -= 1;
        truth.disrupted.insert(pod.id.name.clone(), now + 120_000);
        self.changes.push(Change::Budget(name.clone()));
        self.changes
            .push(Change::Later(now + truth.lag, Chore::Sync(name.clone())));
        None
    }

    /// The disruption controller updates a budget's status.
    pub(crate) fn sync(&mut self, now: u64, name: &str) {
        let Some(truth) = self.budgets.get_mut(name) else {
            return;
        };
        let pods = &self.pods;
        truth.disrupted.retain(|pod, until| {
            *until > now
                && pods
                    .values()
                    .any(|truth| truth.pod.id.name == *pod && truth.pod.deletion.is_none())
        });
        let healthy = pods
            .values()
            .filter(|other| other.pod.node == NODE && other.pod.ready && other.pod.deletion.is_none())
            .filter(|other| {
                truth.budget.selects(&other.pod) && !truth.disrupted.contains_key(&other.pod.id.name)
            })
            .count();
        let healthy = i32::try_from(healthy)
            .unwrap_or(i32::MAX)
            .saturating_add(truth.elsewhere);
        let allowed = (healthy - truth.budget.desired_healthy).max(0);
        let unchanged = truth.budget.observed
            && truth.budget.current_healthy == healthy
            && truth.budget.disruptions_allowed == allowed;
        if !unchanged {
            truth.budget.observed = true;
            truth.budget.current_healthy = healthy;
            truth.budget.disruptions_allowed = allowed;
            self.changes.push(Change::Budget(String::from(name)));
        }
        if let Some(until) = truth.disrupted.values().min() {
            self.changes
                .push(Change::Later(*until, Chore::Sync(String::from(name))));
        }
    }
}
