//! Requests to slurmrestd, independent of their purpose.
//!
//! Nodes are read only by `GET /nodes/`: `GET /node/NAME` returns the state at the last listing of all nodes.

use std::time::Duration;

use scupper_sdk::http::{Error, Method, Request, Response, escaped};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::job::Job;
use super::node::SlurmNode;
use super::settings::Slurmrestd;
use super::slurm_error::{List, SlurmError};
use super::states::{self, States};
use super::wire::{Body, ErrorEntry};

/// The first version that can change a node, and the last known one.
pub(crate) const OLDEST: u32 = 39;
pub(crate) const NEWEST: u32 = 45;
/// Versions that can read but not drain.
const TOO_OLD: [u32; 4] = [38, 37, 36, 35];
/// The version that can requeue a job.
pub(crate) const REQUEUES: u32 = 45;
/// The version that reports when slurmctld started.
const REPORTS_START: u32 = 45;
/// The name of the token's secret.
pub(crate) const SECRET: &str = "token";
/// Without slurmctld, slurmrestd responds after about 10 s; a shorter timeout would hide the cause.
const TIMEOUT: Duration = Duration::from_secs(20);
/// For lists that grow with the cluster, up to the operator's own limit.
const LIST_TIMEOUT: Duration = Duration::from_secs(120);
/// An unknown job, one that waits, and one that has ended or must not be requeued: there is nothing to do.
const NO_JOB: [i64; 4] = [2017, 2024, 2021, 2037];

/// The status of an answer about something that has not changed.
const NOT_MODIFIED: u16 = 304;

/// What a request about a job has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    Job,
    /// The job has ended, or Slurm must not do this with it.
    Nothing,
    /// This Slurm does not support it.
    Unsupported,
}

/// One slurmrestd, for one step.
pub(crate) struct Server<'a> {
    settings: &'a Slurmrestd,
    /// The detected version.
    pub(crate) version: Option<u32>,
}

impl<'a> Server<'a> {
    pub(crate) const fn new(settings: &'a Slurmrestd, version: Option<u32>) -> Self {
        Self { settings, version }
    }

    /// All nodes. If the version is unknown or no longer served, detects the newest served one.
    pub(crate) fn nodes(&mut self) -> Result<Vec<SlurmNode>, SlurmError> {
        let known = (OLDEST..=NEWEST).rev();
        let tried: Vec<u32> = match self.settings.version {
            Some(version) => vec![version],
            None => self.version.into_iter().chain(known).collect(),
        };
        for version in tried {
            let response = self.list(version, "nodes/", List::Nodes)?;
            if response.status != 404 {
                self.version = Some(version);
                return self.read(&response)?.nodes.ok_or_else(|| absent("nodes"));
            }
        }
        Err(match self.settings.version {
            Some(version) => SlurmError::NotServed(version),
            None => self.why_none()?,
        })
    }

    /// The states of these jobs, or of all jobs if none is named, including hidden partitions. `None`: this Slurm has no such
    /// list.
    pub(crate) fn states(&self, ids: &[u64]) -> Result<Option<States>, SlurmError> {
        let version = self.version.unwrap_or(OLDEST);
        let ids: Vec<String> = ids.iter().map(|id| format!("job_id={id}")).collect();
        let query = if ids.is_empty() { "" } else { "?" };
        let path = format!("jobs/state/{query}{}", ids.join("&"));
        let response = self.list(version, &path, List::States)?;
        if response.status == 404 {
            return Ok(None);
        }
        let body = self.read_as(&response, |body: &states::Body| &body.errors)?;
        body.jobs.map(Some).ok_or_else(|| absent("jobs"))
    }

    /// All jobs.
    pub(crate) fn jobs(&self) -> Result<Vec<Job>, SlurmError> {
        let version = self.version.unwrap_or(OLDEST);
        let path = format!("jobs/{}", shown(version));
        let response = self.list(version, &path, List::Jobs)?;
        self.read(&response)?.jobs.ok_or_else(|| absent("jobs"))
    }

