//! Enables the services that a drain of this node disabled, and no others.

use scupper_sdk::http::Method;
use scupper_sdk::mark::Mark;
use scupper_sdk::{Call, Outcome, log};

use super::node_events;
use super::observe::compute_services;
use crate::cloud::Cloud;
use crate::nova::{Service, ask};
use crate::settings::Settings;
use crate::step_error::StepError;

/// After the uncordon: waits until nova-compute is up, so that the first new server does not fail.
pub(crate) fn enable(call: &Call, settings: &Settings, cloud: &mut Cloud<'_>) -> Result<Outcome, StepError> {
    let all = compute_services(cloud, None)?;
    let mark = Mark::of_drain(call, settings.cluster())?;
    let ours = of_node(&mark, &all);
    if let Some(down) = ours.iter().find(|service| !service.is_up()) {
        let progress = format!(
            "waiting for nova-compute on {} to be up before it is enabled",
            down.host
        );
        return Ok(Outcome::pending(progress).again_after(settings.poll).into());
    }
    for service in &ours {
        put(call, service, cloud)?;
    }
    match settings.mapping.find(&call.node, &all) {
        Ok(host) if !host.is_enabled() && ours.is_empty() => {
            node_events::stays_disabled(&host.host, host.reason());
        }
        Ok(_) => {}
        // The mark identifies the service, even if the node's Nova host has another name by now.
        Err(words) => log::debug!("the node's host is not checked: {words}"),
    }
    Ok(Outcome::Done)
}

/// The services with the mark of this node, even if the node's Nova host has another name by now.
pub(super) fn ours(mark: &Mark, cloud: &mut Cloud<'_>) -> Result<Vec<Service>, StepError> {
    let all = compute_services(cloud, None)?;
    Ok(of_node(mark, &all).into_iter().cloned().collect())
}

fn of_node<'s>(mark: &Mark, all: &'s [Service]) -> Vec<&'s Service> {
    let is_ours = |service: &&Service| !service.is_enabled() && mark.is_of_node(service.reason());
    all.iter().filter(is_ours).collect()
}

pub(super) fn put(call: &Call, service: &Service, cloud: &mut Cloud<'_>) -> Result<(), StepError> {
    let answer = cloud.ask(Method::Put, &ask::service(&service.id), Some(&ask::enable()))?;
    if answer.status == 404 {
        log::info!("nova-compute on {} no longer exists", service.host);
        return Ok(());
    }
    if answer.is_success() {
        log::info!("enabled nova-compute on {}", service.host);
        node_events::enabled(&service.host, &call.drain.name);
        return Ok(());
    }
    Err(StepError::retry(format!(
        "enabling nova-compute on {}: {} {}",
        service.host, answer.status, answer.message
    )))
}
