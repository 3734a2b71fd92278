//! The session with one cloud: logs in, renews the token, sends requests to Nova. It never holds the token: the host
//! captures it from Keystone's response and inserts it into requests by name.

use std::time::Duration;

use scupper_sdk::Timestamp;
use scupper_sdk::http::{Error, Method, Request, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock;
use crate::keystone::Token;
use crate::nova::{Version, ask};
use crate::settings::{Compute, Settings};
use crate::step_error::{StepError, server_message};

/// The name of the secret that the host captures.
pub(crate) const TOKEN: &str = "token";
/// The header from which it is captured.
const SUBJECT: &str = "X-Subject-Token";
/// A step may send 64 requests; the rest is reserved for its end.
pub(crate) const REQUESTS: u32 = 56;
/// For one request; a step has 30 s in total.
const TIMEOUT: Duration = Duration::from_secs(10);
/// After this time, by Nova's clock, a step sends no further requests.
pub(crate) const STEP: u64 = 15_000;

/// The part of the session that is saved between steps. It contains no secrets, and a new login restores it.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
pub(crate) struct Session {
    #[serde(rename = "u")]
    compute: String,
    #[serde(rename = "m")]
    minor: u32,
    /// When to renew the token, by the host's clock.
    #[serde(rename = "t")]
    renew_at: Timestamp,
    /// The user id of our migrations.
    #[serde(rename = "w")]
    user: String,
}

/// The cloud, for one step.
pub(crate) struct Cloud<'a> {
    settings: &'a Settings,
    pub(crate) session: Option<Session>,
    /// The time of the step, by the host's clock.
    now: Timestamp,
    /// Nova's clock in its first and in its last response.
    clock: Option<(Timestamp, Timestamp)>,
    logged_in: bool,
    requests: u32,
    /// Bytes of the longest response.
    longest: usize,
    /// How far a login has come.
    stage: &'static str,
}

/// A response that the caller interprets.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    pub(crate) message: String,
}

impl Answer {
    pub(crate) const fn is_success(&self) -> bool {
        matches!(self.status, 200..300)
    }
}

impl<'a> Cloud<'a> {
    pub(crate) const fn new(settings: &'a Settings, session: Option<Session>, now: Timestamp) -> Self {
        Self {
            settings,
            session,
            now,
            clock: None,
            logged_in: false,
            requests: 0,
            longest: 0,
            stage: "Keystone",
        }
    }

    /// The negotiated microversion.
    pub(crate) fn version(&mut self) -> Result<Version, StepError> {
        self.ready().map(|session| Version(session.minor))
    }

    /// Nova's URL and the negotiated microversion.
    pub(crate) fn place(&mut self) -> Result<(String, u32), StepError> {
        self.ready().map(|session| (session.compute, session.minor))
    }

