//! LifecycleEvents for self-claim: read one by one, and written only in the version that was read.
//!
//! Every write names the object's UID and version, so that the slower of two writers gets a conflict.

use scupper_api::{ClaimStatus, LifecycleEvent, LifecycleTransition, VersionedEvent};
use scupper_engine::Time;
use serde_json::{Map, Value, json};

use super::lifecycle_wire::{WireEvent, WireTransition};
use super::node::WireNode;
use super::transport::{Fault, escaped};
use super::wire::{Object as _, seconds};
use super::write::Merge;
use super::{Cluster, ReadError, WriteError};

/// The type of the node condition whose reason is the state of a transition.
pub const TRANSITION_CONDITION: &str = "LifecycleTransition";

/// The status fields to write. `None` leaves a field unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LifecycleEventStatus {
    /// `status.claimStatus`
    pub claim: ClaimStatus,
    /// `status.driver`
    pub driver: Option<String>,
    /// `status.sla`, written in whole seconds.
    pub sla: Option<Time>,
}

impl Cluster {
    /// Reads one LifecycleEvent with the version that a write must name.
    pub async fn stored_event(&self, name: &str) -> Result<Option<VersionedEvent>, ReadError> {
        let path = self.lifecycle_path("lifecycleevents", Some(name));
        let found = self.find(&path, &format!("lifecycleevent {name}")).await?;
        Ok(found.map(stored))
    }

    /// Reads one LifecycleTransition by name.
    pub async fn lifecycle_transition(&self, name: &str) -> Result<Option<LifecycleTransition>, ReadError> {
        let path = self.lifecycle_path("lifecycletransitions", Some(name));
        let found = self.find(&path, &format!("lifecycletransition {name}")).await?;
        Ok(found.map(WireTransition::into_transition))
    }

    /// Sets the finalizers of an event.
    pub async fn set_event_finalizers<F: Sync>(
        &self,
        seen: &VersionedEvent<F>,
        finalizers: &[String],
    ) -> Result<VersionedEvent, WriteError> {
        let path = self.lifecycle_path("lifecycleevents", Some(&seen.event.name));
        let more = json!({ "finalizers": finalizers });
        let what = format!("set the finalizers of lifecycleevent {}", seen.event.name);
        self.write_event(&path, seen, more, Map::new(), &what).await
    }

    /// Writes fields of an event's status.
    pub async fn set_event_status<F: Sync>(
        &self,
        seen: &VersionedEvent<F>,
        status: &LifecycleEventStatus,
    ) -> Result<VersionedEvent, WriteError> {
        let path = self.lifecycle_path("lifecycleevents", Some(&seen.event.name));
        let mut fields = Map::new();
        fields.insert("claimStatus".to_owned(), json!(status.claim.as_str()));
        if let Some(driver) = &status.driver {
            fields.insert("driver".to_owned(), json!(driver));
        }
        if let Some(sla) = status.sla {
            fields.insert("sla".to_owned(), json!(seconds(sla)));
        }
        let body = Map::from_iter([("status".to_owned(), Value::Object(fields))]);
        let what = format!("set the status of lifecycleevent {}", seen.event.name);
        self.write_event(&format!("{path}/status"), seen, json!({}), body, &what)
            .await
    }

    async fn write_event<F: Sync>(
        &self,
        path: &str,
        seen: &VersionedEvent<F>,
        mut metadata: Value,
        mut body: Map<String, Value>,
        what: &str,
    ) -> Result<VersionedEvent, WriteError> {
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("uid".to_owned(), json!(seen.event.uid));
            metadata.insert("resourceVersion".to_owned(), json!(seen.version));
        }
        body.insert("metadata".to_owned(), metadata);
        let patched = self
            .patch::<WireEvent>(path, Merge::Json, &Value::Object(body))
            .await;
        patched.map(stored).map_err(|fault| changed(fault, what))
    }

    /// Deletes an event that still has this UID. A missing one is no error.
    pub async fn delete_event<F: Sync>(&self, seen: &LifecycleEvent<F>) -> Result<(), WriteError> {
        let path = self.lifecycle_path("lifecycleevents", Some(&seen.name));
        let what = format!("lifecycleevent {}", seen.name);
        self.delete_object(&path, Some(&seen.uid), &what).await
    }

    /// Writes the reason of the node's condition. As with a kubelet, both timestamps become the present.
    pub async fn set_transition_reason(
        &self,
        node: &str,
        reason: &str,
        message: &str,
    ) -> Result<(), WriteError> {
        let now = seconds(self.now());
        let patch = json!({"status": {"conditions": [{
            "type": TRANSITION_CONDITION,
            "status": "True",
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }]}});
        let path = format!("/api/v1/nodes/{}/status", escaped(node));
        let written = self.patch::<WireNode>(&path, Merge::Strategic, &patch).await;
        let what = format!("set condition {TRANSITION_CONDITION} of node {node}");
        let node = written.map_err(|fault| fault.write(&what))?;
        self.to_node(node, &mut None);
        Ok(())
    }
}

fn stored(event: WireEvent) -> VersionedEvent {
    let meta = event.meta();
    VersionedEvent {
        version: meta.resource_version.clone(),
        finalizers: meta.finalizers.clone(),
        event: event.into_event(),
    }
}

/// Reports an object with the same name but another UID as a conflict.
fn changed(fault: Fault, what: &str) -> WriteError {
    if fault.is_of_another_uid() {
        let what = what.to_owned();
        let message = "there is another one of this name now".to_owned();
        return WriteError::Conflict { what, message };
    }
    fault.write(what)
}
