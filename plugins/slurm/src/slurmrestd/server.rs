//! Requests to slurmrestd. It must not know why anything is asked.
//!
//! Nodes are read by `GET /nodes/` alone: `GET /node/NAME` tells what was true when somebody last listed all nodes.

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

/// The first version that can change a node, and the last one that is known.
pub(crate) const OLDEST: u32 = 39;
pub(crate) const NEWEST: u32 = 44;
/// Versions that can read and not drain.
const TOO_OLD: [u32; 4] = [38, 37, 36, 35];
/// The version that can put a job back into the queue.
pub(crate) const REQUEUES: u32 = 45;
/// What the operator calls the token.
pub(crate) const SECRET: &str = "token";
/// With the controller away slurmrestd answers after some 10 s: to give up before that would hide why.
const TIMEOUT: Duration = Duration::from_secs(20);
/// What grows with the cluster may take longer, if the operator's own limit has room for it.
const LIST_TIMEOUT: Duration = Duration::from_secs(120);
/// A job that is unknown, and one that has ended: there is nothing left to cancel.
const NO_JOB: [i64; 2] = [2017, 2021];

/// One slurmrestd, for one step.
pub(crate) struct Server<'a> {
    settings: &'a Slurmrestd,
    /// The version that it was found to serve.
    pub(crate) version: Option<u32>,
}

impl<'a> Server<'a> {
    pub(crate) const fn new(settings: &'a Slurmrestd, version: Option<u32>) -> Self {
        Self { settings, version }
    }

    /// All nodes. Finds out the version on the way when it is not known or not served any more: the newest that answers.
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
                return read(&response)?.nodes.ok_or_else(|| absent("nodes"));
            }
        }
        Err(match self.settings.version {
            Some(version) => SlurmError::NotServed(version),
            None => self.why_none()?,
        })
    }

    /// The states of these jobs, or where none is named of all, hidden partitions included. `None`: this Slurm does not
    /// list them.
    pub(crate) fn states(&self, ids: &[u64]) -> Result<Option<States>, SlurmError> {
        let version = self.version.unwrap_or(OLDEST);
        let ids: Vec<String> = ids.iter().map(|id| format!("job_id={id}")).collect();
        let query = if ids.is_empty() { "" } else { "?" };
        let path = format!("jobs/state/{query}{}", ids.join("&"));
        let response = self.list(version, &path, List::States)?;
        if response.status == 404 {
            return Ok(None);
        }
        let body = read_as(&response, |body: &states::Body| &body.errors)?;
        body.jobs.map(Some).ok_or_else(|| absent("jobs"))
    }

    /// All jobs.
    pub(crate) fn jobs(&self) -> Result<Vec<Job>, SlurmError> {
        let version = self.version.unwrap_or(OLDEST);
        let path = format!("jobs/{}", shown(version));
        let response = self.list(version, &path, List::Jobs)?;
        read(&response)?.jobs.ok_or_else(|| absent("jobs"))
    }

    /// The job of this number. With the first of an array or of a heterogeneous job come the others. None: it is over and
    /// forgotten.
    pub(crate) fn job(&self, id: u64) -> Result<Vec<Job>, SlurmError> {
        let version = self.version.unwrap_or(OLDEST);
        let response = self.list(version, &format!("job/{id}{}", shown(version)), List::Array)?;
        match read_as(&response, |body: &Body| &body.errors) {
            Err(SlurmError::NoSuchJob) => Ok(Vec::new()),
            Err(error) => Err(error),
            Ok(body) => body.jobs.ok_or_else(|| absent("jobs")),
        }
    }

    /// When the controller began to count what it does: at its start, and at each midnight. `None`: it does not say.
    pub(crate) fn counts_since(&self) -> Option<u64> {
        let response = self.get(self.version.unwrap_or(OLDEST), "diag/").ok()?;
        read(&response).ok()?.statistics.since
    }

    /// Changes a node's state, with a reason or leaving the reason it has.
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
        read(&request.send()?).map(drop)
    }

    /// The token's user may change this node. Nothing is changed: the update has nothing in it.
    pub(crate) fn may_change(&self, node: &str) -> Result<(), SlurmError> {
        self.update(node, &json!({}))
    }

    /// It serves this version.
    pub(crate) fn serves(&self, version: u32) -> bool {
        self.get(version, "ping/")
            .is_ok_and(|response| response.status != 404)
    }

    /// Cancels a job, or sends its processes a signal.
    pub(crate) fn cancel(&self, job: u64, signal: Option<&str>) -> Result<(), SlurmError> {
        let query = signal.map_or_else(String::new, |signal| format!("?signal=SIG{signal}"));
        let path = format!("job/{job}{query}");
        let response = self
            .request(Method::Delete, self.version.unwrap_or(OLDEST), &path)
            .send()?;
        let status = match read(&response) {
            Err(SlurmError::NoSuchJob) => return Ok(()),
            body => body?.status,
        };
        match status.into_iter().find(|status| status.error.code != 0) {
            Some(status) if !NO_JOB.contains(&status.error.code) => Err(SlurmError::Refused(format!(
                "job {job}: {} ({})",
                status.error.message, status.error.code
            ))),
            _ => Ok(()),
        }
    }

    /// Puts a job back into the queue. `false`: this Slurm has no way to.
    pub(crate) fn requeue(&self, job: u64) -> Result<bool, SlurmError> {
        let response = self.get(REQUEUES, &format!("job/{job}/requeue"))?;
        // A job that has ended is a 404, too, with an error in it.
        if response.status == 404 {
            return Ok(
                serde_json::from_slice::<Body>(&response.body).is_ok_and(|body| !body.errors.is_empty())
            );
        }
        read(&response).map(|_body| true)
    }

    /// No version that can drain is served: is there one that cannot?
    fn why_none(&self) -> Result<SlurmError, SlurmError> {
        for version in TOO_OLD {
            if self.get(version, "ping/")?.status != 404 {
                return Ok(SlurmError::TooOld(version));
            }
        }
        Ok(SlurmError::NoVersion)
    }

    fn get(&self, version: u32, path: &str) -> Result<Response, SlurmError> {
        Ok(self.request(Method::Get, version, path).send()?)
    }

    /// Asks for a list, which may be longer than a response may be.
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
}

/// All: hidden partitions, too. Without the details of allocations, which are long and not needed.
const fn shown(version: u32) -> &'static str {
    if version > OLDEST { "?flags=ALL" } else { "" }
}

/// The body of an answer that tells of no trouble. A 200 can.
fn read(response: &Response) -> Result<Body, SlurmError> {
    read_as(response, |body: &Body| &body.errors)
}

fn read_as<T: DeserializeOwned>(
    response: &Response,
    errors: impl Fn(&T) -> &[ErrorEntry],
) -> Result<T, SlurmError> {
    let body = serde_json::from_slice::<T>(&response.body);
    let errors = body.as_ref().map_or(&[][..], |body| errors(body));
    // A long list that cannot be read need not be made a text of.
    if let Some(error) = SlurmError::of(response.status, errors, || response.text()) {
        return Err(error);
    }
    body.map_err(|error| SlurmError::Unreadable(error.to_string()))
}

fn absent(what: &str) -> SlurmError {
    SlurmError::Unreadable(format!("there are no `{what}` in it"))
}
