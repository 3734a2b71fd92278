//! One request, one answer: with a time limit, and without retries.
//!
//! The caller decides whether to retry. The engine does so for all its tasks; a client that repeated requests by itself
//! would multiply that.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Request, header};
use http_body_util::BodyExt as _;
use kube::core::Status;
use scupper_common::error::chain;
use serde::de::DeserializeOwned;

use super::{ReadError, WriteError};

/// The `reason` of a refusal: the cluster is a file, which has no objects of the kind.
pub const NOT_SAVED: &str = "NotSaved";

/// The most bytes of one answer: enough for any object that an API server stores, and for a page of usual ones.
pub(super) const LARGEST_ANSWER: usize = 16 << 20;

/// Maximum length of a server's text that is passed on.
const MAX_WORDS: usize = 2048;

/// The server's answer.
#[derive(Debug)]
pub(super) struct Reply {
    /// The HTTP status.
    pub(super) code: u16,
    /// `Retry-After` in seconds.
    pub(super) retry_after: Option<Duration>,
    /// The body.
    pub(super) body: Bytes,
}

/// The reason why there is no object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fault {
    /// No answer.
    Unreachable(String),
    /// A refusal: the HTTP status and the server's message.
    Refused(u16, Box<Status>),
    /// A success with an unreadable body.
    Malformed(String),
}

/// Sends a request and reads the whole answer.
pub(super) async fn send(
    client: &kube::Client,
    request: Request<Vec<u8>>,
    limit: Duration,
) -> Result<Reply, Fault> {
    let reply = send_bounded(client, request, limit).await?;
    reply.ok_or_else(too_large)
}

/// The same; `None` if the answer exceeds [`LARGEST_ANSWER`].
pub(super) async fn send_bounded(
    client: &kube::Client,
    request: Request<Vec<u8>>,
    limit: Duration,
) -> Result<Option<Reply>, Fault> {
    let whole = async {
        let response = client.send(request.map(kube::client::Body::from)).await?;
        let code = response.status().as_u16();
        let retry_after = response.headers().get(header::RETRY_AFTER);
        let retry_after = retry_after
            .and_then(|value| value.to_str().ok()?.parse().ok())
            .map(Duration::from_secs);
        let body = collect(response.into_body()).await?;
        Ok::<_, kube::Error>(body.map(|body| Reply {
            code,
            retry_after,
            body,
        }))
    };
    match tokio::time::timeout(limit, whole).await {
        Ok(Ok(reply)) => Ok(reply),
        Ok(Err(kube::Error::Service(error))) => Err(Fault::Unreachable(chain(error.as_ref()))),
        Ok(Err(error)) => Err(Fault::Unreachable(chain(&error))),
        Err(_) => Err(Fault::Unreachable(format!(
            "no answer within {} s",
            limit.as_secs_f32()
        ))),
    }
}

async fn collect(mut body: kube::client::Body) -> Result<Option<Bytes>, kube::Error> {
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if bytes.len() + data.len() > LARGEST_ANSWER {
            return Ok(None);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(Some(bytes.freeze()))
}

pub(super) fn too_large() -> Fault {
    Fault::Malformed(format!("it has more than {} MiB", LARGEST_ANSWER >> 20))
}

/// Sends a request and parses the object in the answer.
pub(super) async fn call<T: DeserializeOwned>(
    client: &kube::Client,
    request: Request<Vec<u8>>,
    limit: Duration,
) -> Result<T, Fault> {
    send(client, request, limit).await?.object()
}

impl Reply {
    /// True if it is a success.
    pub(super) const fn is_success(&self) -> bool {
        matches!(self.code, 200..300)
    }

    /// The `Status` in a failure, or one made from any other body.
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

    /// Parses the object in the answer.
    pub(super) fn object<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        if !self.is_success() {
            return Err(Fault::Refused(self.code, self.status()));
        }
        serde_json::from_slice(&self.body).map_err(|error| Fault::Malformed(error.to_string()))
    }
}

impl Fault {
    /// True for a 404 from an API server that names the missing object: that of a proxy or a wrong path does not count.
    pub(super) fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused(404, status) if names_an_object(status))
    }

    /// True for a 422 to a patch with another UID than the object's: the intended object is gone, and another one has
    /// its name.
    pub(super) fn is_of_another_uid(&self) -> bool {
        matches!(self, Self::Refused(422, status) if status.message.contains("metadata.uid"))
    }

    /// Converts to the error of reading `what`.
    pub(super) fn read(self, what: &str) -> ReadError {
        let not_found = self.is_not_found();
        let what = what.to_owned();
        match self {
            Self::Refused(..) if not_found => ReadError::NotFound { what },
            Self::Refused(401, status) => ReadError::Unauthorized {
                message: status.message,
            },
            Self::Refused(403, status) if status.reason == NOT_SAVED => ReadError::NotSaved {
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

    /// Converts to the error of writing `what`.
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

/// True if a `Status` with code 404 names one missing object, or its namespace.
pub(super) fn names_an_object(status: &Status) -> bool {
    status.reason == "NotFound"
        && status
            .details
            .as_ref()
            .is_some_and(|details| !details.name.is_empty())
}

/// Cuts a text to at most `limit` bytes, at a character boundary.
pub(super) fn cut(text: &str, limit: usize) -> &str {
    text.get(..text.floor_char_boundary(limit)).unwrap_or(text)
}

/// Escapes a name for a URL. Kubernetes' names pass unchanged; a mistyped one cannot change other parts.
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
