//! A DrainRequest between the API's form and ours.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use scupper_api::DrainRequestRef;
use scupper_engine::{Condition, NamedPods};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::super::bounded::{Bounded, Budget};
use super::super::wire::{Meta, Object, parse_moment};
use super::DrainRequestObject;
use super::fields::fields;
use super::lean_meta::LeanMeta;

/// The label by which node-drainer finds its requests.
pub(super) const NODE_LABEL: &str = "nvsentinel.nvidia.com/node-name";

/// What is kept of one request: of its specification, its labels and annotations, and its conditions.
const SPEC_BYTES: usize = 256 * 1024;
const TEXTS_BYTES: usize = 64 * 1024;
const STATUS_BYTES: usize = 64 * 1024;

/// The fields of the specification that are read.
const FIELDS: &[&str] = &[
    "nodeName",
    "checkName",
    "errorCode",
    "recommendedAction",
    "healthEventID",
    "reason",
    "entitiesImpacted",
    "metadata",
    "podsToDrain",
];

/// A request. Only its metadata has a known form.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct WireRequest {
    metadata: Meta,
    spec: Value,
    status: Value,
    /// What it takes.
    pub(super) bytes: usize,
    /// Why it is too large to be served.
    too_large: Option<String>,
}

impl Object for WireRequest {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl<'de> Deserialize<'de> for WireRequest {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(WireVisitor)
    }
}

struct WireVisitor;

impl<'de> Visitor<'de> for WireVisitor {
    type Value = WireRequest;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a DrainRequest")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WireRequest, A::Error> {
        let mut request = WireRequest::default();
        let mut spec = Budget::new(SPEC_BYTES);
        let mut texts = Budget::new(TEXTS_BYTES);
        let mut status = Budget::new(STATUS_BYTES);
        while let Some(key) = map.next_key::<String>()? {
            let bounded = |budget, keys| Bounded { budget, keys };
            match key.as_str() {
                "metadata" => request.metadata = map.next_value_seed(LeanMeta(&mut texts))?,
                "spec" => request.spec = map.next_value_seed(bounded(&mut spec, Some(FIELDS)))?,
                "status" => {
                    request.status = map.next_value_seed(bounded(&mut status, Some(&["conditions"])))?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let left = spec.left() + texts.left() + status.left();
        request.bytes = (SPEC_BYTES + TEXTS_BYTES + STATUS_BYTES).saturating_sub(left);
        for (budget, what, most) in [
            (&spec, "spec has", SPEC_BYTES),
            (&texts, "metadata has labels and annotations of", TEXTS_BYTES),
            (&status, "status has conditions of", STATUS_BYTES),
        ] {
            if budget.is_exceeded() {
                request.refuse(format!("{what} more than {} KiB", most / 1024));
            }
        }
        Ok(request)
    }
}

impl WireRequest {
    /// It is for this node's driver.
    pub(super) fn is_for(&self, node: &str) -> bool {
        match self.spec.get("nodeName").and_then(Value::as_str) {
            Some(named) if !named.is_empty() => named == node,
            _ => self
                .metadata
                .labels
                .get(NODE_LABEL)
                .is_some_and(|labelled| labelled == node),
        }
    }

    /// Keeps only what an answer needs.
    pub(super) fn refuse(&mut self, problem: String) {
        self.too_large = Some(problem);
        self.bytes = 0;
        self.metadata.annotations.clear();
        self.metadata.labels.retain(|key, _| key == NODE_LABEL);
        if let Value::Object(spec) = &mut self.spec {
            spec.retain(|key, _| key == "nodeName");
        }
    }

    pub(in super::super) fn into_request(self) -> DrainRequestObject {
        let Self {
            metadata,
            spec,
            status,
            too_large,
            bytes: _,
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
            problem: too_large.or(problem),
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
