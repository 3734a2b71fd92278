//! Looks up what a person asks about pods that something blocks: their workload, and whose budget it is. Only `scupper
//! status` does so, with the caller's rights.

use std::collections::BTreeMap;
use std::time::Duration;

use scupper_api::BudgetDetails;
use scupper_engine::{Budget, Controller, PodRef, Uid};
use tokio::time::Instant;

use scupper_cluster::{Cluster, ReadError};
use scupper_common::clock::Clock;
use scupper_report::{NodeStatus, StatusDetails};

/// What was read is good for so long, however often the node changes.
const GOOD_FOR: Duration = Duration::from_secs(5);

/// Controllers and budgets that are looked up for one node: each costs one or two requests.
const MOST: usize = 20;

/// Looks up details.
pub(super) struct DetailReader {
    cluster: Cluster,
    clock: Clock,
    read: BTreeMap<String, (Instant, StatusDetails)>,
}

impl DetailReader {
    pub(super) const fn new(cluster: Cluster, clock: Clock) -> Self {
        Self {
            cluster,
            clock,
            read: BTreeMap::new(),
        }
    }

    /// Those of the pods that something blocks on this node, and which watches are refused.
    pub(super) async fn read(&mut self, status: &NodeStatus) -> StatusDetails {
        let mut details = self.read_of_blocked(status).await;
        if self.cluster.may_not_list_budgets() {
            let text = "disruption budgets: no right to list poddisruptionbudgets";
            details.unread.push(text.to_owned());
        }
        details
    }

    async fn read_of_blocked(&mut self, status: &NodeStatus) -> StatusDetails {
        let (controllers, budgets) = status.blocked(self.clock.now());
        if controllers.is_empty() && budgets.is_empty() {
            return StatusDetails::default();
        }
        let node = &status.node.name;
        if let Some((at, details)) = self.read.get(node)
            && at.elapsed() < GOOD_FOR
        {
            return details.clone();
        }
        let mut details = StatusDetails::default();
        self.look_up_workloads(&controllers, &mut details).await;
        self.look_up_budgets(&budgets, &mut details).await;
        self.read.insert(node.clone(), (Instant::now(), details.clone()));
        details
    }

    async fn look_up_workloads(&self, controllers: &[(&PodRef, &Controller)], details: &mut StatusDetails) {
        let mut distinct: BTreeMap<&Uid, (&str, &Controller)> = BTreeMap::new();
        for (pod, controller) in controllers {
            distinct.insert(&controller.uid, (&pod.namespace, controller));
        }
        leave_out(distinct.len(), "workloads", details);
        for (uid, (namespace, controller)) in distinct.into_iter().take(MOST) {
            match self.cluster.workload(namespace, controller).await {
                Ok(found) => {
                    details.workloads.insert(uid.clone(), found);
                }
                Err(error) => note(&error, details),
            }
        }
    }

    async fn look_up_budgets(&self, budgets: &[&Budget], details: &mut StatusDetails) {
        leave_out(budgets.len(), "disruption budgets", details);
        for budget in budgets.iter().take(MOST) {
            let (found, unready) = futures::join!(
                self.cluster.budget_details(&budget.namespace, &budget.name),
                self.cluster.unready_pods(budget)
            );
            let found = found.unwrap_or_else(|error| {
                note(&error, details);
                None
            });
            let unready = unready.unwrap_or_else(|error| {
                note(&error, details);
                Vec::new()
            });
            let found = BudgetDetails {
                unready,
                ..found.unwrap_or_default()
            };
            let key = (budget.namespace.clone(), budget.name.clone());
            details.budgets.insert(key, found);
        }
    }
}

fn leave_out(all: usize, what: &str, details: &mut StatusDetails) {
    if all > MOST {
        let more = all - MOST;
        details.unread.push(format!(
            "details of {more} more {what}: only the first {MOST} are looked up"
        ));
    }
}

/// The same refusal for every pod of a node is one line.
fn note(error: &ReadError, details: &mut StatusDetails) {
    let words = error.to_string();
    if !details.unread.contains(&words) {
        details.unread.push(words);
    }
}
