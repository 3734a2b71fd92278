//! What can be wrong with an answer of slurmrestd, and whether to ask again.

use std::fmt;
use std::time::Duration;

use scupper_sdk::{Failure, Outcome, http};

use super::server::{NEWEST, OLDEST};
use super::wire::ErrorEntry;

/// The caller has no right to do it.
const NOT_ALLOWED: [i64; 2] = [2010, 2002];
const NO_SUCH_NODE: i64 = 2018;
const NO_SUCH_JOB: i64 = 2017;
const BAD_TOKEN: i64 = 1007;

/// Why Slurm did not say or do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SlurmError {
    /// It serves no version of its API that can drain, but this one.
    TooOld(u32),
    /// It serves none that is known here.
    NoVersion,
    /// It does not serve the version that the operator named.
    NotServed(u32),
    /// The token is missing, wrong or has expired.
    Token(String),
    /// The token is good, and its user may not change nodes.
    NotAllowed(String),
    /// There is no such node in Slurm.
    NoSuchNode(String),
    /// The controller cannot be reached; slurmrestd can.
    NoController(String),
    /// No answer: what was asked for may have happened, or may yet.
    Unsure(String),
    /// It could not be sent, or not yet.
    NotSent(String),
    /// The operator's grants do not allow it.
    NotGranted(String),
    /// Any other error.
    Refused(String),
    /// It knows no such job, or none any more.
    NoSuchJob,
    /// A list of it is longer than a response may be.
    TooLong { list: List, message: String },
    /// It answered something that makes no sense.
    Unreadable(String),
}

/// A list that grows with the cluster, as slurmrestd can neither filter nor page it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    Nodes,
    /// Of all jobs, with their states alone.
    States,
    /// Of all jobs.
    Jobs,
    /// Of the jobs of one array.
    Array,
}

impl List {
    /// What it lists, and how long it is for each.
    const fn words(self) -> &'static str {
        match self {
            Self::Nodes => "all nodes of the cluster, some 3 KB for each",
            Self::States => "the states of all jobs of the cluster, some 90 bytes for each",
            Self::Jobs => "all jobs of the cluster, 5 to 9 KB for each",
            Self::Array => "the jobs of one array, 5 to 9 KB for each",
        }
    }
}

impl SlurmError {
    /// The trouble that an answer with this status tells of; `None`: it tells of none.
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

    /// The token is to blame.
    pub(crate) const fn is_of_token(&self) -> bool {
        matches!(self, Self::Token(_) | Self::NotAllowed(_))
    }

    /// Nothing that Slurm will do by itself helps: a person must.
    fn is_final(&self) -> bool {
        matches!(
            self,
            Self::TooOld(_)
                | Self::NoVersion
                | Self::NotServed(_)
                | Self::NoSuchNode(_)
                | Self::NotGranted(_)
        )
    }

    /// The step fails with it. `again`: what was begun is to be seen through, so the next step tries again whatever it
    /// is.
    pub(crate) fn outcome(&self, poll: Duration, again: bool) -> Outcome {
        let failure: Failure = Outcome::failed(self.to_string());
        if self.is_final() && !again {
            failure.into()
        } else {
            failure.retry_after(poll).into()
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
            Self::NoVersion => write!(
                f,
                "slurmrestd serves no version from v0.0.{OLDEST} to v0.0.{NEWEST}: is `url` that of slurmrestd?"
            ),
            Self::NotServed(version) => write!(
                f,
                "slurmrestd does not serve v0.0.{version}, which `api-version` names; without it the newest is found"
            ),
            Self::Token(message) => write!(f, "Slurm does not take the token: {message}"),
            Self::NotAllowed(message) => write!(
                f,
                "the token's user may not change nodes, only Slurm's operators may: {message}"
            ),
            Self::NoSuchNode(message) => write!(f, "no such node in Slurm: {message}"),
            Self::NoController(message) => write!(f, "Slurm's controller cannot be reached: {message}"),
            Self::Unsure(message) => write!(f, "{message}; Slurm is asked again"),
            Self::NotSent(message) | Self::NotGranted(message) => f.write_str(message),
            Self::Refused(message) => write!(f, "Slurm refuses: {message}"),
            Self::NoSuchJob => f.write_str("no such job in Slurm"),
            Self::TooLong { list, message } => {
                write!(f, "slurmrestd can only list {}: {message}", list.words())
            }
            Self::Unreadable(message) => write!(f, "the answer of slurmrestd cannot be read: {message}"),
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

/// The first line, and not all of a long one.
fn line(text: &str) -> String {
    let first = text.lines().next().unwrap_or_default();
    first.chars().filter(|c| !c.is_control()).take(200).collect()
}
