//! The errors of calls to the API server.

use thiserror::Error;

/// The reason why a read failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadError {
    /// 404: there is no such object.
    #[error("there is no {what}")]
    NotFound {
        /// The object: `node worker-1`.
        what: String,
    },
    /// 401: the API server rejects the credentials.
    #[error("the API server does not accept our credentials: {message}; renew the kubeconfig or the token")]
    Unauthorized {
        /// The server's message.
        message: String,
    },
    /// 403: the user lacks the right.
    #[error("no right to {what}: {message}; grant it with a ClusterRole")]
    Forbidden {
        /// The operation: `list pods`.
        what: String,
        /// The server's message.
        message: String,
    },
    /// The cluster is a file, which has no objects of this kind.
    #[error("{message}")]
    NotSaved {
        /// What it lacks, and how to save it.
        message: String,
    },
    /// No answer, or a temporary error.
    #[error("the API server did not answer to `{what}`: {message}")]
    Unavailable {
        /// The operation.
        what: String,
        /// The message of the client or the server.
        message: String,
    },
    /// An unexpected or malformed answer.
    #[error("unexpected answer to `{what}`: {message}")]
    Unexpected {
        /// The operation.
        what: String,
        /// The problem with it.
        message: String,
    },
}

/// The reason why a write failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WriteError {
    /// 409: the object has changed or was replaced.
    #[error("{what}: it has changed meanwhile: {message}")]
    Conflict {
        /// The operation: `annotate pod ns/p`.
        what: String,
        /// The server's message.
        message: String,
    },
    /// 401, 403, 404, 405, 422: permanent, unless [`Self::is_forbidden`].
    #[error("{what}: {message}")]
    Rejected {
        /// The operation.
        what: String,
        /// The HTTP status.
        code: u16,
        /// The server's message.
        message: String,
    },
    /// No answer, or a temporary error. The write may have happened all the same.
    #[error("{what}: no answer from the API server: {message}")]
    Unavailable {
        /// The operation.
        what: String,
        /// The message of the client or the server.
        message: String,
    },
}

impl ReadError {
    /// True for 401 and 403, which also happen briefly after a restart, or while keys rotate.
    pub const fn is_forbidden(&self) -> bool {
        matches!(self, Self::Unauthorized { .. } | Self::Forbidden { .. })
    }
}

impl WriteError {
    /// True if the object does not exist.
    pub const fn is_not_found(&self) -> bool {
        matches!(self, Self::Rejected { code: 404, .. })
    }

    /// True for 401 and 403, which also happen briefly after a restart, or while keys rotate.
    pub const fn is_forbidden(&self) -> bool {
        matches!(self, Self::Rejected { code: 401 | 403, .. })
    }

    /// True for a rejection that is not for missing rights: no retry helps.
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::Rejected { .. }) && !self.is_forbidden()
    }

    /// True if a retry may help.
    pub const fn is_temporary(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }
}
