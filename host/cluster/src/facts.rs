//! What policies may ask about. A drain without such a policy reads none of it.

use std::collections::BTreeMap;

use scupper_engine::{Budget, Time};

use super::budget::WireBudget;
use super::listing::Source;
use super::transport::escaped;
use super::wire::{Meta, MetaOnly, Object, bounded};
use super::{Cluster, ReadError};

/// The metadata of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectMeta {
    /// `metadata.name`
    pub name: String,
    /// `metadata.uid`
    pub uid: String,
    /// `metadata.labels`
    pub labels: BTreeMap<String, String>,
    /// `metadata.annotations`, without the copy of `kubectl apply`.
    pub annotations: BTreeMap<String, String>,
    /// `metadata.deletionTimestamp`
    pub deletion: Option<Time>,
}

/// A disruption budget with the count that drains do not need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetCounts {
    /// The budget.
    pub budget: Budget,
    /// `status.expectedPods`
    pub expected_pods: i32,
}

impl Cluster {
    /// Reads all disruption budgets.
    pub async fn budgets(&self) -> Result<Vec<BudgetCounts>, ReadError> {
        let source = Source::all("/apis/policy/v1/poddisruptionbudgets".to_owned());
        let counts = |budget: WireBudget| BudgetCounts {
            expected_pods: budget.expected_pods(),
            budget: budget.into_engine(),
        };
        self.read_reduced(&source, "list poddisruptionbudgets", counts)
            .await
    }

    /// Reads the metadata of a LifecycleEvent; `None` if it does not exist.
    pub async fn lifecycle_event_meta(&self, name: &str) -> Result<Option<ObjectMeta>, ReadError> {
        let path = self.lifecycle_path("lifecycleevents", Some(name));
        let found = self
            .find::<MetaOnly>(&path, &format!("lifecycleevent {name}"))
            .await?;
        Ok(found.map(ObjectMeta::of))
    }

    /// Reads a namespace; `None` if it does not exist.
    pub async fn namespace(&self, name: &str) -> Result<Option<ObjectMeta>, ReadError> {
        let path = format!("/api/v1/namespaces/{}", escaped(name));
        let found = self.find::<MetaOnly>(&path, &format!("namespace {name}")).await?;
        Ok(found.map(ObjectMeta::of))
    }

    /// Reads all namespaces.
    pub async fn namespaces(&self) -> Result<Vec<ObjectMeta>, ReadError> {
        let source = Source::all("/api/v1/namespaces".to_owned());
        self.read_reduced(&source, "list namespaces", ObjectMeta::of::<MetaOnly>)
            .await
    }
}

impl ObjectMeta {
    /// Of a decoded object.
    pub(super) fn of<T: Object>(object: T) -> Self {
        let meta: &Meta = object.meta();
        Self {
            name: meta.name.clone(),
            uid: meta.uid.clone(),
            labels: bounded(meta.labels.clone()),
            annotations: bounded(meta.annotations.clone()),
            deletion: meta.deletion_timestamp,
        }
    }
}
