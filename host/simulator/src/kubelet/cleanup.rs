//! Removes node-scoped transitions: all of them when a kubelet starts, a driver's once it has been gone for a while.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use super::handle::Inner;
use super::objects::{NOT_FOUND, code};
use super::record::Entry;

/// Attempts at one removal.
const ATTEMPTS: usize = 100;
/// The longest pause between attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(5 * 60);
/// The jitter of a pause, in percent.
const JITTER_PERCENT: usize = 20;

/// Every driver's transitions for this node.
pub(super) async fn at_start(inner: Arc<Inner>) {
    let selector = format!("spec.nodeName={}", inner.options.node);
    remove(&inner, &selector).await;
}

/// Removes a driver's transitions for this node after the delay, unless dropped before.
pub(super) fn after_driver(inner: Arc<Inner>, driver: String) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        sleep(inner.options.timing.cleanup_delay).await;
        let selector = format!("spec.nodeName={},spec.driver={driver}", inner.options.node);
        remove(&inner, &selector).await;
    }))
}

async fn remove(inner: &Inner, selector: &str) {
    let mut pause = inner.options.timing.cleanup_retry;
    for _ in 0..ATTEMPTS {
        let removed = inner.objects.delete_transitions(selector).await;
        let error = removed.as_ref().err().map(ToString::to_string);
        inner.record.add(Entry::CleanedUp {
            selector: selector.to_owned(),
            error,
        });
        match removed {
            Ok(()) => return,
            Err(error) if code(&error) == NOT_FOUND => return,
            Err(_) => {}
        }
        let percent = u32::try_from(inner.random.below(JITTER_PERCENT)).unwrap_or_default();
        sleep(pause + pause * percent / 100).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
