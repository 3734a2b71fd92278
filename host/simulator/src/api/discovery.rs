//! Discovery: `/api`, `/apis`, `/version`, health.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::kinds::Kind;

/// The response for a discovery path.
pub(crate) fn answer(path: &str, kinds: &[Arc<Kind>]) -> Option<Value> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match parts.as_slice() {
        ["version"] => Some(version()),
        ["api"] => Some(json!({"kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}]})),
        ["apis"] => Some(json!({"kind": "APIGroupList", "apiVersion": "v1",
            "groups": groups(kinds).values().collect::<Vec<_>>()})),
        ["apis", group] => groups(kinds).remove(*group).map(|mut group| {
            if let Some(map) = group.as_object_mut() {
                map.insert("kind".to_owned(), "APIGroup".into());
                map.insert("apiVersion".to_owned(), "v1".into());
            }
            group
        }),
        ["api", version] => resources("", version, kinds),
        ["apis", group, version] => resources(group, version, kinds),
        _ => None,
    }
}

fn version() -> Value {
    json!({"major": "1", "minor": "37", "gitVersion": "v1.37.1", "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z", "goVersion": "none", "compiler": "none", "platform": "linux/amd64"})
}

fn groups(kinds: &[Arc<Kind>]) -> BTreeMap<String, Value> {
    let mut groups = BTreeMap::new();
    for kind in kinds.iter().filter(|it| !it.group.is_empty()) {
        let version = json!({"groupVersion": kind.api_version(), "version": kind.version});
        groups.entry(kind.group.clone()).or_insert_with(
            || json!({"name": kind.group, "versions": [version], "preferredVersion": version}),
        );
    }
    groups
}

fn resources(group: &str, version: &str, kinds: &[Arc<Kind>]) -> Option<Value> {
    let mut list = Vec::new();
    for kind in kinds
        .iter()
        .filter(|it| it.group == group && it.version == version)
    {
        list.push(json!({"name": kind.plural, "singularName": kind.kind.to_lowercase(), "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]}));
        if kind.status {
            list.push(
                json!({"name": format!("{}/status", kind.plural), "singularName": "",
                "namespaced": kind.namespaced, "kind": kind.kind, "verbs": ["get", "patch", "update"]}),
            );
        }
        if kind.kind == "Pod" {
            list.push(
                json!({"name": "pods/eviction", "singularName": "", "namespaced": true, "group": "policy",
                "version": "v1", "kind": "Eviction", "verbs": ["create"]}),
            );
        }
    }
    if list.is_empty() {
        return None;
    }
    let version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    Some(json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": list}))
}
