//! The policies' access to the cluster in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use scupper_api::facts::{FactObject, FactQuery};
use scupper_engine::{Node, Pod, PodRef, Uid};

use super::memory_cluster::MemoryCluster;
use scupper_policy::{AccessError, ClusterAccess, FactError, HttpMock, HttpMockAnswer, PolicyEvent};

/// What policies get while the API server is away.
const OUTAGE: &str = "the API server does not answer";

/// The cluster, shared by the runner and the policies.
#[derive(Clone)]
pub(super) struct SharedCluster(Arc<Mutex<MemoryCluster>>);

impl SharedCluster {
    pub(super) fn new(cluster: MemoryCluster) -> Self {
        Self(Arc::new(Mutex::new(cluster)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, MemoryCluster> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn act<'a, T: Send + 'a>(
        &'a self,
        act: impl FnOnce(&mut MemoryCluster) -> Result<T, AccessError> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, AccessError>> {
        async move {
            let mut cluster = self.lock();
            if !cluster.is_reachable() {
                return Err(AccessError::Unavailable(OUTAGE.to_owned()));
            }
            act(&mut cluster)
        }
        .boxed()
    }
}

impl ClusterAccess for SharedCluster {
    fn ask<'a>(&'a self, query: &'a FactQuery) -> BoxFuture<'a, Result<Vec<FactObject>, FactError>> {
        let found = self.act(|cluster| Ok(cluster.answer(query)));
        async move {
            found
                .await
                .map_err(|_outage| FactError::Unavailable(OUTAGE.to_owned()))
        }
        .boxed()
    }

    fn cluster_uid(&self) -> BoxFuture<'_, Result<Uid, AccessError>> {
        self.act(|_cluster| Ok(Uid::new("uid-of-cluster")))
    }

    fn node<'a>(&'a self, _node: &'a str) -> BoxFuture<'a, Result<Node, AccessError>> {
        self.act(|cluster| Ok(cluster.model.seen_node()))
    }

    fn pods<'a>(&'a self, _node: &'a str) -> BoxFuture<'a, Result<Vec<Pod>, AccessError>> {
        self.act(|cluster| Ok(cluster.model.pods().cloned().collect()))
    }

    fn annotate_node<'a>(
        &'a self,
        _node: &'a str,
        key: &'a str,
        value: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), AccessError>> {
        self.act(move |cluster| {
            let _version = cluster
                .model
                .change_node(|node| annotate(&mut node.annotations, key, value));
            Ok(())
        })
    }

    fn annotate_pod<'a>(
        &'a self,
        pod: &'a PodRef,
        key: &'a str,
        value: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), AccessError>> {
        self.act(move |cluster| {
            let change = |found: &mut Pod| {
                if found.id.uid != pod.uid {
                    return Err(AccessError::NotFound(format!("pod {pod}")));
                }
                annotate(&mut found.annotations, key, value);
                Ok(())
            };
            match cluster.model.change_pod(&pod.to_string(), None, change)? {
                true => Ok(()),
                false => Err(AccessError::NotFound(format!("pod {pod}"))),
            }
        })
    }

    fn secret<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        _key: &'a str,
    ) -> BoxFuture<'a, Result<Vec<u8>, AccessError>> {
        self.act(move |_| Err(AccessError::NotFound(format!("secret {namespace}/{name}"))))
    }

    fn emit<'a>(&'a self, event: &'a PolicyEvent<'a>) -> BoxFuture<'a, Result<(), AccessError>> {
        self.act(move |cluster| {
            let about = event.pod.map_or_else(|| event.node.to_owned(), PodRef::to_string);
            cluster
                .emitted
                .push(format!("{} of {about}: {}", event.reason, event.note));
            Ok(())
        })
    }
}

impl HttpMock for SharedCluster {
    fn answer(&self, method: &str, url: &str) -> HttpMockAnswer {
        self.lock().answers.take(method, url)
    }
}

fn annotate(annotations: &mut BTreeMap<String, String>, key: &str, value: Option<&str>) {
    match value {
        Some(value) => annotations.insert(key.to_owned(), value.to_owned()),
        None => annotations.remove(key),
    };
}
