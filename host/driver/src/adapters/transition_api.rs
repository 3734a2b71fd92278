//! The SLM trigger's access to the API server, by means of the cluster edge.

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt};
use scupper_engine::Uid;

use crate::manager::drain_settings::DrainSettingsSource;
use scupper_cluster::{Change, Cluster, FLAGS_ANNOTATION, KubernetesEvent, Severity, WriteError};
use scupper_config::read_request;
use scupper_triggers::{RequestedSettings, slm};

/// The cluster edge, as the SLM trigger uses it.
pub(crate) struct LifecycleTransitionApi {
    pub(crate) cluster: Cluster,
    pub(crate) node: String,
}

impl slm::TransitionApi for LifecycleTransitionApi {
    fn publish<'a>(
        &'a self,
        transition: &'a slm::Transition,
    ) -> BoxFuture<'a, Result<(), slm::TransitionApiError>> {
        async move {
            let published = self.cluster.publish_transition(&to_cluster(transition)).await;
            let published =
                published.map_err(|error| failed("publish lifecycletransition", &transition.name, error))?;
            tracing::debug!(transition = transition.name, ?published, "transition");
            Ok(())
        }
        .boxed()
    }

    fn withdraw<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), slm::TransitionApiError>> {
        async move {
            let deleted = self.cluster.delete_transition(name).await;
            deleted.map_err(|error| failed("delete lifecycletransition", name, error))
        }
        .boxed()
    }

    fn warn<'a>(
        &'a self,
        reason: &'a str,
        message: &'a str,
    ) -> BoxFuture<'a, Result<(), slm::TransitionApiError>> {
        async move {
            tracing::warn!(node = self.node, reason, "{message}");
            let event = KubernetesEvent {
                node: self.node.clone(),
                severity: Severity::Warning,
                reason: reason.to_owned(),
                action: "Drain".to_owned(),
                note: message.to_owned(),
                series: None,
            };
            let emitted = self.cluster.emit(&event).await;
            emitted.map_err(|error| failed("emit Event about node", &self.node, error))
        }
        .boxed()
    }
}

fn failed(step: &str, what: &str, error: WriteError) -> slm::TransitionApiError {
    slm::TransitionApiError {
        step: format!("{step} {what}"),
        source: Box::new(error),
    }
}

/// The LifecycleEvents of a node, as the SLM trigger's type.
pub(crate) fn events(
    cluster: &Cluster,
    node: &str,
    drain_settings: Arc<DrainSettingsSource>,
) -> impl Stream<Item = slm::LifecycleChange> + Send + Unpin + use<> {
    cluster.lifecycle_events(node).map(move |change| match change {
        Change::Listed(events) => {
            let events = events.into_iter().map(|found| event(found, &drain_settings));
            slm::LifecycleChange::Listed(events.collect())
        }
        Change::Applied(changed) => slm::LifecycleChange::Applied(event(changed, &drain_settings)),
        Change::Deleted(gone) => slm::LifecycleChange::Gone { uid: gone.uid.0 },
    })
}

/// The LifecycleTransitions of a driver, as the SLM trigger's type.
pub(crate) fn transitions(
    cluster: &Cluster,
    driver: &str,
) -> impl Stream<Item = slm::TransitionChange> + Send + Unpin + use<> {
    cluster.lifecycle_transitions(driver).map(|change| match change {
        Change::Listed(all) => slm::TransitionChange::Listed(all.into_iter().map(transition).collect()),
        Change::Applied(changed) => slm::TransitionChange::Applied(transition(changed)),
        Change::Deleted(gone) => slm::TransitionChange::Gone { name: gone.name },
    })
}

/// `drain_settings`: decide which flags of the event the driver obeys.
pub(crate) fn event(
    event: scupper_cluster::LifecycleEvent,
    drain_settings: &DrainSettingsSource,
) -> slm::LifecycleEvent {
    let flags = |text: String| {
        let wrong = |problem| format!("annotation {FLAGS_ANNOTATION}: {problem}");
        let flags = read_request(&text).map_err(wrong)?;
        let timeout = drain_settings.now().permit(&flags)?;
        Ok(RequestedSettings { timeout, flags })
    };
    slm::LifecycleEvent {
        uid: event.uid.0,
        name: event.name,
        created: event.created,
        deleting: event.deleting,
        transition: event.transition_name,
        node: event.binding_node,
        claim: slm::ClaimStatus::parse(&event.claim_status),
        driver: Some(event.driver).filter(|driver| !driver.is_empty()),
        sla: event.sla,
        flags: event.flags.map(flags),
    }
}

/// The reverse of [`event`].
pub(crate) fn event_to_cluster(event: &slm::LifecycleEvent) -> scupper_cluster::LifecycleEvent {
    scupper_cluster::LifecycleEvent {
        name: event.name.clone(),
        uid: Uid(event.uid.clone()),
        created: event.created,
        transition_name: event.transition.clone(),
        binding_node: event.node.clone(),
        claim_status: event.claim.as_str().to_owned(),
        driver: event.driver.clone().unwrap_or_default(),
        sla: event.sla,
        deleting: event.deleting,
        // The driver never writes flags.
        flags: None,
    }
}

pub(crate) fn transition(transition: scupper_cluster::LifecycleTransition) -> slm::Transition {
    slm::Transition {
        name: transition.name,
        driver: transition.driver,
        start: transition.start,
        end: transition.end,
        nodes: match transition.scope {
            scupper_cluster::TransitionNodes::AllNodes => slm::NodeSelection::AllNodes,
            scupper_cluster::TransitionNodes::Node(name) => slm::NodeSelection::Node(name),
            scupper_cluster::TransitionNodes::Selector => slm::NodeSelection::Selector,
        },
        sla: transition.sla,
    }
}

fn to_cluster(transition: &slm::Transition) -> scupper_cluster::LifecycleTransition {
    scupper_cluster::LifecycleTransition {
        name: transition.name.clone(),
        start: transition.start.clone(),
        end: transition.end.clone(),
        scope: match &transition.nodes {
            slm::NodeSelection::AllNodes => scupper_cluster::TransitionNodes::AllNodes,
            slm::NodeSelection::Node(name) => scupper_cluster::TransitionNodes::Node(name.clone()),
            slm::NodeSelection::Selector => scupper_cluster::TransitionNodes::Selector,
        },
        sla: transition.sla,
        driver: transition.driver.clone(),
    }
}
