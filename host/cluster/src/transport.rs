//! One request, one answer: with a limit of time, and without any retry.
//!
//! Whoever asks decides whether to ask again. The engine does so for everything it orders; a client that repeated
//! requests by itself would multiply that.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, header};
use http_body_util::BodyExt as _;
use kube::core::Status;
use serde::de::DeserializeOwned;

use super::{ReadError, WriteError};

/// Longest text of a server that we pass on.
const MAX_WORDS: usize = 2048;

/// What the server answered.
#[derive(Debug)]
pub(super) struct Reply {
    /// The HTTP status.
    pub(super) code: u16,
    /// `Retry-After` in seconds.
    pub(super) retry_after: Option<Duration>,
    /// The body.
    pub(super) body: Bytes,
}

/// Why there is no object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fault {
    /// No answer.
    Unreachable(String),
    /// An answer that is not a success: the HTTP status and what the server says.
    Refused(u16, Box<Status>),
    /// A success whose body we do not understand.
    Malformed(String),
}

/// Sends a request and reads the whole answer.
pub(super) async fn send(
    client: &kube::Client,
    request: Request<Vec<u8>>,
    limit: Duration,
) -> Result<Reply, Fault> {
    let whole = async {
        let response = client.send(request.map(kube::client::Body::from)).await?;
        let code = response.status().as_u16();
        let retry_after = response.headers().get(header::RETRY_AFTER);
        let retry_after = retry_after
            .and_then(|value| value.to_str().ok()?.parse().ok())
            .map(Duration::from_secs);
        let body = response.into_body().collect().await?.to_bytes();
        Ok::<_, kube::Error>(Reply {
            code,
            retry_after,
            body,
        })
    };
    match tokio::time::timeout(limit, whole).await {
        Ok(Ok(reply)) => Ok(reply),
        Ok(Err(kube::Error::Service(error))) => Err(Fault::Unreachable(words(error.as_ref()))),
        Ok(Err(error)) => Err(Fault::Unreachable(words(&error))),
        Err(_) => Err(Fault::Unreachable(format!(
            "no answer within {} s",
            limit.as_secs_f32()
        ))),
    }
}

/// Sends a request and reads the object that answers it.
pub(super) async fn call<T: DeserializeOwned>(
    client: &kube::Client,
    request: Request<Vec<u8>>,
    limit: Duration,
) -> Result<T, Fault> {
    send(client, request, limit).await?.object()
}

impl Reply {
    /// Whether it is a success.
    pub(super) const fn is_success(&self) -> bool {
        matches!(self.code, 200..300)
    }

    /// The `Status` that a failure carries, or one made from whatever else came.
    pub(super) fn status(&self) -> Box<Status> {
        if let Ok(status) = serde_json::from_slice::<Status>(&self.body)
            && !(status.message.is_empty() && status.reason.is_empty())
        {
            return Box::new(status);
        }
        let text = String::from_utf8_lossy(&self.body);
        let message = match text.trim() {
            "" => format!("HTTP {}", self.code),
            text => format!("HTTP {}: {}", self.code, cut(text, MAX_WORDS)),
        };
        Box::new(Status {
            code: self.code,
            message,
            ..Status::default()
        })
    }

    /// The object it carries.
    pub(super) fn object<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        if !self.is_success() {
            return Err(Fault::Refused(self.code, self.status()));
        }
        serde_json::from_slice(&self.body).map_err(|error| Fault::Malformed(error.to_string()))
    }
}

impl Fault {
    /// 404 by an API server that names the missing object: a proxy's or a wrong path's 404 does not count.
    pub(super) fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused(404, status) if names_an_object(status))
    }

    /// 422 to a patch that names another UID than the object's: the object that was meant is gone, and another one has
    /// its name.
    pub(super) fn is_of_another_uid(&self) -> bool {
        matches!(self, Self::Refused(422, status) if status.message.contains("metadata.uid"))
    }

    /// As the reader of `what` sees it.
    pub(super) fn read(self, what: &str) -> ReadError {
        let not_found = self.is_not_found();
        let what = what.to_owned();
        match self {
            Self::Refused(..) if not_found => ReadError::NotFound { what },
            Self::Refused(401, status) => ReadError::Unauthorized {
                message: status.message,
            },
            Self::Refused(403, status) => ReadError::Forbidden {
                what,
                message: status.message,
            },
            Self::Refused(429 | 500.., status) => ReadError::Unavailable {
                what,
                message: status.message,
            },
            Self::Refused(_, status) => ReadError::Unexpected {
                what,
                message: status.message,
            },
            Self::Unreachable(message) => ReadError::Unavailable { what, message },
            Self::Malformed(message) => ReadError::Unexpected { what, message },
        }
    }

    /// As the writer of `what` sees it.
    pub(super) fn write(self, what: &str) -> WriteError {
        let what = what.to_owned();
        match self {
            Self::Refused(409, status) => WriteError::Conflict {
                what,
                message: status.message,
            },
            Self::Refused(429 | 500.., status) => WriteError::Unavailable {
                what,
                message: status.message,
            },
            Self::Refused(code, status) => WriteError::Rejected {
                what,
                code,
                message: status.message,
            },
            Self::Unreachable(message) | Self::Malformed(message) => {
                WriteError::Unavailable { what, message }
            }
        }
    }
}

/// Whether a `Status` with code 404 speaks of one object (or its namespace) that is not there.
pub(super) fn names_an_object(status: &Status) -> bool {
    status.reason == "NotFound"
        && status
            .details
            .as_ref()
            .is_some_and(|details| !details.name.is_empty())
}

/// An error and what caused it, in one line.
pub(super) fn words(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

/// At most `limit` bytes of a text, at a character's end.
pub(super) fn cut(text: &str, limit: usize) -> &str {
    text.get(..text.floor_char_boundary(limit)).unwrap_or(text)
}

/// A name as it may stand in a URL. Kubernetes' names pass unchanged; what a user mistypes changes no other part.
pub(super) fn escaped(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    // Dots alone would climb the path.
    if matches!(text.as_str(), "." | "..") {
        text.replace('.', "%2E")
    } else {
        text
    }
}
