//! The facts that policies ask for, by means of the cluster edge.

use std::collections::BTreeMap;

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::adapters::policy_access::PolicyClusterAccess;
use scupper_cluster::{BudgetCounts, ObjectMeta, PodOwner, ReadError};
use scupper_engine::{Controller, Uid};
use scupper_policy::{AccessError, BudgetFact, FactSource, Marks, NamespaceFact, OwnerFact};

impl FactSource for PolicyClusterAccess {
    fn lifecycle_event<'a>(
        &'a self,
        name: &'a str,
        uid: &'a str,
    ) -> BoxFuture<'a, Result<Marks, AccessError>> {
        async move {
            let found = self.cluster.lifecycle_event_meta(name).await.map_err(unread)?;
            let found = found.filter(|event| event.uid == uid).map(marks);
            found.ok_or_else(|| AccessError::NotFound(format!("the LifecycleEvent {name} is gone")))
        }
        .boxed()
    }

    fn namespace<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<NamespaceFact, AccessError>> {
        async move {
            let found = self.cluster.namespace(name).await.map_err(unread)?;
            let found = found.map(namespace_fact);
            found.ok_or_else(|| AccessError::NotFound(format!("there is no namespace {name}")))
        }
        .boxed()
    }

    fn namespaces(&self) -> BoxFuture<'_, Result<BTreeMap<String, NamespaceFact>, AccessError>> {
        async move {
            let listed = self.cluster.namespaces().await.map_err(unread)?;
            let named = |found: ObjectMeta| (found.name.clone(), namespace_fact(found));
            Ok(listed.into_iter().map(named).collect())
        }
        .boxed()
    }

    fn budgets(&self) -> BoxFuture<'_, Result<Vec<BudgetFact>, AccessError>> {
        async move {
            let listed = self.cluster.budgets().await.map_err(unread)?;
            let fact = |counts: BudgetCounts| BudgetFact {
                budget: counts.budget,
                expected_pods: counts.expected_pods,
            };
            Ok(listed.into_iter().map(fact).collect())
        }
        .boxed()
    }

    fn owner<'a>(
        &'a self,
        namespace: &'a str,
        reference: &'a Controller,
    ) -> BoxFuture<'a, Result<Option<OwnerFact>, AccessError>> {
        async move {
            let found = self
                .cluster
                .pod_owner(namespace, reference)
                .await
                .map_err(unread)?;
            Ok(found.map(|found| owner_fact(reference, found)))
        }
        .boxed()
    }

    fn owners<'a>(
        &'a self,
        namespace: &'a str,
        like: &'a Controller,
    ) -> BoxFuture<'a, Result<Vec<OwnerFact>, AccessError>> {
        async move {
            let listed = self.cluster.pod_owners(namespace, like).await.map_err(unread)?;
            Ok(listed.into_iter().map(|found| owner_fact(like, found)).collect())
        }
        .boxed()
    }
}

/// An owner of the kind of this reference, as policies see it.
pub fn owner_fact(like: &Controller, found: PodOwner) -> OwnerFact {
    OwnerFact {
        reference: Controller {
            name: found.meta.name.clone(),
            uid: Uid(found.meta.uid.clone()),
            ..like.clone()
        },
        marks: marks(found.meta),
        replicas: found.replicas,
        ready_replicas: found.ready_replicas,
        strategy: found.strategy,
        controller: found.controller,
    }
}

/// A namespace, as policies see it.
pub fn namespace_fact(found: ObjectMeta) -> NamespaceFact {
    NamespaceFact {
        deletion: found.deletion,
        marks: marks(found),
    }
}

fn marks(found: ObjectMeta) -> Marks {
    Marks {
        labels: found.labels,
        annotations: found.annotations,
    }
}

/// Also a missing right: the API server refuses all requests for a moment after a restart.
fn unread(error: ReadError) -> AccessError {
    AccessError::Unavailable(error.to_string())
}
