//! What the door asks of the API server. Another edge does it; the door only waits for the end of it.

use std::error::Error;

use futures::future::BoxFuture;

use super::Transition;

/// Writes the API objects that people see.
pub trait TransitionApi: Send + Sync {
    /// Makes the LifecycleTransition be there and read like this. The door withdraws one whose node selection
    /// differs first, because that cannot be changed.
    fn publish<'a>(&'a self, transition: &'a Transition) -> BoxFuture<'a, Result<(), TransitionApiError>>;

    /// Removes the LifecycleTransition of this name. One that is not there is no error.
    fn withdraw<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), TransitionApiError>>;

    /// Tells people: a Kubernetes Event of type Warning on the node.
    fn warn<'a>(&'a self, reason: &'a str, message: &'a str)
    -> BoxFuture<'a, Result<(), TransitionApiError>>;
}

/// The API server did not do it.
#[derive(Debug, thiserror::Error)]
#[error("{step}")]
pub struct TransitionApiError {
    /// What was being done, and to what.
    pub step: String,
    /// Why it failed.
    #[source]
    pub source: Box<dyn Error + Send + Sync>,
}
