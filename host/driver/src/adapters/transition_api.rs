//! The SLM trigger's access to the API server, by means of the cluster edge.

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt};
use scupper_api::LifecycleTransition;

use crate::manager::drain_settings::DrainSettingsSource;
use scupper_cluster::{Cluster, FLAGS_ANNOTATION, KubernetesEvent, Severity, WriteError};
use scupper_config::read_request;
use scupper_engine::Trigger;
use scupper_triggers::RequestedSettings;
use scupper_triggers::slm::{self, EventFlags};

/// The cluster edge, as the SLM trigger uses it.
pub(crate) struct LifecycleTransitionApi {
    pub(crate) cluster: Cluster,
    pub(crate) node: String,
}

impl slm::TransitionApi for LifecycleTransitionApi {
    fn publish<'a>(
        &'a self,
        transition: &'a LifecycleTransition,
    ) -> BoxFuture<'a, Result<(), slm::TransitionApiError>> {
        async move {
            let published = self.cluster.publish_transition(transition).await;
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
            let event = KubernetesEvent::of_node(&self.node, Severity::Warning, reason, message);
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

/// The LifecycleEvents of a node, with parsed drain settings.
pub(crate) fn events(
    cluster: &Cluster,
    node: &str,
    drain_settings: Arc<DrainSettingsSource>,
) -> impl Stream<Item = slm::LifecycleChange> + Send + Unpin + use<> {
    let changes = cluster.lifecycle_events(node);
    changes.map(move |change| {
        change.map(
            |event| event.map_flags(|text| flags(&text, &drain_settings)),
            |gone| gone.uid,
        )
    })
}

/// The LifecycleTransitions of a driver.
pub(crate) fn transitions(
    cluster: &Cluster,
    driver: &str,
) -> impl Stream<Item = slm::TransitionChange> + Send + Unpin + use<> {
    let changes = cluster.lifecycle_transitions(driver);
    changes.map(|change| change.map(|transition| transition, |gone| gone.name))
}

/// The drain settings of an event, as far as the driver obeys them.
pub(crate) fn flags(text: &str, drain_settings: &DrainSettingsSource) -> EventFlags {
    let wrong = |problem| format!("annotation {FLAGS_ANNOTATION}: {problem}");
    let flags = read_request(text).map_err(wrong)?;
    let timeout = drain_settings.now(Trigger::LifecycleEvent).permit(&flags)?;
    Ok(RequestedSettings { timeout, flags })
}
