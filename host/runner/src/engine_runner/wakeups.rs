//! What the loop of a drain waits for.

use futures::StreamExt as _;
use futures::stream::BoxStream;
use scupper_engine::{Answer, CommandId, Event};
use scupper_policy::KnownPeers;
use scupper_pre_flight::Finding;
use scupper_recording::ShadowPlan;

use super::estimate::EstimateResult;

/// The next item, if there is a stream.
pub(super) async fn next_of<T>(stream: &mut Option<BoxStream<'static, T>>) -> Option<T> {
    match stream {
        Some(stream) => stream.next().await,
        None => std::future::pending().await,
    }
}

/// A panic in one of our tasks is a bug, and its answer would never come: it must not look like a wait.
pub(super) fn answered(joined: Result<(CommandId, Answer), tokio::task::JoinError>) -> Event {
    match joined {
        Ok((id, answer)) => Event::Answer(id, answer),
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Why the loop woke up.
#[expect(
    clippy::large_enum_variant,
    reason = "made and taken apart at once, never stored"
)]
pub(super) enum WakeupReason {
    Event(Event),
    /// A step has asked about pods on other nodes.
    Learned(String, Vec<KnownPeers>),
    /// The first plan has been examined.
    Found(Vec<Finding>),
    /// What earlier drains have shown is known, or when this one will probably end; `None`: neither will be.
    Estimated(Option<EstimateResult>),
    /// A shadow policy has planned; `None`: no further one will.
    ShadowPlanned(Option<ShadowPlan>),
    /// The removal of a taint has ended.
    TaintRemoved,
    OrdersChanged,
    Timeout,
    /// No further orders can come.
    Abandoned,
}
