//! Counts requests to the API server by verb, resource and answer, all from closed lists.

use std::fmt;
use std::sync::Arc;

use http::{Method, Request};

/// Called for each request when it is answered or has failed.
#[derive(Clone)]
pub struct RequestObserver(Arc<dyn Fn(ApiRequest) + Send + Sync>);

/// One request and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApiRequest {
    /// `get`, `list`, `watch`, `create`, `patch`, `update`, `delete` or `other`.
    pub verb: &'static str,
    /// The resource, such as `pods/eviction`; `other` for one that the driver does not use.
    pub resource: &'static str,
    /// The HTTP status; `None` if no answer came.
    pub code: Option<u16>,
}

/// The resources that the driver uses.
const RESOURCES: [&str; 20] = [
    "nodes",
    "nodes/status",
    "pods",
    "pods/eviction",
    "poddisruptionbudgets",
    "daemonsets",
    "lifecycleevents",
    "lifecycleevents/status",
    "lifecycletransitions",
    "events",
    "leases",
    "namespaces",
    "replicasets",
    "deployments",
    "statefulsets",
    "jobs",
    "cronjobs",
    "replicationcontrollers",
    "volumeattachments",
    "persistentvolumes",
];

impl RequestObserver {
    /// Creates an observer from this function.
    pub fn new(observe: impl Fn(ApiRequest) + Send + Sync + 'static) -> Self {
        Self(Arc::new(observe))
    }

    pub(super) fn observe(&self, request: ApiRequest) {
        (self.0)(request);
    }
}

impl fmt::Debug for RequestObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestObserver")
    }
}

impl ApiRequest {
    /// Describes a request before its answer.
    pub(super) fn of<B>(request: &Request<B>) -> Self {
        let (resource, named) = target(request.uri().path());
        let is_watch = request
            .uri()
            .query()
            .is_some_and(|query| query.contains("watch=1"));
        let verb = match *request.method() {
            Method::GET if is_watch => "watch",
            Method::GET if named => "get",
            Method::GET => "list",
            Method::POST => "create",
            Method::PATCH => "patch",
            Method::PUT => "update",
            Method::DELETE => "delete",
            _ => "other",
        };
        Self {
            verb,
            resource,
            code: None,
        }
    }
}

/// Returns the resource of a path, and whether the path names one object.
fn target(path: &str) -> (&'static str, bool) {
    let mut parts = path.trim_matches('/').split('/');
    let skipped = match parts.next() {
        Some("api") => parts.next(),
        Some("apis") => parts.next().and_then(|_| parts.next()),
        _ => None,
    };
    let rest: Vec<_> = parts.collect();
    let rest = match rest.as_slice() {
        ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
        rest => rest,
    };
    let (found, named) = match (skipped, rest) {
        (Some(_), [resource]) => ((*resource).to_owned(), false),
        (Some(_), [resource, _]) => ((*resource).to_owned(), true),
        (Some(_), [resource, _, sub]) => (format!("{resource}/{sub}"), true),
        _ => (String::new(), false),
    };
    let known = RESOURCES.iter().find(|known| **known == found);
    (known.copied().unwrap_or("other"), named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_labelled_by_resource_and_verb() {
        for (method, path, verb, resource) in [
            ("GET", "/api/v1/pods?watch=1&x=y", "watch", "pods"),
            ("GET", "/api/v1/nodes/worker-1", "get", "nodes"),
            (
                "PATCH",
                "/api/v1/nodes/worker-1/status?a=b",
                "patch",
                "nodes/status",
            ),
            (
                "POST",
                "/api/v1/namespaces/shop/pods/web-1/eviction",
                "create",
                "pods/eviction",
            ),
            ("DELETE", "/api/v1/namespaces/shop/pods/web-1", "delete", "pods"),
            ("GET", "/apis/apps/v1/daemonsets?limit=500", "list", "daemonsets"),
            (
                "POST",
                "/apis/events.k8s.io/v1/namespaces/default/events",
                "create",
                "events",
            ),
            (
                "GET",
                "/apis/lifecycle.k8s.io/v1alpha1/lifecycleevents/a",
                "get",
                "lifecycleevents",
            ),
            ("GET", "/version", "list", "other"),
            ("GET", "/api/v1/namespaces/shop/secrets/s", "get", "other"),
        ] {
            let request = Request::builder().method(method).uri(path).body(()).unwrap();
            let expected = ApiRequest {
                verb,
                resource,
                code: None,
            };
            assert_eq!(ApiRequest::of(&request), expected, "{method} {path}");
        }
    }
}
