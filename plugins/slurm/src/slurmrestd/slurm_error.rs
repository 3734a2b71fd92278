//! Errors of slurmrestd, and whether to retry.

use std::fmt;
use std::time::Duration;

use scupper_sdk::http::{self, Response};
use scupper_sdk::mark::UnknownCluster;
use scupper_sdk::{Failure, Outcome};

use super::server::{NEWEST, OLDEST};
use super::wire::ErrorEntry;

/// The caller lacks the permission.
const NOT_ALLOWED: [i64; 2] = [2010, 2002];
const NO_SUCH_NODE: i64 = 2018;
const NO_SUCH_JOB: i64 = 2017;
const BAD_TOKEN: i64 = 1007;

/// Why a request to Slurm failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SlurmError {
    /// It serves only this version of its API, which cannot drain.
    TooOld(u32),
    /// It serves no known version at this URL.
    NoVersion(String),
    /// It does not serve the configured version.
    NotServed(u32),
    /// The token is missing, wrong or has expired.
    Token(String),
    /// The token is valid, but its user may not change nodes.
    NotAllowed(String),
    /// There is no such node in Slurm.
    NoSuchNode(String),
    /// slurmrestd cannot reach slurmctld.
    NoController(String),
    /// No response: the request may have taken effect, or may yet.
    Unsure(String),
    /// The request could not be sent.
    NotSent(String),
    /// The operator's grants do not allow it.
    NotGranted(String),
    /// Any other error.
    Refused(String),
    /// Slurm does not know the job, or no longer.
    NoSuchJob,
    /// A list exceeds the limit of a response.
    TooLong { list: List, message: String },
    /// The response cannot be read.
    Unreadable(String),
    /// Another server answers at this URL: it redirects, or shows a page.
    NotSlurmrestd { url: String, answer: String },
    /// A load balancer or the server is busy. If it says for how long, a retry helps.
    Busy {
        url: String,
        answer: String,
        after: Option<Duration>,
    },
    /// It is unknown which cluster this is.
    NoCluster(UnknownCluster),
}

/// A list that grows with the cluster, as slurmrestd can neither filter nor page it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    Nodes,
    /// The states of all jobs.
    States,
    /// Of all jobs.
    Jobs,
    /// Of the jobs of one array.
    Array,
}

impl List {
    /// The content of the list, and the size of an entry.
    const fn text(self) -> &'static str {
        match self {
            Self::Nodes => "all nodes of the cluster, some 3 KB for each",
            Self::States => "the states of all jobs of the cluster, some 90 bytes for each",
            Self::Jobs => "all jobs of the cluster, 5 to 9 KB for each",
            Self::Array => "the jobs of one array, 5 to 9 KB for each",
        }
    }
}

impl SlurmError {
    /// The error in a response with this status; `None` if there is none.
    pub(crate) fn of(status: u16, errors: &[ErrorEntry], text: impl FnOnce() -> String) -> Option<Self> {
        let first = errors.first();
        if matches!(status, 200..=299) && first.is_none() {
            return None;
        }
        let number = first.map_or(0, |error| error.error_number);
        let message = first.map_or_else(|| line(&text()), describe);
        Some(match (status, number) {
            (401, _) | (511, _) | (_, BAD_TOKEN) => Self::Token(message),
            (_, number) if NOT_ALLOWED.contains(&number) => Self::NotAllowed(message),
            (_, NO_SUCH_JOB) => Self::NoSuchJob,
            (_, NO_SUCH_NODE) => Self::NoSuchNode(message),
            (502, _) => Self::NoController(message),
            (504, _) => Self::Unsure(message),
            _ => Self::Refused(format!("{status}: {message}")),
        })
    }

    /// The error in a response without JSON, if slurmrestd does not send such ones.
    pub(crate) fn of_another_server(url: &str, response: &Response) -> Option<Self> {
        let text = response.text();
        let is_page = text.trim_start().starts_with('<');
        let is_json = text.trim_start().starts_with('{');
        let (url, status) = (url.to_owned(), response.status);
        let page = || format!("{status} {}", line(text.trim_start()));
        Some(match status {
            401 | 511 if !is_page => return None,
            300..=399 => {
                let to = response.header("location").unwrap_or("another page");
                let answer = format!("{status}, a redirect to {}", line(to));
                Self::NotSlurmrestd { url, answer }
            }
            429 | 503 => Self::busy(url, page(), response),
            500..=599 if is_page => Self::busy(url, page(), response),
            200..=299 | 403 if !is_json => Self::NotSlurmrestd { url, answer: page() },
            _ if is_page => Self::NotSlurmrestd { url, answer: page() },
            _ => return None,
        })
    }

