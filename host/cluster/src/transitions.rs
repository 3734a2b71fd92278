//! Follows the lifecycle objects on the API server, and publishes transitions.

use futures::stream::{BoxStream, StreamExt as _};
use scupper_api::{Change, LifecycleEvent, LifecycleTransition};
use serde_json::json;

use super::lifecycle_wire::{VERSION, WireEvent, WireTransition, mutable, to_create};
use super::listing::Source;
use super::sieve::Sieve;
use super::transport::escaped;
use super::watch::watch_through;
use super::wire::Object as _;
use super::write::Merge;
use super::{Cluster, WriteError};

/// Maximum number of tries if another writer creates or deletes the transition meanwhile.
const TRIES: usize = 3;

/// The result of publishing a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// It did not exist and was created.
    Created,
    /// Its mutable fields were changed.
    Updated,
    /// It already was as wanted.
    Unchanged,
    /// Its immutable node selection differed, so it was deleted and created.
    Recreated,
}

/// Keeps the LifecycleEvents of a node. A server whose CRD cannot select by this field sends those of all nodes.
struct NodeEvents(String);

impl Sieve<WireEvent> for NodeEvents {
    fn keeps(&mut self, event: &mut WireEvent) -> bool {
        let is_kept = event.is_for(&self.0);
        event.trim();
        is_kept
    }
}

/// Keeps the LifecycleTransitions of a driver.
struct DriverTransitions(String);

impl Sieve<WireTransition> for DriverTransitions {
    fn page_size(&self) -> Option<u32> {
        None
    }

    fn keeps(&mut self, transition: &mut WireTransition) -> bool {
        transition.is_of(&self.0)
    }
}

impl Cluster {
    /// Streams the LifecycleEvents bound to the node. Never ends.
    pub fn lifecycle_events(&self, node: &str) -> BoxStream<'static, Change<LifecycleEvent>> {
        self.events_of_node(node, false)
    }

    /// The same for a person, who may have no right to them: then there are none.
    pub fn lifecycle_events_if_allowed(&self, node: &str) -> BoxStream<'static, Change<LifecycleEvent>> {
        self.events_of_node(node, true)
    }

    fn events_of_node(&self, node: &str, optional: bool) -> BoxStream<'static, Change<LifecycleEvent>> {
        let selector = format!("fieldSelector=spec.bindingNode={}", escaped(node));
        let source = Source {
            path: self.lifecycle_path("lifecycleevents", None),
            selector: Some(selector),
            optional,
        };
        watch_through(self, source, NodeEvents(node.to_owned()), WireEvent::into_event).boxed()
    }

    /// Streams the LifecycleTransitions of a driver. Never ends.
    pub fn lifecycle_transitions(&self, driver: &str) -> BoxStream<'static, Change<LifecycleTransition>> {
        let source = Source::all(self.lifecycle_path("lifecycletransitions", None));
        let sieve = DriverTransitions(driver.to_owned());
        watch_through(self, source, sieve, WireTransition::into_transition).boxed()
    }

    /// Creates or updates a transition. One of the same name that belongs to another driver is left unchanged.
    pub async fn publish_transition(&self, wanted: &LifecycleTransition) -> Result<Published, WriteError> {
        let what = format!("publish lifecycletransition {}", wanted.name);
        let mut recreated = false;
        let mut tries = 0;
        loop {
            tries += 1;
            match self.publish_once(wanted, &mut recreated, &what).await {
                Err(WriteError::Conflict { .. }) if tries < TRIES => {}
                Err(error) if error.is_not_found() && tries < TRIES => {}
                other => return other,
            }
        }
    }

    async fn publish_once(
        &self,
        wanted: &LifecycleTransition,
        recreated: &mut bool,
        what: &str,
    ) -> Result<Published, WriteError> {
        let path = self.lifecycle_path("lifecycletransitions", Some(&wanted.name));
        let (uid, found) = match self.get::<WireTransition>(&path).await {
            Ok(found) => (found.meta().uid.clone(), found.into_transition()),
            Err(fault) if fault.is_not_found() => {
                self.create_transition(wanted, what).await?;
                return Ok(if *recreated {
                    Published::Recreated
                } else {
                    Published::Created
                });
            }
            Err(fault) => return Err(fault.write(what)),
        };
        if found == *wanted {
            return Ok(Published::Unchanged);
        }
        if found.driver != wanted.driver {
            let message = format!(
                "it belongs to the driver {}; choose another name for this one",
                found.driver
            );
            return Err(WriteError::Rejected {
                what: what.to_owned(),
                code: 409,
                message,
            });
        }
        if found.nodes != wanted.nodes {
            self.remove_transition(&wanted.name, Some(&uid)).await?;
            *recreated = true;
            self.create_transition(wanted, what).await?;
            return Ok(Published::Recreated);
        }
        let patch = json!({"spec": mutable(wanted)});
        let written = self.patch::<WireTransition>(&path, Merge::Json, &patch).await;
        written
            .map(|_| Published::Updated)
            .map_err(|fault| fault.write(what))
    }

    async fn create_transition(&self, wanted: &LifecycleTransition, what: &str) -> Result<(), WriteError> {
        let Some(object) = to_create(wanted, self.lifecycle_group()) else {
            let message = "its nodes are given by a selector, which scupper does not publish".to_owned();
            return Err(WriteError::Rejected {
                what: what.to_owned(),
                code: 422,
                message,
            });
        };
        let path = self.lifecycle_path("lifecycletransitions", None);
        let created = self.create::<WireTransition>(&path, &object).await;
        created.map(|_| ()).map_err(|fault| fault.write(what))
    }

    /// Deletes a transition; a missing one is no error.
    pub async fn delete_transition(&self, name: &str) -> Result<(), WriteError> {
        self.remove_transition(name, None).await
    }

    async fn remove_transition(&self, name: &str, uid: Option<&str>) -> Result<(), WriteError> {
        let path = self.lifecycle_path("lifecycletransitions", Some(name));
        self.delete_object(&path, uid, &format!("lifecycletransition {name}"))
            .await
    }

    pub(super) fn lifecycle_path(&self, resource: &str, name: Option<&str>) -> String {
        let name = name.map(|name| format!("/{}", escaped(name))).unwrap_or_default();
        format!("/apis/{}/{VERSION}/{resource}{name}", self.lifecycle_group())
    }
}
