//! Faults that tests inject: refusals, delays, hanging and dropped connections.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use super::failure::Failure;
use super::requests::RequestRecord;

/// A fault: which requests it hits, and what happens to them.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The method (`GET`); empty for all.
    pub method: String,
    /// The path, where `*` matches anything; empty for all.
    pub path: String,
    /// The verb (`watch`, `patch`); empty for all.
    pub verb: String,
    /// The beginning of the user agent; empty for all.
    pub user_agent: String,
    /// The number of matching requests that pass first.
    pub skip: u32,
    /// The number of requests to hit then; `None`: all.
    pub count: Option<u32>,
    /// The probability of a hit, from the plan's seed.
    pub probability: f64,
    /// What happens.
    pub action: Action,
}

/// What happens to a request.
#[derive(Clone, Debug)]
pub enum Action {
    /// Refuse it with this code and body, without effect. Without a body: a Status for the code.
    Status(u16, Option<Value>),
    /// As [`Action::Status`], with a `Retry-After` in seconds.
    RetryAfter(u16, u32),
    /// Delay it.
    Delay(Duration),
    /// Never respond, without effect.
    Hang,
    /// Break the connection, without effect.
    DropBefore,
    /// Carry it out, then break the connection without a response.
    DropAfter,
    /// Carry it out, but never respond.
    HangAfter,
}

impl Fault {
    /// All requests, always.
    pub fn new(action: Action) -> Self {
        Self {
            method: String::new(),
            path: String::new(),
            verb: String::new(),
            user_agent: String::new(),
            skip: 0,
            count: None,
            probability: 1.0,
            action,
        }
    }

    /// Only requests of this method.
    #[must_use]
    pub fn method(mut self, method: &str) -> Self {
        method.clone_into(&mut self.method);
        self
    }

    /// Only requests of this path; `*` matches anything.
    #[must_use]
    pub fn path(mut self, glob: &str) -> Self {
        glob.clone_into(&mut self.path);
        self
    }

    /// Only requests of this verb.
    #[must_use]
    pub fn verb(mut self, verb: &str) -> Self {
        verb.clone_into(&mut self.verb);
        self
    }

    /// Only requests of this user agent.
    #[must_use]
    pub fn user_agent(mut self, beginning: &str) -> Self {
        beginning.clone_into(&mut self.user_agent);
        self
    }

    /// The first `skip` pass.
    #[must_use]
    pub fn skip(mut self, skip: u32) -> Self {
        self.skip = skip;
        self
    }

    /// No more than `count` are hit.
    #[must_use]
    pub fn count(mut self, count: u32) -> Self {
        self.count = Some(count);
        self
    }

    /// Each is hit with this probability.
    #[must_use]
    pub fn probability(mut self, probability: f64) -> Self {
        self.probability = probability;
        self
    }

    fn matches(&self, request: &RequestRecord) -> bool {
        (self.method.is_empty() || self.method.eq_ignore_ascii_case(&request.method))
            && (self.path.is_empty() || glob(&self.path, &request.path))
            && (self.verb.is_empty() || self.verb == request.verb)
            && request.user_agent.starts_with(&self.user_agent)
    }
}

/// Whether the text matches the pattern, where `*` matches anything.
fn glob(pattern: &str, text: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(rest) = text.strip_prefix(before) else {
        return false;
    };
    (0..=rest.len()).any(|at| rest.get(at..).is_some_and(|rest| glob(after, rest)))
}

/// Breaks the connection.
#[derive(Debug, thiserror::Error)]
#[error("connection dropped")]
pub(crate) struct Dropped;

/// The fault that hits a request, if any.
#[derive(Debug)]
pub(crate) struct Hit(Option<Action>);

impl Hit {
    /// Applied before the effect; returns the refusal, if it is one.
    pub(crate) async fn before(&self) -> Result<Option<Failure>, Dropped> {
        match &self.0 {
            Some(Action::Status(code, body)) => Ok(Some(refusal(*code, body.as_ref()))),
            Some(Action::RetryAfter(code, seconds)) => Ok(Some(refusal(*code, None).retry_after(*seconds))),
            Some(Action::Delay(time)) => {
                sleep(*time).await;
                Ok(None)
            }
            Some(Action::Hang) => std::future::pending().await,
            Some(Action::DropBefore) => Err(Dropped),
            Some(Action::DropAfter | Action::HangAfter) | None => Ok(None),
        }
    }

    /// Applied after the effect.
    pub(crate) async fn after(&self) -> Result<(), Dropped> {
        match &self.0 {
            Some(Action::DropAfter) => Err(Dropped),
            Some(Action::HangAfter) => std::future::pending().await,
            _ => Ok(()),
        }
    }
}

fn refusal(code: u16, body: Option<&Value>) -> Failure {
    let (reason, message) = match code {
        401 => ("Unauthorized", "Unauthorized"),
        403 => ("Forbidden", "forbidden"),
        404 => ("NotFound", "the server could not find the requested resource"),
        409 => (
            "Conflict",
            "the object has been modified; please apply your changes to the latest version and try again",
        ),
        429 => ("TooManyRequests", "too many requests, please try again later"),
        500 => ("InternalError", "Internal error occurred: ordered by the test"),
        503 => ("ServiceUnavailable", "apiserver is shutting down"),
        504 => (
            "Timeout",
            "Timeout: request did not complete within requested timeout - context deadline exceeded",
        ),
        _ => ("", "ordered by the test"),
    };
    let mut failure = Failure::new(code, reason, message);
    if let Some(body) = body {
        failure.body = body.clone();
    }
    failure
}

/// The injected faults.
#[derive(Debug)]
pub(crate) struct Faults(Mutex<Plan>);

#[derive(Debug)]
struct Plan {
    faults: Vec<(Fault, u32, u32)>,
    seed: u64,
}

impl Faults {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Plan {
            faults: Vec::new(),
            seed: 1,
        }))
    }

    /// Adds to the plan.
    pub(crate) fn add(&self, faults: impl IntoIterator<Item = Fault>) {
        let mut plan = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        plan.faults.extend(faults.into_iter().map(|it| (it, 0, 0)));
    }

    pub(crate) fn clear(&self) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .faults
            .clear();
    }

    pub(crate) fn seed(&self, seed: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).seed = seed;
    }

    /// The first fault that hits this request.
    pub(crate) fn pick(&self, request: &RequestRecord) -> Hit {
        let mut plan = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Plan { faults, seed } = &mut *plan;
        for (fault, passed, hit) in faults {
            if !fault.matches(request) {
                continue;
            }
            if *passed < fault.skip {
                *passed += 1;
            } else if fault.count.is_none_or(|most| *hit < most) && chance(seed) < fault.probability {
                *hit += 1;
                return Hit(Some(fault.action.clone()));
            }
        }
        Hit(None)
    }
}

/// The next number of a small generator, from 0 to 1.
fn chance(seed: &mut u64) -> f64 {
    *seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *seed;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    f64::from(u32::try_from((mixed ^ (mixed >> 31)) >> 32).unwrap_or_default()) / f64::from(u32::MAX)
}
