//! Who may do what. In this simulator a bearer token is the name of its user; without rules everybody may do everything.

use super::failure::Failure;
use super::selector::Selection;
use super::target::{Query, Target};

/// What is refused with 403. An empty field matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forbidden {
    /// The beginning of the user agent.
    pub user_agent: String,
    /// The user: what the client sends as bearer token.
    pub user: String,
    /// `get`, `list`, `create`, …
    pub verb: String,
    /// `pods`, `pods/eviction`, `lifecycleevents.lifecycle.k8s.io/status`.
    pub resource: String,
}

/// Who asks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asker {
    pub(crate) user: String,
    pub(crate) user_agent: String,
}

/// The name of the resource as rules and messages have it.
fn resource(target: &Target) -> String {
    match &target.subresource {
        Some(sub) => format!("{}/{sub}", target.kind.resource()),
        None => target.kind.resource(),
    }
}

/// Refuses what a rule, or the node authorizer, refuses.
pub(crate) fn check(
    rules: &[Forbidden],
    asker: &Asker,
    verb: &str,
    target: &Target,
    query: &Query,
) -> Result<(), Failure> {
    let resource = resource(target);
    let hit = |rule: &Forbidden| {
        asker.user_agent.starts_with(&rule.user_agent)
            && (rule.user.is_empty() || rule.user == asker.user)
            && (rule.verb.is_empty() || rule.verb == verb)
            && (rule.resource.is_empty() || rule.resource == resource)
    };
    if rules.iter().any(hit) || !node_may(asker, verb, target, query) {
        return Err(refusal(asker, verb, target));
    }
    Ok(())
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

/// What the node authorizer lets a kubelet (`system:node:NAME`) do with the kinds of SLM. Other kinds are not its matter here.
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
