//! What requested the drain: the labels and annotations of the LifecycleEvent, and the DrainRequests.

use scupper_api::facts::{FactKind, FactQuery, FactType as _, Metadata, Selection};
use scupper_api::{DrainRequestFields, Entity};
use scupper_engine::Trigger;

use super::cache::{Answer, AskError, Facts};
use super::caller::FactCaller;
use crate::wit::bindings::scupper::drain::facts;
use crate::wit::to_wit_owned::entries;

impl Facts {
    /// The object that requested the drain. Only a LifecycleEvent has labels and annotations.
    pub(crate) async fn request(&self, caller: &FactCaller) -> Answer<facts::Request> {
        let mut reader = self.reader(caller).await;
        let metadata = if Trigger::of(&caller.trigger) == Trigger::LifecycleEvent && !reader.is_blank() {
            let selection = Selection::Named {
                name: caller.name.clone(),
                uid: caller.id.clone(),
            };
            let kind = FactKind::LifecycleEvent;
            let found = reader.ask(FactQuery { kind, selection }, |_| true).await?;
            let found = found.first().and_then(Metadata::of).cloned();
            found.ok_or_else(|| AskError::NotFound(format!("the LifecycleEvent {} is gone", caller.name)))?
        } else {
            Metadata::default()
        };
        Ok(facts::Request {
            trigger: caller.trigger.clone(),
            name: caller.name.clone(),
            labels: entries(metadata.labels),
            annotations: entries(metadata.annotations),
        })
    }

    /// The DrainRequests that the drain serves.
    pub(crate) async fn drain_requests(&self, caller: &FactCaller) -> Answer<Vec<facts::DrainRequest>> {
        let mut reader = self.reader(caller).await;
        if Trigger::of(&caller.trigger) != Trigger::DrainRequest {
            return Ok(Vec::new());
        }
        let (kind, selection) = (FactKind::DrainRequest, Selection::OfDrain(caller.id.clone()));
        let found = reader.ask(FactQuery { kind, selection }, |_| true).await?;
        Ok(found
            .iter()
            .filter_map(DrainRequestFields::of)
            .map(to_wit)
            .collect())
    }
}

fn to_wit(request: &DrainRequestFields) -> facts::DrainRequest {
    let request = request.clone();
    let entity = |entity: Entity| facts::Entity {
        type_: entity.kind,
        value: entity.value,
    };
    let names = request.pods_to_drain.into_iter().flat_map(|(namespace, names)| {
        let pod = move |name| facts::PodName {
            namespace: namespace.clone(),
            name,
        };
        names.into_iter().map(pod)
    });
    facts::DrainRequest {
        namespace: request.namespace,
        name: request.name,
        uid: request.uid,
        labels: entries(request.labels),
        annotations: entries(request.annotations),
        creation_timestamp: request.created.map(|created| created.as_millis()),
        check_name: request.check_name,
        error_codes: request.error_codes,
        recommended_action: request.recommended_action,
        health_event_id: request.health_event_id,
        reason: request.reason,
        entities_impacted: request.entities.into_iter().map(entity).collect(),
        metadata: entries(request.metadata),
        pods_to_drain: names.collect(),
    }
}
