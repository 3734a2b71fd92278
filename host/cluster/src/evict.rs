//! Evicts or deletes one pod, and interprets the API server's answers.

use std::time::Duration;

use http::Request;
use http::header::CONTENT_TYPE;
use kube::core::Status;
use scupper_engine::{EvictAnswer, PodRef};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::client::Cluster;
use super::transport::{self, Fault, escaped, names_an_object};
use scupper_common::in_flight::Answered;

/// The server does everything but the last step.
const DRY_RUN: &str = "?dryRun=All";
/// The API server checks evictions as those of this user.
const IMPERSONATE_USER: &str = "Impersonate-User";

impl Cluster {
    /// Requests the eviction of the pod with this UID.
    pub(super) async fn evict(&self, pod: &PodRef, grace_seconds: Option<u64>) -> EvictAnswer {
        self.ask_to_evict(pod, grace_seconds, "").await
    }

    /// Deletes the pod with this UID, bypassing its budgets.
    pub(super) async fn delete(&self, pod: &PodRef, grace_seconds: Option<u64>) -> EvictAnswer {
        self.ask_to_delete(pod, grace_seconds, "").await
    }

    /// Returns the API server's current answer to an eviction of the pod. Changes nothing, and consumes no budget.
    pub async fn would_evict(&self, pod: &PodRef, grace_seconds: Option<u64>) -> EvictAnswer {
        self.ask_to_evict(pod, grace_seconds, DRY_RUN).await
    }

    /// Returns the API server's current answer to a deletion of the pod. Changes nothing.
    pub async fn would_delete(&self, pod: &PodRef, grace_seconds: Option<u64>) -> EvictAnswer {
        self.ask_to_delete(pod, grace_seconds, DRY_RUN).await
    }

    async fn ask_to_evict(&self, pod: &PodRef, grace_seconds: Option<u64>, query: &str) -> EvictAnswer {
        let path = format!("{}/eviction{query}", path(pod));
        let body = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": pod.namespace, "name": pod.name},
            "deleteOptions": options(pod, grace_seconds),
        });
        let mut request = Request::post(path);
        if let Some(user) = &self.options().evict_as {
            request = request.header(IMPERSONATE_USER, user);
        }
        self.remove(request, &body).await
    }

    async fn ask_to_delete(&self, pod: &PodRef, grace_seconds: Option<u64>, query: &str) -> EvictAnswer {
        let mut body = options(pod, grace_seconds);
        if let Some(body) = body.as_object_mut() {
            body.insert("apiVersion".to_owned(), json!("v1"));
            body.insert("kind".to_owned(), json!("DeleteOptions"));
        }
        self.remove(Request::delete(format!("{}{query}", path(pod))), &body)
            .await
    }

    async fn remove(&self, request: http::request::Builder, body: &Value) -> EvictAnswer {
        let request = match request
            .header(CONTENT_TYPE, "application/json")
            .body(body.to_string().into_bytes())
        {
            Ok(request) => request,
            Err(error) => return refused(400, format!("no request can be made of it: {error}"), None),
        };
        let ticket = self.in_flight(|in_flight| in_flight.sent());
        let begun = Instant::now();
        let answer = match transport::send(self.client(), request, self.eviction_timeout()).await {
            Ok(reply) if reply.is_success() => EvictAnswer::Accepted,
            Ok(reply) => classify(reply.code, reply.retry_after, &reply.status()),
            Err(Fault::Unreachable(message) | Fault::Malformed(message)) => {
                EvictAnswer::Unreachable { message }
            }
            Err(Fault::Refused(code, status)) => classify(code, None, &status),
        };
        let answered = load_of(&answer, begun.elapsed());
        let now = self.now();
        self.in_flight(|in_flight| in_flight.answered(&ticket, answered, now));
        answer
    }
}