    fn busy(url: String, answer: String, response: &Response) -> Self {
        let seconds = response
            .header("retry-after")
            .and_then(|text| text.trim().parse().ok());
        Self::Busy {
            url,
            answer: answer.trim_end().to_owned(),
            after: seconds.map(Duration::from_secs),
        }
    }

    /// Whether the token is the cause.
    pub(crate) const fn is_of_token(&self) -> bool {
        matches!(self, Self::Token(_) | Self::NotAllowed(_))
    }

    /// Whether slurmrestd itself did not answer. A server that has never answered properly may not be one.
    pub(crate) const fn is_of_another_server(&self) -> bool {
        matches!(self, Self::NotSlurmrestd { .. } | Self::Busy { .. })
    }

    /// Whether a retry cannot help until the configuration changes.
    fn is_final(&self) -> bool {
        matches!(
            self,
            Self::TooOld(_)
                | Self::NoVersion(_)
                | Self::NotServed(_)
                | Self::NoSuchNode(_)
                | Self::NotGranted(_)
                | Self::NotSlurmrestd { .. }
                | Self::Busy { after: None, .. }
        )
    }

    /// The outcome of a step with this error. `again`: always retry, because the drain has begun.
    pub(crate) fn outcome(&self, poll: Duration, again: bool) -> Outcome {
        let failure: Failure = Outcome::failed(self.to_string());
        let after = match self {
            Self::Busy {
                after: Some(after), ..
            } => poll.max(*after),
            _ => poll,
        };
        if self.is_final() && !again {
            failure.into()
        } else {
            failure.retry_after(after).into()
        }
    }
}

impl From<http::Error> for SlurmError {
    fn from(error: http::Error) -> Self {
        let text = error.to_string();
        match error {
            http::Error::NotGranted(_) | http::Error::Invalid(_) => Self::NotGranted(text),
            http::Error::NoSecret(_) => Self::Token(text),
            http::Error::Unreachable(_) | http::Error::TooMany(_) => Self::NotSent(text),
            http::Error::Broken(_) | http::Error::Timeout(_) => Self::Unsure(text),
            http::Error::TooLarge(_) => Self::Unreadable(text),
        }
    }
}

impl fmt::Display for SlurmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooOld(newest) => write!(
                f,
                "slurmrestd serves v0.0.{newest} at most, which cannot drain a node: Slurm 23.02 or later can \
                 (v0.0.{OLDEST}); or set `way` to `operator`"
            ),
            Self::NoVersion(url) => write!(
                f,
                "{url} answers 404 for every version of slurmrestd's API from v0.0.{OLDEST} to v0.0.{NEWEST}: check `url`"
            ),
            Self::NotServed(version) => write!(
                f,
                "slurmrestd does not serve v0.0.{version}, the configured `api-version`; use `auto` to detect the newest"
            ),
            Self::Token(message) => write!(
                f,
                "Slurm rejects the token (its file holds the token alone, without `SLURM_JWT=`): {message}"
            ),
            Self::NotAllowed(message) => write!(
                f,
                "the token's user may not change nodes; only Slurm's operators may: {message}"
            ),
            Self::NoSuchNode(message) => write!(f, "no such node in Slurm: {message}"),
            Self::NoController(message) => write!(f, "slurmrestd cannot reach slurmctld: {message}"),
            Self::Unsure(message) => write!(f, "{message}; retrying"),
            Self::NotSent(message) | Self::NotGranted(message) => f.write_str(message),
            Self::Refused(message) => write!(f, "Slurm refuses: {message}"),
            Self::NoSuchJob => f.write_str("no such job in Slurm"),
            Self::TooLong { list, message } => {
                write!(f, "slurmrestd can only list {}: {message}", list.text())
            }
            Self::Unreadable(message) => write!(f, "slurmrestd's response cannot be read: {message}"),
            Self::NotSlurmrestd { url, answer } => {
                write!(f, "{url} is not slurmrestd: it answers {answer}; check `url`")
            }
            Self::Busy { url, answer, .. } => write!(f, "{url} answers {answer}"),
            Self::NoCluster(error) => error.fmt(f),
        }
    }
}

fn describe(error: &ErrorEntry) -> String {
    let parts = [&error.error, &error.description];
    let parts: Vec<_> = parts
        .into_iter()
        .filter(|part| !part.is_empty())
        .map(|part| line(part))
        .collect();
    format!("{} ({})", parts.join(", "), error.error_number)
}

/// The first line, cut off if long.
fn line(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    first.chars().filter(|c| !c.is_control()).take(200).collect()
}
