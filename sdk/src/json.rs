//! Hook state and HTTP bodies in JSON, with the feature `json`.
//!
//! ```
//! use scupper_sdk::{*, http::Request};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Progress { migration: String, since: Timestamp }
//!
//! #[derive(Deserialize)]
//! struct Migration { id: String, status: String }
//!
//! fn step(call: &Call) -> Result<Outcome, String> {
//!     let progress: Option<Progress> = call.json_state()?;
//!     let response = Request::get("https://cloud.example.com/migrations/1").send().map_err(|error| error.to_string())?;
//!     let migration: Migration = response.json()?;
//!     if migration.status == "completed" {
//!         return Ok(Outcome::Done);
//!     }
//!     let since = progress.map_or(call.drain.now, |progress| progress.since);
//!     let progress = Progress { migration: migration.id, since };
//!     Ok(Outcome::pending(migration.status).json_state(&progress)?.into())
//! }
//! ```

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Call, Pending,
    http::{Request, Response},
};

impl Call {
    /// The state that the previous step of this hook saved; `None` at the first step. It is an error if this version
    /// cannot read a state that an older version saved: raise [`Description::state_version`](crate::Description).
    pub fn json_state<T: DeserializeOwned>(&self) -> Result<Option<T>, String> {
        if self.state.is_empty() {
            return Ok(None);
        }
        let state = serde_json::from_slice(&self.state);
        state
            .map(Some)
            .map_err(|error| format!("the hook's state cannot be read: {error}"))
    }
}

impl Pending {
    /// Saves this state for the next call: at most 1024 bytes of JSON.
    pub fn json_state<T: Serialize>(self, state: &T) -> Result<Self, String> {
        let state =
            serde_json::to_vec(state).map_err(|error| format!("the hook's state cannot be kept: {error}"))?;
        Ok(self.state(state))
    }
}

impl Request {
    /// Sets a JSON body, and the header `content-type`.
    pub fn json<T: Serialize>(self, body: &T) -> Result<Self, String> {
        let body = serde_json::to_vec(body).map_err(|error| format!("the request's body: {error}"))?;
        Ok(self.json_body(body))
    }
}

impl Response {
    /// Parses the body as JSON. The error contains the status, which often explains more than the body.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, String> {
        let body = serde_json::from_slice(&self.body);
        body.map_err(|error| {
            format!(
                "the response (status {}) is not as expected: {error}",
                self.status
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outcome, testing::Host};

    #[test]
    fn state_survives_as_json_and_the_first_step_has_none() {
        let pending = Outcome::pending("").json_state(&vec![1_u8, 2]).unwrap();
        assert_eq!(pending.state, b"[1,2]");
        let host = Host::new();
        let mut call = host.call(crate::Phase::BeforeDrain, crate::Subject::Node);
        assert_eq!(call.json_state::<Vec<u8>>(), Ok(None));
        call.state = pending.state;
        assert_eq!(call.json_state(), Ok(Some(vec![1_u8, 2])));
        call.state = b"{".to_vec();
        assert!(
            call.json_state::<Vec<u8>>()
                .unwrap_err()
                .contains("cannot be read")
        );
    }

    #[test]
    fn bodies_are_json_and_the_error_for_an_invalid_one_contains_the_status() {
        let request = Request::post("https://example.com/").json(&["a"]).unwrap();
        assert_eq!(request.body, br#"["a"]"#);
        assert_eq!(Response::new(200, "[1]").json(), Ok(vec![1]));
        let error = Response::new(502, "<html>").json::<Vec<u8>>().unwrap_err();
        assert!(error.contains("status 502"), "{error}");
    }
}