    /// The job with this number. For the first job of an array or of a heterogeneous job also the others. Empty: it is over
    /// and forgotten.
    pub(crate) fn job(&self, id: u64) -> Result<Vec<Job>, SlurmError> {
        let version = self.version.unwrap_or(OLDEST);
        let response = self.list(version, &format!("job/{id}{}", shown(version)), List::Array)?;
        match self.read_as(&response, |body: &Body| &body.errors) {
            Err(SlurmError::NoSuchJob) => Ok(Vec::new()),
            Err(error) => Err(error),
            Ok(body) => body.jobs.ok_or_else(|| absent("jobs")),
        }
    }

    /// The same, and if it is a part of a heterogeneous job, all parts of that.
    pub(crate) fn parts(&self, id: u64) -> Result<Vec<Job>, SlurmError> {
        let jobs = self.job(id)?;
        let whole = jobs.iter().find_map(Job::heterogeneous);
        match whole.filter(|whole| jobs.iter().all(|job| job.id() != *whole)) {
            Some(whole) => {
                let mut parts = self.job(whole)?;
                parts.retain(|part| part.id() != id);
                Ok([jobs, parts].concat())
            }
            None => Ok(jobs),
        }
    }

    /// When slurmctld started. Before v0.0.45 slurmrestd only reports the start of its statistics: that, the last midnight, or
    /// the last `sdiag --reset`. `None`: not reported.
    pub(crate) fn started(&self) -> Option<u64> {
        let version = self.version.unwrap_or(OLDEST);
        let path = if version < REPORTS_START { "diag/" } else { "conf" };
        let body = self.read(&self.get(version, path).ok()?).ok()?;
        body.statistics.since.or(body.conf.started)
    }

    /// Whether slurmctld has started again since it reported this start.
    pub(crate) fn has_restarted(&self, before: u64) -> bool {
        let start = self.started().filter(|start| *start != before);
        start.is_some_and(|start| !self.has_loaded_before(start))
    }

    /// Whether slurmctld's partitions have not changed since this time. It loads them when it starts, so only its statistics
    /// began then. Before v0.0.42, slurmrestd cannot say.
    fn has_loaded_before(&self, start: u64) -> bool {
        let version = self.version.unwrap_or(OLDEST);
        // It may take both times in one second.
        let path = format!("partitions/?update_time={}", start.saturating_sub(1));
        self.get(version, &path)
            .is_ok_and(|response| response.status == NOT_MODIFIED)
    }

    /// Changes a node's state, and its reason if one is given.
    pub(crate) fn set_state(&self, node: &str, state: &str, reason: Option<&str>) -> Result<(), SlurmError> {
        let mut body = json!({ "state": [state] });
        if let (Some(reason), Some(fields)) = (reason, body.as_object_mut()) {
            fields.insert("reason".to_owned(), Value::from(reason));
        }
        self.update(node, &body)
    }

    fn update(&self, node: &str, body: &Value) -> Result<(), SlurmError> {
        let path = format!("node/{}", escaped(node));
        let version = self.version.unwrap_or(OLDEST);
        let request = self
            .request(Method::Post, version, &path)
            .json_body(body.to_string());
        self.read(&request.send()?).map(drop)
    }

    /// Checks that the token's user may change this node. The update is empty and changes nothing.
    pub(crate) fn may_change(&self, node: &str) -> Result<(), SlurmError> {
        self.update(node, &json!({}))
    }

    /// Whether it serves this version.
    pub(crate) fn serves(&self, version: u32) -> bool {
        self.get(version, "ping/")
            .is_ok_and(|response| response.status != 404)
    }

    /// Cancels the job with this address, or sends its processes a signal.
    pub(crate) fn cancel(&self, job: &str, signal: Option<&str>) -> Result<Reached, SlurmError> {
        let query = signal.map_or_else(String::new, |signal| format!("?signal=SIG{signal}"));
        let path = format!("job/{job}{query}");
        let response = self
            .request(Method::Delete, self.version.unwrap_or(OLDEST), &path)
            .send()?;
        self.reached(job, &response)
    }

