//! Enables the service of this node if a drain of it disabled it, and no others.

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
    let is_marked = |service: &&Service| !service.is_enabled() && mark.is_of_node(service.reason());
    let mapped = settings.mapping.find(&call.node, &all);
    match mapped.as_ref() {
        Ok(own) if is_marked(own) && !own.is_up() => {
            let progress = format!(
                "waiting for nova-compute on {} to be up before it is enabled",
                own.host
            );
            return Ok(Outcome::pending(progress).again_after(settings.poll).into());
        }
        Ok(own) if is_marked(own) => put(call, own, cloud)?,
        Ok(own) if !own.is_enabled() => node_events::stays_disabled(&own.host, own.reason()),
        Ok(_) => {}
        Err(words) => log::debug!("the node's host is not checked: {words}"),
    }
    // Another node may have this host by now.
    let is_mapped = |service: &&Service| mapped.as_ref().is_ok_and(|own| own.host == service.host);
    for left in all.iter().filter(is_marked).filter(|service| !is_mapped(service)) {
        node_events::not_mapped(&left.host, &call.node.name);
    }
    Ok(Outcome::Done)
}

pub(super) fn put(call: &Call, service: &Service, cloud: &mut Cloud<'_>) -> Result<(), StepError> {
    let answer = cloud
        .ask(Method::Put, &ask::service(&service.id), Some(&ask::enable()))
        .map_err(|error| error.during(&format!("enabling nova-compute on {}", service.host)))?;
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
