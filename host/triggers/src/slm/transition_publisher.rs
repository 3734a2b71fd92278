//! Keeps the driver's transitions published, one write at a time, outside the task that answers the kubelet.

use std::sync::Arc;

use futures::{Stream, StreamExt};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::TransitionApi;
use super::lifecycle::TransitionChange;
use super::self_claim::ClaimInput;
use super::transition_sync::{TransitionAction, TransitionSync};

/// The trigger's input to the publisher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PublisherInput {
    /// How often the kubelet has registered the driver.
    pub(super) registrations: u64,
    /// An event of ours is under way.
    pub(super) busy: bool,
}

/// Runs until the trigger drops its input, or the watch of transitions ends. The claim task learns of each change that the
/// watch shows: an event may wait for its transition.
pub(super) async fn publish_transitions(
    mut transitions: TransitionSync,
    transition_api: Arc<dyn TransitionApi>,
    mut changes: impl Stream<Item = TransitionChange> + Unpin,
    mut publisher_input: watch::Receiver<PublisherInput>,
    claim_task: mpsc::UnboundedSender<ClaimInput>,
) {
    let mut registrations = 0;
    // Each refusal of the API server is reported once.
    let mut refused = String::new();
    loop {
        let PublisherInput {
            registrations: now_registered,
            busy,
        } = *publisher_input.borrow_and_update();
        if now_registered != registrations {
            registrations = now_registered;
            transitions.handle_registered();
        }
        let now = Instant::now();
        if let Some(action) = transitions.due(now, busy) {
            apply(&mut transitions, &transition_api, &action, &mut refused).await;
            continue;
        }
        let next = transitions.next(now);
        tokio::select! {
            change = changes.next() => match change {
                Some(change) => {
                    let names = names(&change);
                    transitions.handle_change(change, Instant::now());
                    for name in names {
                        // Where the kubelet claims events, the task may have ended.
                        claim_task.send(ClaimInput::TransitionChanged(name)).ok();
                    }
                }
                None => return,
            },
            changed = publisher_input.changed() => if changed.is_err() {
                return;
            },
            () = at(next) => {}
        }
    }
}

/// The transitions that changed, or may have.
fn names(change: &TransitionChange) -> Vec<String> {
    match change {
        TransitionChange::Listed(all) => all.iter().map(|transition| transition.name.clone()).collect(),
        TransitionChange::Applied(transition) => vec![transition.name.clone()],
        TransitionChange::Deleted(name) => vec![name.clone()],
    }
}

async fn apply(
    transitions: &mut TransitionSync,
    transition_api: &Arc<dyn TransitionApi>,
    action: &TransitionAction,
    refused: &mut String,
) {
    let (done, verb, name) = match action {
        TransitionAction::Publish(transition) => (
            transition_api.publish(transition).await,
            "publish",
            &transition.name,
        ),
        TransitionAction::Withdraw(name) => (transition_api.withdraw(name).await, "withdraw", name),
    };
    match done {
        Ok(()) => {
            tracing::info!(transition = name, verb, "LifecycleTransition");
            transitions.handle_done(action, Instant::now());
        }
        Err(error) => {
            let source = error.source.to_string();
            tracing::warn!(transition = name, %error, source, "LifecycleTransition could not be written; trying again");
            transitions.handle_failed(action, Instant::now());
            let message = format!("{error}: {source}");
            if *refused != message {
                refused.clone_from(&message);
                if let Err(error) = transition_api.warn("TransitionNotPublished", &message).await {
                    tracing::warn!(%error, "a warning could not be emitted as an Event");
                }
            }
        }
    }
}

/// Emits warnings, in order.
pub(super) async fn emit_warnings(
    transition_api: Arc<dyn TransitionApi>,
    mut warnings: mpsc::Receiver<(&'static str, String)>,
) {
    while let Some((reason, message)) = warnings.recv().await {
        if let Err(error) = transition_api.warn(reason, &message).await {
            let source = error.source.to_string();
            tracing::warn!(reason, message, %error, source, "a warning could not be emitted as an Event");
        }
    }
}

async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
