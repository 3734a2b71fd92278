//! The servers of a scenario: they answer a policy's requests from a list, in its order.

use serde_json::Value;

use super::form::{AnswerForm, NoAnswer};
use super::values::matches;
use scupper_policy::HttpMockAnswer;

/// The list, and the requests so far.
#[derive(Debug, Default)]
pub(super) struct MockServers {
    waiting: Vec<(AnswerForm, Option<u32>)>,
    /// The requests: `METHOD URL`.
    pub(super) sent: Vec<String>,
}

impl MockServers {
    /// Adds an answer after the existing ones.
    pub(super) fn add(&mut self, form: &AnswerForm) {
        let times = match form.times {
            Some(0) => None,
            Some(times) => Some(times),
            None => Some(1),
        };
        self.waiting.push((form.clone(), times));
    }

    /// The first matching answer that has uses left.
    pub(super) fn take(&mut self, method: &str, url: &str) -> HttpMockAnswer {
        let asked = format!("{method} {url}");
        self.sent.push(asked.clone());
        let fits =
            |(form, times): &&mut (AnswerForm, Option<u32>)| *times != Some(0) && matches(&form.to, &asked);
        let Some((form, times)) = self.waiting.iter_mut().find(fits) else {
            return HttpMockAnswer::Unreachable(format!("the scenario has no answer to {asked}"));
        };
        if let Some(times) = times {
            *times -= 1;
        }
        let message = || format!("so the scenario says of {asked}");
        match form.error {
            Some(NoAnswer::Broken) => HttpMockAnswer::Broken(message()),
            Some(NoAnswer::Timeout) => HttpMockAnswer::Timeout(message()),
            Some(NoAnswer::Unreachable) => HttpMockAnswer::Unreachable(message()),
            None => HttpMockAnswer::Response {
                status: form.status,
                headers: form.headers.clone().into_iter().collect(),
                body: match &form.body {
                    Value::Null => Vec::new(),
                    Value::String(text) => text.clone().into_bytes(),
                    other => other.to_string().into_bytes(),
                },
            },
        }
    }
}
