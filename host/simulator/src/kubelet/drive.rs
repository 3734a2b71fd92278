//! Drives a claimed event: the node's condition decides the next call, and the call's response decides the next condition.

use kube::api::DynamicObject;
use scupper_contract::slm::slm_plugin_client::SlmPluginClient;
use scupper_contract::slm::{EndLifecycleTransitionRequest, StartLifecycleTransitionRequest};
use tokio::time::{Instant, timeout_at};
use tonic::Request;

use super::event::{self, hold, transition_name};
use super::finish::{self, End};
use super::handle::Inner;
use super::objects::Transition;
use super::options::Mode;
use super::plugins::Registered;
use super::record::{Answer, Call, Entry, Kind, Outcome};

/// Continues a claimed event for one pass.
pub(super) async fn handle_claimed(inner: &Inner, name: &str) -> Outcome {
    let event = match inner.objects.update(name, hold).await {
        Ok(event) => event,
        Err(error) => return Outcome::Unchanged(format!("the finalizer: {error}")),
    };
    if event::claim(&event) != "Claimed" {
        return Outcome::Unchanged("it is no longer claimed".to_owned());
    }
    if is_expired(inner, &event) {
        return expire(inner, event).await;
    }
    let transition = match inner.objects.transition(transition_name(&event)).await {
        Ok(transition) => transition,
        Err(why) => return Outcome::Unchanged(why),
    };
    let reason = match inner.objects.reason().await {
        Ok(reason) => reason,
        Err(error) => return Outcome::Unchanged(format!("the node: {error}")),
    };
    if reason == transition.end {
        return finish::finish(inner, event, End::Succeeded).await;
    }
    let kind = if reason == transition.start {
        Kind::End
    } else {
        Kind::Start
    };
    let limit = Instant::now() + inner.options.timing.call;
    match step(inner, &event, &transition, kind, limit).await {
        Ok(()) => Outcome::Done,
        Err(why) => {
            tracing::warn!(event = name, why, "the event fails");
            let driver = event::driver(&event).to_owned();
            finish::finish(inner, event, End::Failed(&driver)).await
        }
    }
}

fn is_expired(inner: &Inner, event: &DynamicObject) -> bool {
    event::deadline(event).is_some_and(|deadline| (inner.options.now)() >= deadline)
}

/// By the proposal the kubelet calls the driver; with any response the event has expired.
async fn expire(inner: &Inner, event: DynamicObject) -> Outcome {
    if inner.options.mode == Mode::Proposal
        && let Ok(transition) = inner.objects.transition(transition_name(&event)).await
    {
        let limit = Instant::now() + inner.options.timing.call;
        let reported = step(inner, &event, &transition, Kind::End, limit).await;
        if let Err(why) = reported {
            tracing::debug!(why, "the driver of an expired event");
        }
    }
    finish::finish(inner, event, End::Expired).await
}

/// A call and the following patch of the node. An error ends the event.
async fn step(
    inner: &Inner,
    event: &DynamicObject,
    transition: &Transition,
    kind: Kind,
    limit: Instant,
) -> Result<(), String> {
    let answer = call(inner, event, transition, kind, limit).await?;
    if !answer.error.is_empty() {
        return Err(answer.error);
    }
    if answer.node.is_empty() || answer.condition.is_empty() {
        return Ok(());
    }
    let now = (inner.options.now)();
    let patch = inner
        .objects
        .patch(&answer.node, &answer.condition, &transition.name, now);
    let patched = match timeout_at(limit, patch).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(format!("the node's condition: {error}")),
        Err(_) => Err("the node's condition was not written in time".to_owned()),
    };
    inner.record.add(Entry::Patched {
        reason: answer.condition,
        error: patched.clone().err(),
    });
    patched
}

async fn call(
    inner: &Inner,
    event: &DynamicObject,
    transition: &Transition,
    kind: Kind,
    limit: Instant,
) -> Result<Answer, String> {
    let driver = event::driver(event);
    let plugin = inner.plugins.newest(driver);
    let mut call = Call {
        kind,
        driver: driver.to_owned(),
        endpoint: plugin.as_ref().ok().map(|plugin| plugin.endpoint.clone()),
        transition: transition.name.clone(),
        event: event::name(event).to_owned(),
        sla_expired: kind == Kind::End && is_expired(inner, event),
        answer: Err(String::new()),
    };
    inner.record.add(Entry::Calling {
        kind,
        event: call.event.clone(),
    });
    call.answer = match plugin {
        Err(why) => Err(why),
        Ok(plugin) => match timeout_at(limit, send(inner, &plugin, transition, &call, limit)).await {
            Ok(Ok(answer)) => Ok(answer),
            // Client and server both measure the timeout; the result is the same.
            Ok(Err(why)) if Instant::now() < limit => Err(why),
            Ok(Err(_)) | Err(_) => Err("DeadlineExceeded: no response in time".to_owned()),
        },
    };
    inner.record.add(Entry::Called(call.clone()));
    call.answer
}

async fn send(
    inner: &Inner,
    plugin: &Registered,
    transition: &Transition,
    call: &Call,
    limit: Instant,
) -> Result<Answer, String> {
    let failed = |status: tonic::Status| format!("{:?}: {}", status.code(), status.message());
    let way = plugin.channel.call().await.map_err(failed)?;
    let mut client = SlmPluginClient::new(way.channel.clone());
    let (transition_name, event_name) = (transition.name.clone(), call.event.clone());
    let (start, end) = (transition.start.clone(), transition.end.clone());
    let node_name = inner.options.node.clone();
    let answered = match call.kind {
        Kind::Start => {
            let request = StartLifecycleTransitionRequest {
                transition_name,
                event_name,
                node_name,
                start,
                end,
            };
            client.start_lifecycle_transition(limited(request, limit)).await
        }
        Kind::End => {
            let sla_expired = call.sla_expired;
            let request = EndLifecycleTransitionRequest {
                transition_name,
                event_name,
                node_name,
                start,
                end,
                sla_expired,
            };
            client.end_lifecycle_transition(limited(request, limit)).await
        }
    };
    let answer = answered.map_err(failed)?.into_inner();
    Ok(Answer {
        condition: answer.lifecycle_condition,
        node: answer.node_name,
        error: answer.error,
    })
}

/// Sends the deadline to the driver.
fn limited<T>(request: T, limit: Instant) -> Request<T> {
    let mut request = Request::new(request);
    request.set_timeout(limit.saturating_duration_since(Instant::now()));
    request
}
