//! Why a step cannot continue, and whether a retry can help.

use std::time::Duration;

use scupper_sdk::http::{Error, Response};
use scupper_sdk::mark::UnknownCluster;

/// The longest message of a server that is shown.
const SHOWN: usize = 300;

/// Why a step cannot continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StepError {
    /// It may pass: retry.
    Retry {
        message: String,
        after: Option<Duration>,
    },
    /// It stays until someone changes something.
    Fatal(String),
    /// Keystone rejects the credential, or there is none.
    Rejected(String),
    /// The credential lacks a permission.
    Forbidden(String),
    /// The step has reached its limit of requests or of time.
    NextStep,
}

impl StepError {
    pub(crate) fn retry(message: impl Into<String>) -> Self {
        Self::Retry {
            message: message.into(),
            after: None,
        }
    }

    pub(crate) fn fatal(message: impl Into<String>) -> Self {
        Self::Fatal(message.into())
    }

    /// Adds what the request was for.
    #[must_use]
    pub(crate) fn during(self, what: &str) -> Self {
        match self {
            Self::Retry { message, after } => Self::Retry {
                message: format!("{what}: {message}"),
                after,
            },
            Self::Fatal(message) => Self::Fatal(format!("{what}: {message}")),
            Self::Forbidden(message) => Self::Forbidden(format!("{what}: {message}")),
            other => other,
        }
    }

    /// For people.
    pub(crate) fn message(self) -> String {
        match self {
            Self::Retry { message, .. }
            | Self::Fatal(message)
            | Self::Rejected(message)
            | Self::Forbidden(message) => message,
            Self::NextStep => "the step has reached its limit of requests".to_owned(),
        }
    }

    /// For a request without a response.
    pub(crate) fn of_error(what: &str, error: &Error) -> Self {
        let message = format!("{what}: {error}");
        match error {
            Error::TooMany(_) => Self::NextStep,
            Error::Unreachable(_) | Error::Broken(_) | Error::Timeout(_) => Self::retry(message),
            Error::NoSecret(_) => Self::Rejected(message),
            Error::NotGranted(_) | Error::Invalid(_) | Error::TooLarge(_) => Self::Fatal(message),
        }
    }

    /// For a response that means the same for every request. The caller handles the others.
    pub(crate) fn of_status(what: &str, response: &Response) -> Option<Self> {
        let message = || format!("{what}: {} {}", response.status, server_message(response));
        match response.status {
            200..300 | 400 | 401 | 404 | 409 => None,
            413 | 429 | 500 | 502 | 503 | 504 => Some(Self::Retry {
                message: message(),
                after: retry_after(response),
            }),
            403 => Some(Self::Forbidden(format!(
                "{}; this needs a credential with the role admin",
                message()
            ))),
            300..400 => Some(Self::fatal(format!(
                "{}: redirects are not followed; correct the URL",
                message()
            ))),
            _ => Some(Self::fatal(message())),
        }
    }
}

impl From<UnknownCluster> for StepError {
    fn from(unknown: UnknownCluster) -> Self {
        Self::retry(unknown.to_string())
    }
}

/// `Retry-After` in seconds; a date is ignored.
fn retry_after(response: &Response) -> Option<Duration> {
    let after = response.retry_after()?;
    Some(after.clamp(Duration::from_secs(1), Duration::from_secs(300)))
}

/// The message of a response: that of `{"forbidden": {"message": ...}}`, or the whole body.
pub(crate) fn server_message(response: &Response) -> String {
    let json: Option<serde_json::Value> = serde_json::from_slice(&response.body).ok();
    let message = json.as_ref().and_then(|json| {
        let first = json.as_object()?.values().next()?;
        first.get("message")?.as_str()
    });
    let text = message.map_or_else(|| response.text(), str::to_owned);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(SHOWN).collect()
}
