//! The requests to the server, as in an audit log. A watch is one request.

use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRecord {
    /// When it came.
    pub time: Timestamp,
    /// `GET`, …
    pub method: String,
    /// Without the query.
    pub path: String,
    /// The query as sent, without its question mark.
    pub query: String,
    /// The user agent.
    pub user_agent: String,
    /// The bearer token: the user's name in this simulator.
    pub user: String,
    /// The header `Impersonate-User`. This simulator still acts as `user`.
    pub impersonated: String,
    /// The headers `Impersonate-Group`.
    pub impersonated_groups: Vec<String>,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; the method in small letters for other paths.
    pub verb: String,
    /// `pods`, `leases.coordination.k8s.io`; empty for other paths.
    pub resource: String,
    /// `status`, `eviction`, or empty.
    pub subresource: String,
    /// The response code; `None` while the request runs, and for a dropped connection.
    pub status: Option<u16>,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct RequestLog(Mutex<Vec<RequestRecord>>);

impl RequestLog {
    /// Adds a request; the number is for [`Self::answered`].
    pub(crate) fn note(&self, record: RequestRecord) -> usize {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(record);
        all.len() - 1
    }

    pub(crate) fn answered(&self, number: usize, status: u16) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(record) = all.get_mut(number) {
            record.status = Some(status);
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub(crate) fn since(&self, mark: usize) -> Vec<RequestRecord> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(mark..).unwrap_or_default().to_vec()
    }
}
