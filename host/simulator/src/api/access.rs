//! Authorization. In this simulator a bearer token is the name of its user; without rules everything is allowed.

use serde_json::{Value, json};

use super::failure::Failure;
use super::selector::Selection;
use super::target::{Query, Target};

/// A rule for requests that are refused with 403. An empty field matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forbidden {
    /// The beginning of the user agent.
    pub user_agent: String,
    /// The user: the client's bearer token.
    pub user: String,
    /// `get`, `list`, `create`, …
    pub verb: String,
    /// `pods`, `pods/eviction`, `lifecycleevents.lifecycle.k8s.io/status`.
    pub resource: String,
}

impl Forbidden {
    fn hits(&self, asker: &Asker, verb: &str, resource: &str) -> bool {
        asker.user_agent.starts_with(&self.user_agent)
            && (self.user.is_empty() || self.user == asker.user)
            && (self.verb.is_empty() || self.verb == verb)
            && (self.resource.is_empty() || self.resource == resource)
    }
}

/// All that a user may do, as a ClusterRole says it.
#[derive(Clone, Debug)]
pub(crate) struct Allowed {
    pub(crate) user: String,
    /// Verb and resource, as in [`Forbidden`].
    pub(crate) rights: Vec<(String, String)>,
}

/// A rule that refuses requests.
#[derive(Clone, Debug)]
pub(crate) enum Rule {
    Forbidden(Forbidden),
    AllBut(Allowed),
}

impl Rule {
    fn hits(&self, asker: &Asker, verb: &str, resource: &str) -> bool {
        match self {
            Self::Forbidden(rule) => rule.hits(asker, verb, resource),
            Self::AllBut(allowed) => {
                let rights = &allowed.rights;
                allowed.user == asker.user && !rights.iter().any(|it| it.0 == verb && it.1 == resource)
            }
        }
    }
}

/// The client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asker {
    pub(crate) user: String,
    pub(crate) user_agent: String,
}

/// The name of the resource in rules and messages.
fn resource(target: &Target) -> String {
    match &target.subresource {
        Some(sub) => format!("{}/{sub}", target.kind.resource()),
        None => target.kind.resource(),
    }
}

/// Refuses a request if a rule or the node authorizer does.
pub(crate) fn check(
    rules: &[Rule],
    asker: &Asker,
    verb: &str,
    target: &Target,
    query: &Query,
) -> Result<(), Failure> {
    let resource = resource(target);
    if rules.iter().any(|rule| rule.hits(asker, verb, &resource)) || !node_may(asker, verb, target, query) {
        return Err(refusal(asker, verb, target));
    }
    Ok(())
}

/// The response to a SelfSubjectAccessReview, from the rules without the node authorizer.
pub(crate) fn review(rules: &[Rule], asker: &Asker, mut review: Value) -> Value {
    let attributes = review
        .pointer("/spec/resourceAttributes")
        .cloned()
        .unwrap_or_default();
    let text = |field: &str| attributes.get(field).and_then(Value::as_str).unwrap_or_default();
    let mut resource = text("resource").to_owned();
    for (between, part) in [(".", text("group")), ("/", text("subresource"))] {
        if !part.is_empty() {
            resource = format!("{resource}{between}{part}");
        }
    }
    let allowed = !rules.iter().any(|rule| rule.hits(asker, text("verb"), &resource));
    if let Some(review) = review.as_object_mut() {
        review.insert("status".to_owned(), json!({ "allowed": allowed }));
    }
    review
}

/// The response to a SelfSubjectReview.
pub(crate) fn own_name(asker: &Asker) -> Value {
    json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "SelfSubjectReview",
        "status": {"userInfo": {"username": asker.user}},
    })
}

fn refusal(asker: &Asker, verb: &str, target: &Target) -> Failure {
    let kind = &target.kind;
    let plural = match &target.subresource {
        Some(sub) => format!("{}/{sub}", kind.plural),
        None => kind.plural.clone(),
    };
    let place = match &target.namespace {
        Some(namespace) => format!("in the namespace \"{namespace}\""),
        None => "at the cluster scope".to_owned(),
    };
    let user = &asker.user;
    let why = format!(
        "User \"{user}\" cannot {verb} resource \"{plural}\" in API group \"{}\" {place}",
        kind.group
    );
    Failure::forbidden(kind, target.name.as_deref().unwrap_or_default(), &why)
}

/// Whether the node authorizer allows a kubelet (`system:node:NAME`) a request for a kind of SLM. It ignores other kinds here.
fn node_may(asker: &Asker, verb: &str, target: &Target, query: &Query) -> bool {
    let Some(node) = asker.user.strip_prefix("system:node:") else {
        return true;
    };
    let bound_by = |field: &str| {
        Selection::parse(&target.kind, "", query.text("fieldSelector"))
            .is_ok_and(|it| it.required(field) == Some(node))
    };
    match (target.kind.kind.as_str(), target.subresource.as_deref(), verb) {
        ("LifecycleEvent", None, "get" | "update" | "delete") => true,
        ("LifecycleEvent", Some("status"), "get" | "update" | "patch") => true,
        ("LifecycleEvent", None, "list" | "watch") => bound_by("spec.bindingNode"),
        ("LifecycleTransition", None, "get") => true,
        ("LifecycleTransition", None, "list" | "watch" | "deletecollection") => bound_by("spec.nodeName"),
        ("LifecycleEvent" | "LifecycleTransition", _, _) => false,
        _ => true,
    }
}