/// Derives the server's load from an answer. A webhook that refuses has done its work as well; the other refusals come
/// before most of it.
const fn load_of(answer: &EvictAnswer, after: Duration) -> Answered {
    match answer {
        EvictAnswer::Unreachable { .. }
        | EvictAnswer::Throttled { .. }
        | EvictAnswer::Refused { code: 503 | 504, .. } => Answered::Overloaded,
        EvictAnswer::Accepted | EvictAnswer::Refused { .. } => Answered::After(after),
        EvictAnswer::BudgetExhausted { .. }
        | EvictAnswer::BudgetNotObserved { .. }
        | EvictAnswer::MoreThanOneBudget { .. }
        | EvictAnswer::NotFound
        | EvictAnswer::UidMismatch { .. }
        | EvictAnswer::Forbidden { .. }
        | EvictAnswer::NamespaceTerminating { .. } => Answered::Early,
    }
}

fn path(pod: &PodRef) -> String {
    format!(
        "/api/v1/namespaces/{}/pods/{}",
        escaped(&pod.namespace),
        escaped(&pod.name)
    )
}

fn options(pod: &PodRef, grace_seconds: Option<u64>) -> Value {
    let mut options = json!({"preconditions": {"uid": pod.uid.as_str()}});
    if let (Some(seconds), Some(options)) = (grace_seconds, options.as_object_mut()) {
        options.insert("gracePeriodSeconds".to_owned(), json!(seconds));
    }
    options
}

/// Interprets the answer to an eviction or a deletion.
fn classify(code: u16, retry_after: Option<Duration>, status: &Status) -> EvictAnswer {
    let message = status.message.clone();
    let details = status.details.as_ref();
    let retry_after = retry_after.or_else(|| {
        let seconds = details.map_or(0, |details| details.retry_after_seconds);
        (seconds > 0).then(|| Duration::from_secs(seconds.into()))
    });
    let cause = |reason: &str| details?.causes.iter().find(|cause| cause.reason == reason);
    match code {
        200..300 => EvictAnswer::Accepted,
        _ if is_by_webhook(&message) => refused(code, message, retry_after),
        // A wrong path or a proxy also answers 404: only an answer that names the object shows that the pod is gone.
        404 if names_an_object(status) => EvictAnswer::NotFound,
        409 if message.contains("UID in the precondition") => EvictAnswer::UidMismatch { message },
        401 => EvictAnswer::Forbidden { message },
        403 if cause("NamespaceTerminating").is_some() => EvictAnswer::NamespaceTerminating { message },
        403 => EvictAnswer::Forbidden { message },
        429 => match (cause("DisruptionBudget"), retry_after) {
            (None, retry_after) => EvictAnswer::Throttled { message, retry_after },
            (Some(cause), None) => EvictAnswer::BudgetExhausted {
                budget: budget_name(&cause.message).to_owned(),
                message: joined(&message, &cause.message),
            },
            (Some(cause), Some(retry_after)) => EvictAnswer::BudgetNotObserved {
                message: joined(&message, &cause.message),
                retry_after,
            },
        },
        500 if message.contains("more than one PodDisruptionBudget") => {
            EvictAnswer::MoreThanOneBudget { message }
        }
        _ => refused(code, message, retry_after),
    }
}

const fn refused(code: u16, message: String, retry_after: Option<Duration>) -> EvictAnswer {
    EvictAnswer::Refused {
        code,
        message,
        retry_after,
    }
}

/// True if an admission webhook or policy has refused it, with whatever code.
fn is_by_webhook(message: &str) -> bool {
    message.starts_with("admission webhook ")
        || message.starts_with("failed calling webhook")
        || message.contains("failed calling webhook ")
        || message.contains("ValidatingAdmissionPolicy '")
}

/// Returns the name in "The disruption budget NAME needs …"; empty for any other text.
fn budget_name(cause: &str) -> &str {
    let rest = cause.strip_prefix("The disruption budget ").unwrap_or_default();
    rest.split_whitespace().next().unwrap_or_default()
}

/// Joins the server's two sentences: the first says what, the second which budget and why.
fn joined(message: &str, cause: &str) -> String {
    if cause.is_empty() {
        message.to_owned()
    } else {
        format!("{message} {cause}")
    }
}

#[cfg(test)]
mod tests;
