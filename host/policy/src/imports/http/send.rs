//! One request of a policy, from its call to its response.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::TryFutureExt;
use rustls::ClientConfig;
use scupper_common::error::chain;
use scupper_common::text::one_line;
use scupper_policy_spec::HttpRule;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};

use super::connect::{ConnectError, connect};
use super::exchange::{ExchangeError, exchange};
use super::prepare::Prepared;
use super::{Requests, http_mock};
use crate::imports::store_data::StoreData;
use crate::wit::bindings::scupper::drain::http::{Error, Host, Request, Response};

/// Longest text of an error, in bytes.
const WORDS: usize = 512;

impl Host for StoreData {
    async fn send(&mut self, request: Request) -> Result<Response, Error> {
        let requests = self.may_send(request.method)?;
        let counters = Arc::clone(&self.meter.counters);
        let reported = counters.waiting(requests.send(&request)).await;
        self.has_sent(reported.as_ref().ok());
        reported
    }
}

impl Requests {
    /// Sends the request and logs the fact, never its contents.
    async fn send(&self, request: &Request) -> Result<Response, Error> {
        let began = Instant::now();
        let wall = self.wall(request);
        let sent = AtomicBool::new(false);
        let reported = match timeout(wall, self.attempt(request, &sent)).await {
            Ok(reported) => reported,
            Err(_elapsed) => Err(late(wall, sent.load(Ordering::Relaxed))),
        };
        self.trace(request, &reported, began.elapsed());
        reported
    }

    async fn attempt(&self, request: &Request, sent: &AtomicBool) -> Result<Response, Error> {
        let prepared = self.prepare(request).await?;
        let _place = self.place()?;
        if let Some(http_mock) = &self.network.http_mock {
            let whole = http_mock::ask(http_mock.as_ref(), request, self.limits.response_bytes)?;
            return self.answer(request, &prepared.address.origin, whole);
        }
        let tls = self.tls(prepared.rule).await?;
        let origin = &prepared.address.origin;
        let stream = connect(&self.network, origin, prepared.rule.networks, tls)
            .map_err(unconnected)
            .await?;
        let Prepared { address, message, .. } = prepared;
        let whole = exchange(stream, message, self.limits.response_bytes, sent)
            .map_err(|error| self.unanswered(&error))
            .await?;
        self.answer(request, &address.origin, whole)
    }

    fn unanswered(&self, error: &ExchangeError) -> Error {
        let text = line(&error.to_string());
        match error {
            ExchangeError::NotSent(_) => Error::Unreachable(text),
            ExchangeError::Broken(_) | ExchangeError::Encoded(_) => Error::Broken(text),
            ExchangeError::TooLarge => self.too_large(),
        }
    }

    /// A permit for one of the policy's concurrent requests.
    fn place(&self) -> Result<tokio::sync::SemaphorePermit<'_>, Error> {
        self.at_once
            .try_acquire()
            .map_err(|_all_taken| Error::TooMany("others of this policy are still under way".to_owned()))
    }

    async fn tls(&self, rule: &HttpRule) -> Result<Option<Arc<ClientConfig>>, Error> {
        if !rule.origin.https {
            return Ok(None);
        }
        let (tls, ca) = (Arc::clone(&self.tls), rule.ca.clone());
        let made = spawn_blocking(move || tls.config(ca.as_deref())).await;
        let made =
            made.map_err(|_broken_off| Error::Unreachable("the TLS handshake was interrupted".to_owned()))?;
        let config = made.map_err(|error| Error::Unreachable(line(&chain(&error))))?;
        Ok(Some(config))
    }

    /// The policy may shorten the operator's time limit, not extend it.
    fn wall(&self, request: &Request) -> Duration {
        let asked = request.timeout.map(Duration::from_millis);
        asked.map_or(self.limits.request_wall, |asked| {
            asked.min(self.limits.request_wall)
        })
    }

    fn trace(&self, request: &Request, reported: &Result<Response, Error>, took: Duration) {
        let policy = self.policy.as_str();
        let method = super::prepare::method(request.method);
        let url = scupper_policy_spec::shown_url(&request.url);
        let ms = took.as_millis();
        match reported {
            Ok(Response { status, body, .. }) => {
                let bytes = body.len();
                tracing::debug!(target: "scupper::policy", policy, %method, url, status, bytes, ms, "request");
            }
            Err(error) => {
                let error = kind(error);
                tracing::debug!(target: "scupper::policy", policy, %method, url, error, ms, "request");
            }
        }
    }
}

fn late(wall: Duration, sent: bool) -> Error {
    let limit = format!("within {} s", wall.as_secs_f32());
    if sent {
        Error::Timeout(format!("not complete {limit}"))
    } else {
        Error::Unreachable(format!("no connection {limit}; nothing was sent"))
    }
}

fn unconnected(error: ConnectError) -> Error {
    let text = line(&error.to_string());
    match error {
        ConnectError::Refused { .. } | ConnectError::Forbidden(_) => Error::NotGranted(text),
        ConnectError::NoAddress { .. } | ConnectError::Tcp { .. } | ConnectError::Tls { .. } => {
            Error::Unreachable(text)
        }
    }
}

pub(super) fn line(text: &str) -> String {
    one_line(text, WORDS)
}

const fn kind(error: &Error) -> &'static str {
    match error {
        Error::NotGranted(_) => "not-granted",
        Error::Invalid(_) => "invalid",
        Error::NoSecret(_) => "no-secret",
        Error::Unreachable(_) => "unreachable",
        Error::Broken(_) => "broken",
        Error::Timeout(_) => "timeout",
        Error::TooLarge(_) => "too-large",
        Error::TooMany(_) => "too-many",
    }
}
