//! Creates LifecycleEvents: lists the available transitions, creates a request, and reads the reports of its end.

use scupper_api::{LifecycleEvent, LifecycleTransition};
use scupper_engine::Time;
use serde::Deserialize;
use serde_json::json;

use super::lifecycle_wire::{VERSION, WireEvent, WireTransition};
use super::listing::Source;
use super::transport::escaped;
use super::wire::{moment, nullable};
use super::{Cluster, FLAGS_ANNOTATION, ReadError, WriteError};

/// A LifecycleEvent to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLifecycleEvent {
    /// The prefix of its name; the server generates the rest.
    pub begins: String,
    /// `spec.transitionName`
    pub transition: String,
    /// `spec.bindingNode`
    pub node: String,
    /// The annotation [`FLAGS_ANNOTATION`].
    pub flags: Option<String>,
}

/// A Kubernetes Event as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedEvent {
    /// `reason`
    pub reason: String,
    /// `note`
    pub text: String,
    /// `action`: what was done.
    pub action: String,
    /// Its type is `Warning`.
    pub warning: bool,
    /// `eventTime`
    pub at: Option<Time>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct WireObservedEvent {
    #[serde(deserialize_with = "nullable")]
    reason: String,
    #[serde(deserialize_with = "nullable")]
    note: String,
    #[serde(deserialize_with = "nullable")]
    action: String,
    #[serde(rename = "type", deserialize_with = "nullable")]
    kind: String,
    #[serde(rename = "eventTime", deserialize_with = "moment")]
    at: Option<Time>,
}

impl Cluster {
    /// Lists the transitions that a driver offers.
    pub async fn transitions_of(&self, driver: &str) -> Result<Vec<LifecycleTransition>, ReadError> {
        let source = self.all("lifecycletransitions");
        let listed = self
            .read_list::<WireTransition>(&source, "list lifecycletransitions")
            .await?;
        let transitions = listed.into_iter().map(WireTransition::into_transition);
        Ok(transitions
            .filter(|transition| transition.driver == driver)
            .collect())
    }

    /// Lists the LifecycleEvents bound to the node.
    pub async fn events_of(&self, node: &str) -> Result<Vec<LifecycleEvent>, ReadError> {
        // Not every server can select them by node.
        let mut events = self.all_events().await?;
        events.retain(|event| event.node == node);
        Ok(events)
    }

    /// Lists all LifecycleEvents.
    pub async fn all_events(&self) -> Result<Vec<LifecycleEvent>, ReadError> {
        let source = self.all("lifecycleevents");
        let listed = self
            .read_list::<WireEvent>(&source, "list lifecycleevents")
            .await?;
        Ok(listed.into_iter().map(WireEvent::into_event).collect())
    }

    /// Creates a LifecycleEvent.
    pub async fn create_lifecycle_event(
        &self,
        new: &NewLifecycleEvent,
    ) -> Result<LifecycleEvent, WriteError> {
        let mut event = json!({
            "apiVersion": format!("{}/{VERSION}", self.lifecycle_group()),
            "kind": "LifecycleEvent",
            "metadata": {"generateName": new.begins},
            "spec": {"transitionName": new.transition, "bindingNode": new.node},
        });
        if let (Some(flags), Some(meta)) = (
            &new.flags,
            event.get_mut("metadata").and_then(|meta| meta.as_object_mut()),
        ) {
            meta.insert("annotations".to_owned(), json!({ FLAGS_ANNOTATION: flags }));
        }
        let path = self.lifecycle_path("lifecycleevents", None);
        let created = self.create::<WireEvent>(&path, &event).await;
        let what = format!("create a lifecycleevent for node {}", new.node);
        Ok(created.map_err(|fault| fault.write(&what))?.into_event())
    }

    /// Lists the Kubernetes Events about a node.
    pub async fn events_about_node(&self, node: &str) -> Result<Vec<ObservedEvent>, ReadError> {
        let source = Source {
            path: "/apis/events.k8s.io/v1/namespaces/default/events".to_owned(),
            selector: Some(format!(
                "fieldSelector=regarding.kind=Node,regarding.name={}",
                escaped(node)
            )),
            optional: false,
        };
        let listed = self
            .read_list::<WireObservedEvent>(&source, "list events")
            .await?;
        let note = |wire: WireObservedEvent| ObservedEvent {
            reason: wire.reason,
            text: wire.note,
            action: wire.action,
            warning: wire.kind == "Warning",
            at: wire.at,
        };
        Ok(listed.into_iter().map(note).collect())
    }

    fn all(&self, resource: &str) -> Source {
        Source::all(self.lifecycle_path(resource, None))
    }
}
