//! Why a step cannot go on, and whether that passes.

use std::time::Duration;

use scupper_sdk::http::{Error, Response};

/// How much of an answer's own message is shown.
const SHOWN: usize = 300;

/// What is in the way of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StepError {
    /// It passes by itself: look again.
    Retry {
        message: String,
        after: Option<Duration>,
    },
    /// It stays until somebody changes something.
    Fatal(String),
    /// This step has used up what one step may; the next goes on.
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

    /// For people.
    pub(crate) fn message(self) -> String {
        match self {
            Self::Retry { message, .. } | Self::Fatal(message) => message,
            Self::NextStep => "one step may not ask so much".to_owned(),
        }
    }

    /// No answer came.
    pub(crate) fn of_error(whom: &str, error: &Error) -> Self {
        match error {
            Error::TooMany(_) => Self::NextStep,
            Error::Unreachable(_) | Error::Broken(_) | Error::Timeout(_) => {
                Self::retry(format!("{whom}: {error}"))
            }
            // A secret may be mounted a moment later.
            Error::NoSecret(_) => Self::retry(format!("{whom}: {error}")),
            Error::NotGranted(_) | Error::Invalid(_) | Error::TooLarge(_) => {
                Self::fatal(format!("{whom}: {error}"))
            }
        }
    }

    /// An answer that says the same whatever was asked. Others are for whoever asked.
    pub(crate) fn of_status(what: &str, response: &Response) -> Option<Self> {
        let message = || format!("{what}: {} {}", response.status, server_message(response));
        match response.status {
            200..300 | 400 | 401 | 404 | 409 => None,
            413 | 429 | 500 | 502 | 503 | 504 => Some(Self::Retry {
                message: message(),
                after: retry_after(response),
            }),
            403 => Some(Self::fatal(format!(
                "{}; the credential needs an administrator's rights for this",
                message()
            ))),
            300..400 => Some(Self::fatal(format!(
                "{}: no redirect is followed; correct the URL",
                message()
            ))),
            _ => Some(Self::fatal(message())),
        }
    }
}

/// `Retry-After` in seconds; a date is not worth the trouble.
fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = response.header("retry-after")?.trim().parse().ok()?;
    Some(Duration::from_secs(u64::clamp(seconds, 1, 300)))
}

/// What an answer says in its own message: `{"forbidden": {"message": ...}}`, or the body as it is.
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
