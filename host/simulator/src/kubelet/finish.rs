//! Ends an event: writes the terminal status, then removes the finalizer, then the object.

use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::event::{self, release, set_status};
use super::handle::Inner;
use super::objects::{NOT_FOUND, code};
use super::options::Mode;
use super::record::{Entry, Outcome};

/// How an event ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum End<'a> {
    Succeeded,
    /// With the driver that failed it.
    Failed(&'a str),
    Expired,
}

/// Ends an event. Writes the status once, based on the state that this pass has read: if the event has changed since,
/// it stays as it is and is driven again.
pub(super) async fn finish(inner: &Inner, mut event: DynamicObject, end: End<'_>) -> Outcome {
    let status = match end {
        End::Succeeded => "Succeeded",
        End::Failed(_) => "Failed",
        End::Expired if inner.options.mode == Mode::Proposal => "SLAExpired",
        End::Expired => "SlaExpired",
    };
    let mut fields: Vec<(&str, Value)> = vec![("claimStatus", json!(status))];
    if let End::Failed(driver) = end
        && event::driver(&event) != driver
    {
        fields.push(("driver", inner.objects.driver_value(driver, None)));
    }
    set_status(&mut event, &fields);
    let written = inner.objects.replace_status(&event).await;
    let name = event::name(&event);
    inner.record.add(Entry::Finished {
        event: name.to_owned(),
        uid: event::uid(&event),
        status: status.to_owned(),
        error: written.as_ref().err().map(ToString::to_string),
    });
    match written {
        Ok(_) => remove(inner, name).await,
        Err(error) => Outcome::Unchanged(format!("the status {status}: {error}")),
    }
}

/// Removes the finalizer of an event that has ended, and deletes the event.
pub(super) async fn remove(inner: &Inner, name: &str) -> Outcome {
    match inner.objects.update(name, release).await {
        Ok(_) => {}
        Err(error) if code(&error) == NOT_FOUND => return Outcome::Done,
        Err(error) => return Outcome::Unchanged(format!("the finalizer: {error}")),
    }
    match inner.objects.delete(name).await {
        Ok(()) => Outcome::Done,
        Err(error) if code(&error) == NOT_FOUND => Outcome::Done,
        Err(error) => Outcome::Unchanged(format!("the removal: {error}")),
    }
}