    /// Requeues the job with this address.
    pub(crate) fn requeue(&self, job: &str) -> Result<Reached, SlurmError> {
        let response = self.get(REQUEUES, &format!("job/{job}/requeue"))?;
        match serde_json::from_slice::<Body>(&response.body) {
            // slurmrestd of another version answers with a text.
            Err(_) if response.status == 404 => Ok(Reached::Unsupported),
            _ => self.reached(job, &response),
        }
    }

    /// Slurm names what it could not do, for the request or for the job. What it has done it does not name (24.11, 26.05).
    fn reached(&self, job: &str, response: &Response) -> Result<Reached, SlurmError> {
        let body: Body = serde_json::from_slice(&response.body).unwrap_or_default();
        let first = body.errors.first().map(|error| error.error_number);
        if first.is_some_and(|number| NO_JOB.contains(&number)) {
            return Ok(Reached::Nothing);
        }
        let status = self.read(response)?.status;
        match status.iter().find(|status| status.code() != 0) {
            None => Ok(Reached::Job),
            Some(status) if NO_JOB.contains(&status.code()) => Ok(Reached::Nothing),
            Some(status) => Err(SlurmError::Refused(format!(
                "job {job}: {} ({})",
                status.error.message,
                status.code()
            ))),
        }
    }

    /// Why no version can drain: either an older one is served, or none.
    fn why_none(&self) -> Result<SlurmError, SlurmError> {
        for version in TOO_OLD {
            if self.get(version, "ping/")?.status != 404 {
                return Ok(SlurmError::TooOld(version));
            }
        }
        Ok(SlurmError::NoVersion(self.settings.url.clone()))
    }

    fn get(&self, version: u32, path: &str) -> Result<Response, SlurmError> {
        Ok(self.request(Method::Get, version, path).send()?)
    }

    /// Fetches a list, which may exceed the limit of a response.
    fn list(&self, version: u32, path: &str, list: List) -> Result<Response, SlurmError> {
        self.request(Method::Get, version, path)
            .timeout(LIST_TIMEOUT)
            .send()
            .map_err(|error| match error {
                Error::TooLarge(message) => SlurmError::TooLong { list, message },
                other => other.into(),
            })
    }

    fn request(&self, method: Method, version: u32, path: &str) -> Request {
        let url = format!("{}/slurm/v0.0.{version}/{path}", self.settings.url);
        let request = Request::new(method, url)
            .secret_header("X-SLURM-USER-TOKEN", SECRET)
            .timeout(TIMEOUT);
        match &self.settings.user {
            Some(user) => request.header("X-SLURM-USER-NAME", user),
            None => request,
        }
    }

    /// The body of a response without errors. A response with status 200 can contain errors.
    fn read(&self, response: &Response) -> Result<Body, SlurmError> {
        self.read_as(response, |body: &Body| &body.errors)
    }

    fn read_as<T: DeserializeOwned>(
        &self,
        response: &Response,
        errors: impl Fn(&T) -> &[ErrorEntry],
    ) -> Result<T, SlurmError> {
        let body = serde_json::from_slice::<T>(&response.body);
        if body.is_err()
            && let Some(error) = SlurmError::of_another_server(&self.settings.url, response)
        {
            return Err(error);
        }
        let errors = body.as_ref().map_or(&[][..], |body| errors(body));
        // The text of a long unreadable list is not needed.
        if let Some(error) = SlurmError::of(response.status, errors, || response.text()) {
            return Err(error);
        }
        body.map_err(|error| SlurmError::Unreadable(error.to_string()))
    }
}

/// Includes hidden partitions, but not the long details of allocations.
const fn shown(version: u32) -> &'static str {
    if version > OLDEST { "?flags=ALL" } else { "" }
}

fn absent(what: &str) -> SlurmError {
    SlurmError::Unreadable(format!("it contains no `{what}`"))
}
