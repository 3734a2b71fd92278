//! Self-claim's access to the API server, by means of the cluster edge.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use scupper_api::ClaimStatus;

use crate::adapters::transition_api::flags;
use crate::manager::drain_settings::DrainSettingsSource;
use scupper_cluster::{Cluster, LifecycleEventStatus, ReadError, TRANSITION_CONDITION, WriteError};
use scupper_triggers::slm::{self, ClaimError, EventSnapshot, VersionedEvent, has_finalizer};

/// The cluster edge, as self-claim uses it.
pub(crate) struct LifecycleEventClaimApi {
    pub(crate) cluster: Cluster,
    pub(crate) node: String,
    pub(crate) drain_settings: Arc<DrainSettingsSource>,
}

impl slm::ClaimApi for LifecycleEventClaimApi {
    fn read<'a>(&'a self, event: &'a str) -> BoxFuture<'a, Result<EventSnapshot, ClaimError>> {
        self.see(event).boxed()
    }

    fn write<'a>(
        &'a self,
        seen: &'a VersionedEvent,
        change: &'a slm::EventUpdate,
    ) -> BoxFuture<'a, Result<VersionedEvent, ClaimError>> {
        async move {
            let written = match change {
                slm::EventUpdate::Finalizers(finalizers) => {
                    self.cluster.set_event_finalizers(seen, finalizers).await
                }
                slm::EventUpdate::Claim { driver, sla } => {
                    let status = LifecycleEventStatus {
                        claim: ClaimStatus::Claimed,
                        driver: Some(driver.clone()),
                        sla: *sla,
                    };
                    self.cluster.set_event_status(seen, &status).await
                }
                slm::EventUpdate::Finish { status, driver } => {
                    let status = LifecycleEventStatus {
                        claim: status.clone(),
                        driver: driver.clone(),
                        sla: None,
                    };
                    self.cluster.set_event_status(seen, &status).await
                }
            };
            written.map(|stored| self.claimable(stored)).map_err(unwritten)
        }
        .boxed()
    }

    fn delete<'a>(&'a self, seen: &'a VersionedEvent) -> BoxFuture<'a, Result<(), ClaimError>> {
        async move { self.cluster.delete_event(&seen.event).await.map_err(unwritten) }.boxed()
    }

    fn set_condition<'a>(
        &'a self,
        condition: &'a slm::TransitionCondition,
    ) -> BoxFuture<'a, Result<(), ClaimError>> {
        async move {
            let slm::TransitionCondition { reason, message } = condition;
            let written = self.cluster.set_transition_reason(&self.node, reason, message);
            written.await.map_err(unwritten)
        }
        .boxed()
    }
}

impl LifecycleEventClaimApi {
    fn claimable(&self, stored: scupper_api::VersionedEvent) -> VersionedEvent {
        stored.map_flags(|text| flags(&text, &self.drain_settings))
    }

    async fn see(&self, name: &str) -> Result<EventSnapshot, ClaimError> {
        let Some(stored) = self.cluster.stored_event(name).await.map_err(unread)? else {
            return Ok(EventSnapshot::default());
        };
        let event = self.claimable(stored);
        // One that has failed and is still held may have left its mark in the condition.
        let is_over = event.event.claim.is_terminal();
        if is_over && (event.event.claim == ClaimStatus::Succeeded || !has_finalizer(&event)) {
            let event = Some(event);
            return Ok(EventSnapshot {
                event,
                ..EventSnapshot::default()
            });
        }
        let transition = self.cluster.lifecycle_transition(&event.event.transition);
        let (transition, node) = futures::join!(transition, self.cluster.node(&self.node));
        let node = node.map_err(unread)?;
        let node = node.ok_or_else(|| ClaimError::Unavailable(format!("there is no node {}", self.node)))?;
        let mut conditions = node.conditions.into_iter();
        let condition = conditions.find(|condition| condition.kind == TRANSITION_CONDITION);
        Ok(EventSnapshot {
            event: Some(event),
            transition: transition.map_err(unread)?,
            condition: condition.map_or_else(slm::TransitionCondition::default, |condition| {
                slm::TransitionCondition {
                    reason: condition.reason,
                    message: condition.message,
                }
            }),
        })
    }
}

/// Every failed read is worth another attempt.
fn unread(error: ReadError) -> ClaimError {
    ClaimError::Unavailable(error.to_string())
}

fn unwritten(error: WriteError) -> ClaimError {
    let text = error.to_string();
    match error {
        WriteError::Conflict { .. } => ClaimError::Conflict(text),
        WriteError::Rejected { .. } if error.is_forbidden() => ClaimError::Forbidden(text),
        WriteError::Rejected { .. } => ClaimError::Refused(text),
        WriteError::Unavailable { .. } => ClaimError::Unavailable(text),
    }
}
