//! A DrainRequest between the API's form and ours.

use std::collections::BTreeSet;
use std::sync::Arc;

use scupper_engine::{Condition, NamedPods};
use serde::Deserialize;
use serde_json::Value;

use super::super::wire::{Meta, Object, parse_moment};
use super::fields::fields;
use super::{DrainRequestObject, DrainRequestRef};

/// The label by which node-drainer finds its requests.
const NODE_LABEL: &str = "nvsentinel.nvidia.com/node-name";

/// A request. Only its metadata has a known form.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(in super::super) struct WireRequest {
    metadata: Meta,
    spec: Value,
    status: Value,
}

impl Object for WireRequest {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl WireRequest {
    pub(in super::super) fn into_request(self) -> DrainRequestObject {
        let Self {
            metadata,
            spec,
            status,
        } = self;
        let (node, problem) = match node_name(&spec) {
            Ok(node) => (node.to_owned(), None),
            // Only the label says whose driver can answer.
            Err(problem) => {
                let labelled = metadata.labels.get(NODE_LABEL).cloned();
                (labelled.unwrap_or_default(), Some(problem))
            }
        };
        let pods = named_pods(spec.get("podsToDrain"));
        let known = pods.as_ref().cloned().unwrap_or_default();
        DrainRequestObject {
            fields: Arc::new(fields(&metadata, &spec, known)),
            created: metadata.creation_timestamp,
            deleting: metadata.deletion_timestamp.is_some(),
            node,
            problem,
            pods,
            conditions: conditions(&status),
            reference: DrainRequestRef {
                namespace: metadata.namespace,
                name: metadata.name,
                uid: metadata.uid,
            },
        }
    }
}

fn node_name(spec: &Value) -> Result<&str, String> {
    match spec.get("nodeName") {
        Some(Value::String(node)) if !node.is_empty() => Ok(node),
        None | Some(Value::Null | Value::String(_)) => Err("spec.nodeName is missing".to_owned()),
        Some(other) => Err(format!(
            "spec.nodeName must be the name of a node, and is {}",
            what(other)
        )),
    }
}

fn named_pods(pods: Option<&Value>) -> Result<NamedPods, String> {
    let wrong = |found: &Value| {
        format!(
            "spec.podsToDrain must be a map of namespaces to lists of pod names, and has {}",
            what(found)
        )
    };
    let namespaces = match pods {
        None | Some(Value::Null) => return Ok(NamedPods::new()),
        Some(Value::Object(namespaces)) => namespaces,
        Some(other) => return Err(wrong(other)),
    };
    let mut all = NamedPods::new();
    for (namespace, names) in namespaces {
        let names = match names {
            Value::Null => continue,
            Value::Array(names) => names,
            other => return Err(wrong(other)),
        };
        let name = |name: &Value| name.as_str().map(str::to_owned).ok_or_else(|| wrong(name));
        let names: BTreeSet<_> = names.iter().map(name).collect::<Result<_, _>>()?;
        all.insert(namespace.clone(), names);
    }
    Ok(all)
}

/// Its conditions; an entry that is none is left out.
fn conditions(status: &Value) -> Vec<Condition> {
    let conditions = status.get("conditions").and_then(Value::as_array);
    let text = |condition: &Value, key: &str| condition.get(key)?.as_str().map(str::to_owned);
    let condition = |condition: &Value| {
        let since = text(condition, "lastTransitionTime");
        Some(Condition {
            kind: text(condition, "type")?,
            status: text(condition, "status")?,
            reason: text(condition, "reason").unwrap_or_default(),
            message: text(condition, "message").unwrap_or_default(),
            since: since.and_then(|since| parse_moment(&since).ok()),
        })
    };
    conditions.into_iter().flatten().filter_map(condition).collect()
}

const fn what(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}
