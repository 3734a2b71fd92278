//! Why a step cannot go on, and whether that passes.

use std::time::Duration;

use scupper_sdk::http::{Error, Response};

/// How much of an answer's own words is shown.
const SHOWN: usize = 300;

/// What is in the way of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// It passes by itself: look again.
    Wait { words: String, after: Option<Duration> },
    /// It stays until somebody changes something.
    Stop(String),
    /// This step has used up what one step may; the next goes on.
    NextStep,
}

impl Trouble {
    pub(crate) fn wait(words: impl Into<String>) -> Self {
        Self::Wait {
            words: words.into(),
            after: None,
        }
    }

    pub(crate) fn stop(words: impl Into<String>) -> Self {
        Self::Stop(words.into())
    }

    /// For people.
    pub(crate) fn words(self) -> String {
        match self {
            Self::Wait { words, .. } | Self::Stop(words) => words,
            Self::NextStep => "one step may not ask so much".to_owned(),
        }
    }

    /// No answer came.
    pub(crate) fn of_error(whom: &str, error: &Error) -> Self {
        match error {
            Error::TooMany(_) => Self::NextStep,
            Error::Unreachable(_) | Error::Broken(_) | Error::Timeout(_) => {
                Self::wait(format!("{whom}: {error}"))
            }
            // A secret may be mounted a moment later.
            Error::NoSecret(_) => Self::wait(format!("{whom}: {error}")),
            Error::NotGranted(_) | Error::Invalid(_) | Error::TooLarge(_) => {
                Self::stop(format!("{whom}: {error}"))
            }
        }
    }

    /// An answer that says the same whatever was asked. Others are for whoever asked.
    pub(crate) fn of_status(what: &str, response: &Response) -> Option<Self> {
        let words = || format!("{what}: {} {}", response.status, told(response));
        match response.status {
            200..300 | 400 | 401 | 404 | 409 => None,
            413 | 429 | 500 | 502 | 503 | 504 => Some(Self::Wait {
                words: words(),
                after: retry_after(response),
            }),
            403 => Some(Self::stop(format!(
                "{}; the credential needs an administrator's rights for this",
                words()
            ))),
            300..400 => Some(Self::stop(format!(
                "{}: no redirect is followed; correct the URL",
                words()
            ))),
            _ => Some(Self::stop(words())),
        }
    }
}

/// `Retry-After` in seconds; a date is not worth the trouble.
fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = response.header("retry-after")?.trim().parse().ok()?;
    Some(Duration::from_secs(u64::clamp(seconds, 1, 300)))
}

/// What an answer says in its own words: `{"forbidden": {"message": ...}}`, or the body as it is.
pub(crate) fn told(response: &Response) -> String {
    let json: Option<serde_json::Value> = serde_json::from_slice(&response.body).ok();
    let message = json.as_ref().and_then(|json| {
        let first = json.as_object()?.values().next()?;
        first.get("message")?.as_str()
    });
    let text = message.map_or_else(|| response.text(), str::to_owned);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(SHOWN).collect()
}