    /// How far a failed login came: `Keystone`, `credential`, `region`, `Nova` or `microversion`.
    pub(crate) const fn stage(&self) -> &'static str {
        self.stage
    }

    /// Bytes of the longest response so far.
    pub(crate) const fn longest(&self) -> usize {
        self.longest
    }

    /// The user as which this policy is logged in.
    pub(crate) fn user(&mut self) -> Result<String, StepError> {
        self.ready().map(|session| session.user)
    }

    /// Nova's time, or the host's if Nova sends none.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.map_or(self.now, |(_, last)| last)
    }

    /// Converts a time of the host's clock to Nova's.
    pub(crate) fn on_nova_clock(&self, at: Timestamp) -> Timestamp {
        let first = self.clock.map_or(self.now, |(first, _)| first);
        (at + first).saturating_sub(self.now)
    }

    /// `GET`; anything but success is an error.
    pub(crate) fn get(&mut self, path: &str) -> Result<Vec<u8>, StepError> {
        let answer = self.ask(Method::Get, path, None)?;
        if answer.is_success() {
            return Ok(answer.body);
        }
        let words = format!("Nova, GET {path}: {} {}", answer.status, answer.message);
        Err(StepError::fatal(words))
    }

    /// Any request to Nova. The caller handles 400, 404 and 409.
    pub(crate) fn ask(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, StepError> {
        self.ready()?;
        let whom = format!("Nova, {method} {}", without_query(path));
        let mut response = self.try_once(method, path, body)?;
        if response.as_ref().is_none_or(|response| response.status == 401) && !self.logged_in {
            self.login()?;
            response = self.try_once(method, path, body)?;
        }
        let response = response.ok_or_else(|| StepError::retry(format!("{whom}: the token was not kept")))?;
        if response.status == 401 {
            // Another login would not help, and the loop would never end.
            return Err(StepError::Forbidden(format!(
                "{whom}: 401 with a new token: the access rules of the application credential do not allow this request, or Nova does not trust this Keystone"
            )));
        }
        if let Some(step_error) = StepError::of_status(&whom, &response) {
            return Err(step_error);
        }
        Ok(Answer {
            status: response.status,
            message: server_message(&response),
            body: response.body,
        })
    }

    /// Revokes the token. A failure does not matter, as the token expires anyway.
    pub(crate) fn logout(&mut self) {
        if self.session.take().is_some() {
            let request = Request::delete(self.tokens_url())
                .secret_header("X-Auth-Token", TOKEN)
                .secret_header(SUBJECT, TOKEN)
                .timeout(TIMEOUT);
            request.send().ok();
        }
    }

    fn ready(&mut self) -> Result<Session, StepError> {
        if let Some(session) = self.session.clone().filter(|session| self.now < session.renew_at) {
            return Ok(session);
        }
        self.login()?;
        self.session.clone().ok_or(StepError::NextStep)
    }

    /// `None`: the host no longer has the token, for example after a restart.
    fn try_once(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Option<Response>, StepError> {
        let Some(session) = self.session.clone() else {
            return Err(StepError::NextStep);
        };
        let version = format!("2.{}", session.minor);
        let mut request = Request::new(method, format!("{}{path}", session.compute))
            .secret_header("X-Auth-Token", TOKEN)
            .header("Accept", "application/json")
            .header("OpenStack-API-Version", format!("compute {version}"))
            .header("X-OpenStack-Nova-API-Version", version);
        if let Some(body) = body {
            request = request.json_body(body.to_string());
        }
        match self.send(&request) {
            Ok(response) => Ok(Some(response)),
            Err(Some(Error::NoSecret(_))) => Ok(None),
            Err(error) => Err(step_error(
                &format!("Nova, {method} {}", without_query(path)),
                error,
            )),
        }
    }

    fn login(&mut self) -> Result<(), StepError> {
        self.stage = "Keystone";
        let credential = &self.settings.credential;
        let request = Request::post(self.tokens_url())
            .header("Accept", "application/json")
            .json_body(credential.body().to_string())
            .secret_field(credential.pointer(), credential.secret())
            .capture(SUBJECT, TOKEN);
        let response = self.send(&request).map_err(|error| {
            if matches!(error, Some(Error::NoSecret(_))) {
                self.stage = "credential";
            }
            step_error(&format!("Keystone, POST {}", self.tokens_url()), error)
        })?;
        match response.status {
            401 => {
                self.stage = "credential";
                return Err(StepError::Rejected(format!(
                    "Keystone rejects the credential: {}",
                    server_message(&response)
                )));
            }
            400 | 404 | 409 => {
                return Err(StepError::fatal(format!(
                    "Keystone, POST {}: {} {}; check `auth-url`: it must be an Identity v3 endpoint",
                    self.tokens_url(),
                    response.status,
                    server_message(&response)
                )));
            }
            _ => {}
        }
        if let Some(step_error) = StepError::of_status("Keystone, POST /auth/tokens", &response) {
            return Err(step_error);
        }
        let token = Token::read(&response.body)
            .map_err(|error| StepError::fatal(format!("Keystone's answer cannot be read: {error}")))?;
        // The first response came from Keystone; only Nova's clock counts.
        self.clock = None;
        self.logged_in = true;
        self.stage = "region";
        let compute = self.compute(&token)?;
        self.stage = "Nova";
        let known = self
            .session
            .take()
            .filter(|session| session.compute == compute && session.user == token.user());
        let minor = match known {
            Some(session) => session.minor,
            None => self.negotiate(&compute)?.0,
        };
        self.session = Some(Session {
            compute,
            minor,
            renew_at: self.now.saturating_add(token.good_for()),
            user: token.user().to_owned(),
        });
        Ok(())
    }

    fn compute(&self, token: &Token) -> Result<String, StepError> {
        let Compute::Catalogue { begins } = &self.settings.compute else {
            return Ok(self.settings.compute.url().to_owned());
        };
        let region = self.settings.region.as_deref();
        let url = token
            .catalog
            .compute(region, self.settings.interface)
            .map_err(StepError::Fatal)?;
        let rest = url.strip_prefix(begins.as_str());
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
            return Ok(url);
        }
        Err(StepError::fatal(format!(
            "Nova's URL in the catalogue, {url}, does not begin with `compute-url` {begins}; correct `compute-url` and the grant, or set `compute-endpoint-override`"
        )))
    }

    fn negotiate(&mut self, compute: &str) -> Result<Version, StepError> {
        let url = ask::version_url(compute);
        let request = Request::get(&url)
            .secret_header("X-Auth-Token", TOKEN)
            .header("Accept", "application/json")
            .timeout(TIMEOUT);
        let response = self
            .send(&request)
            .map_err(|error| step_error(&format!("Nova, GET {url}"), error))?;
        if let Some(step_error) = StepError::of_status(&format!("Nova, GET {url}"), &response) {
            return Err(step_error);
        }
        if !response.is_success() {
            let words = server_message(&response);
            return Err(StepError::fatal(format!(
                "Nova, GET {url}: {} {words}",
                response.status
            )));
        }
        self.stage = "microversion";
        Version::choose(&response.body).map_err(StepError::Fatal)
    }

    fn send(&mut self, request: &Request) -> Result<Response, Option<Error>> {
        let late = self.clock.is_some_and(|(first, last)| last >= first + STEP);
        if late || self.requests >= REQUESTS {
            return Err(None);
        }
        self.requests += 1;
        let response = request.clone().timeout(TIMEOUT).send().map_err(Some)?;
        self.longest = self.longest.max(response.body.len());
        if let Some(date) = response.header("date").and_then(clock::http_date) {
            let first = self.clock.map_or(date, |(first, _)| first);
            self.clock = Some((first, date.max(first)));
        }
        Ok(response)
    }

    fn tokens_url(&self) -> String {
        format!("{}/auth/tokens", self.settings.auth_url)
    }
}

/// Queries are long, and say nothing new.
fn without_query(path: &str) -> &str {
    path.split('?').next().unwrap_or(path)
}

/// `None`: the step has reached its limit of requests.
fn step_error(whom: &str, error: Option<Error>) -> StepError {
    error.map_or(StepError::NextStep, |error| StepError::of_error(whom, &error))
}
