//! The API server operations that the trigger needs. Another edge implements them; the trigger only awaits their
//! completion.

use scupper_api::LifecycleTransition;
use std::error::Error;

use futures::future::BoxFuture;

/// Writes the API objects that users see.
pub trait TransitionApi: Send + Sync {
    /// Creates or updates the LifecycleTransition. The trigger first withdraws one whose node selection differs,
    /// because that field is immutable.
    fn publish<'a>(
        &'a self,
        transition: &'a LifecycleTransition,
    ) -> BoxFuture<'a, Result<(), TransitionApiError>>;

    /// Deletes the LifecycleTransition of this name. A missing one is no error.
    fn withdraw<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), TransitionApiError>>;

    /// Emits a Kubernetes Event of type Warning on the node.
    fn warn<'a>(&'a self, reason: &'a str, message: &'a str)
    -> BoxFuture<'a, Result<(), TransitionApiError>>;
}

/// An operation that failed on the API server.
#[derive(Debug, thiserror::Error)]
#[error("{step}")]
pub struct TransitionApiError {
    /// The operation and its object.
    pub step: String,
    /// The cause.
    #[source]
    pub source: Box<dyn Error + Send + Sync>,
}
