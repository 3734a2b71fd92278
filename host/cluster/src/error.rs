//! Why a call to the API server did not do what it was made for.

use thiserror::Error;

/// Why something could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadError {
    /// 404: there is no such object.
    #[error("there is no {what}")]
    NotFound {
        /// What was asked for: `node worker-1`.
        what: String,
    },
    /// 401: the API server does not know us.
    #[error("the API server does not accept our credentials: {message}; renew the kubeconfig or the token")]
    Unauthorized {
        /// The server's words.
        message: String,
    },
    /// 403: we may not.
    #[error("no right to {what}: {message}; grant it with a ClusterRole")]
    Forbidden {
        /// What was tried: `list pods`.
        what: String,
        /// The server's words.
        message: String,
    },
    /// No answer, or one that says to try again.
    #[error("the API server did not answer to `{what}`: {message}")]
    Unavailable {
        /// What was tried.
        what: String,
        /// What the client or the server says.
        message: String,
    },
    /// An answer that we do not understand or expect.
    #[error("unexpected answer to `{what}`: {message}")]
    Unexpected {
        /// What was tried.
        what: String,
        /// What is wrong with it.
        message: String,
    },
}

/// Why something could not be written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WriteError {
    /// 409: the object is another one now, or has changed.
    #[error("{what}: it has changed meanwhile: {message}")]
    Conflict {
        /// What was tried: `annotate pod ns/p`.
        what: String,
        /// The server's words.
        message: String,
    },
    /// 401, 403, 404, 405, 422: it will never work, unless [`Self::is_forbidden`].
    #[error("{what}: {message}")]
    Rejected {
        /// What was tried.
        what: String,
        /// The HTTP status.
        code: u16,
        /// The server's words.
        message: String,
    },
    /// No answer, or one that says to try again. It may have happened all the same.
    #[error("{what}: no answer from the API server: {message}")]
    Unavailable {
        /// What was tried.
        what: String,
        /// What the client or the server says.
        message: String,
    },
}

impl ReadError {
    /// 401, 403: the API server answers so for a moment also after a restart, or while keys rotate.
    pub const fn is_forbidden(&self) -> bool {
        matches!(self, Self::Unauthorized { .. } | Self::Forbidden { .. })
    }
}

impl WriteError {
    /// The object does not exist (any more).
    pub const fn is_not_found(&self) -> bool {
        matches!(self, Self::Rejected { code: 404, .. })
    }

    /// 401, 403: the API server answers so for a moment also after a restart, or while keys rotate.
    pub const fn is_forbidden(&self) -> bool {
        matches!(self, Self::Rejected { code: 401 | 403, .. })
    }

    /// Trying the same again may help.
    pub const fn is_temporary(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }
}
