//! Claiming a pending event.

use jiff::Timestamp;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::event::{self, hold, set_status, transition_name};
use super::finish::{self, End};
use super::handle::Inner;
use super::objects::Transition;
use super::record::{Entry, Outcome};

/// Claims a pending event in one pass; the next pass drives it.
pub(super) async fn claim(inner: &Inner, event: &DynamicObject) -> Outcome {
    let transition = match inner.objects.transition(transition_name(event)).await {
        Ok(transition) => transition,
        Err(why) => return Outcome::Unchanged(why),
    };
    let plugin = match inner.plugins.newest(&transition.driver) {
        Ok(plugin) => plugin,
        Err(why) => return Outcome::Unchanged(why),
    };
    if let Err(why) = plugin.channel.ready(inner.options.timing.readiness).await {
        tracing::warn!(event = event::name(event), why, "the driver is not ready");
        return finish::finish(inner, event.clone(), End::Failed(&transition.driver)).await;
    }
    let name = event::name(event);
    if let Err(error) = inner.objects.update(name, hold).await {
        return Outcome::Unchanged(format!("the finalizer: {error}"));
    }
    let now = (inner.options.now)();
    let deadline = match deadline(&transition, now) {
        Ok(deadline) => deadline,
        Err(why) => return Outcome::Unchanged(why),
    };
    write(inner, name, &transition, deadline).await
}

fn deadline(transition: &Transition, now: Timestamp) -> Result<Option<String>, String> {
    let Some(sla) = transition.sla else {
        return Ok(None);
    };
    let deadline = now
        .checked_add(sla)
        .map_err(|error| format!("spec.sla: {error}"))?;
    Ok(Some(event::seconds(deadline)))
}

async fn write(inner: &Inner, name: &str, transition: &Transition, deadline: Option<String>) -> Outcome {
    let mut fields: Vec<(&str, Value)> = vec![
        ("claimStatus", json!("Claimed")),
        (
            "driver",
            inner.objects.driver_value(&transition.driver, Some(transition)),
        ),
    ];
    fields.extend(deadline.iter().map(|deadline| ("sla", json!(deadline))));
    let written = inner
        .objects
        .update_status(name, |event| {
            let free = event::claim(event) == "Pending";
            set_status(event, &fields);
            free
        })
        .await;
    match written {
        Ok(Some(event)) => {
            inner.record.add(Entry::Claimed {
                event: name.to_owned(),
                uid: event::uid(&event),
                driver: transition.driver.clone(),
                sla: deadline,
            });
            Outcome::Done
        }
        Ok(None) => Outcome::Unchanged("another component claimed it".to_owned()),
        Err(error) => Outcome::Unchanged(format!("the claim: {error}")),
    }
}
