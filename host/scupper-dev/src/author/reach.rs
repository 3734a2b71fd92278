//! The cluster in memory as policies reach it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use scupper_engine::{Node, Pod, PodRef};

use super::world::World;
use scupper_policy::{AccessError, ClusterAccess, PolicyEvent, StandIn, StandInAnswer};

/// The cluster, shared by the one who plays and the policies.
#[derive(Clone)]
pub(super) struct Shared(Arc<Mutex<World>>);

impl Shared {
    pub(super) fn new(world: World) -> Self {
        Self(Arc::new(Mutex::new(world)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask<'a, T: Send + 'a>(
        &'a self,
        act: impl FnOnce(&mut World) -> Result<T, AccessError> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, AccessError>> {
        async move {
            let mut world = self.lock();
            if !world.is_reachable() {
                return Err(AccessError::Unavailable(
                    "the API server does not answer".to_owned(),
                ));
            }
            act(&mut world)
        }
        .boxed()
    }
}

impl ClusterAccess for Shared {
    fn node<'a>(&'a self, _node: &'a str) -> BoxFuture<'a, Result<Node, AccessError>> {
        self.ask(|world| Ok(world.seen_node()))
    }

    fn pods<'a>(&'a self, _node: &'a str) -> BoxFuture<'a, Result<Vec<Pod>, AccessError>> {
        self.ask(|world| Ok(world.pods().cloned().collect()))
    }

    fn annotate_node<'a>(
        &'a self,
        _node: &'a str,
        key: &'a str,
        value: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), AccessError>> {
        self.ask(move |world| {
            let _version = world.change_node(|node| annotate(&mut node.annotations, key, value));
            Ok(())
        })
    }

    fn annotate_pod<'a>(
        &'a self,
        pod: &'a PodRef,
        key: &'a str,
        value: Option<&'a str>,
    ) -> BoxFuture<'a, Result<(), AccessError>> {
        self.ask(move |world| {
            let change = |found: &mut Pod| {
                if found.id.uid != pod.uid {
                    return Err(AccessError::NotFound(format!("pod {pod}")));
                }
                annotate(&mut found.annotations, key, value);
                Ok(())
            };
            match world.change_pod(&pod.to_string(), None, change)? {
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
        self.ask(move |_| Err(AccessError::NotFound(format!("secret {namespace}/{name}"))))
    }

    fn emit<'a>(&'a self, event: &'a PolicyEvent<'a>) -> BoxFuture<'a, Result<(), AccessError>> {
        self.ask(move |world| {
            let about = event.pod.map_or_else(|| event.node.to_owned(), PodRef::to_string);
            world
                .emitted
                .push(format!("{} of {about}: {}", event.reason, event.note));
            Ok(())
        })
    }
}

impl StandIn for Shared {
    fn answer(&self, method: &str, url: &str) -> StandInAnswer {
        self.lock().answers.take(method, url)
    }
}

fn annotate(annotations: &mut std::collections::BTreeMap<String, String>, key: &str, value: Option<&str>) {
    match value {
        Some(value) => annotations.insert(key.to_owned(), value.to_owned()),
        None => annotations.remove(key),
    };
}
