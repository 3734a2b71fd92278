//! Decodes objects from files, such as the output of `kubectl get -o json`, into the same types as those of the watch.

use scupper_api::facts::{FactObject, PodSpec};
use scupper_engine::{Node, Pod};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

use super::DrainRequestObject;
use super::drain_requests::WireRequest;
use super::facts::Resource;
use super::node::WireNode;
use super::pod::WirePod;
use super::pod_specs::WirePodSpec;
use super::wire::Meta;

/// An object that matters for a drain.
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    /// A node.
    Node(Box<Node>),
    /// A pod.
    Pod {
        /// As drains see it.
        pod: Box<Pod>,
        /// What drains do not need.
        spec: PodSpec,
    },
    /// A DrainRequest.
    DrainRequest(Box<DrainRequestObject>),
    /// One that policies may ask about.
    Fact(FactObject),
    /// Any other object.
    Other {
        /// Its `kind`.
        kind: String,
    },
}

/// The reason why an object cannot be read.
#[derive(Debug, Error)]
pub enum DecodeError {
    /// It has no `kind`, so it is not an object.
    #[error("an object has no kind")]
    NoKind,
    /// It has no name.
    #[error("a {0} has no metadata.name")]
    NoName(String),
    /// A field has the wrong type.
    #[error("the {kind} {name} is not a valid API object")]
    Field {
        /// Its `kind`.
        kind: String,
        /// Its `metadata.name`.
        name: String,
        /// The cause.
        #[source]
        source: serde_json::Error,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    metadata: Meta,
}

/// Decodes an object, or every item of a list.
pub fn decode(value: Value) -> Result<Vec<Object>, DecodeError> {
    let kind = value.get("kind").and_then(Value::as_str).unwrap_or_default();
    if kind.is_empty() {
        return Err(DecodeError::NoKind);
    }
    let kind = kind.to_owned();
    match (kind.strip_suffix("List"), value) {
        (Some(of), Value::Object(mut list)) => {
            let Some(Value::Array(items)) = list.remove("items") else {
                return Ok(Vec::new());
            };
            let objects = items.into_iter().map(|item| decode(with_kind(item, of)));
            Ok(objects.collect::<Result<Vec<_>, _>>()?.concat())
        }
        (_, value) => Ok(vec![one(kind, value)?]),
    }
}

/// Adds the kind: the items of a `PodList` do not have one.
fn with_kind(mut item: Value, kind: &str) -> Value {
    if let Value::Object(fields) = &mut item
        && !kind.is_empty()
    {
        fields.entry("kind").or_insert_with(|| kind.into());
    }
    item
}

fn one(kind: String, value: Value) -> Result<Object, DecodeError> {
    let head: Head = typed(&kind, "", value.clone())?;
    let name = head.metadata.name.clone();
    if name.is_empty() {
        return Err(DecodeError::NoName(kind));
    }
    let unreadable = |source| DecodeError::Field {
        kind: kind.clone(),
        name: name.clone(),
        source,
    };
    Ok(match kind.as_str() {
        "Node" => Object::Node(Box::new(typed::<WireNode>(&kind, &name, value)?.into_engine().0)),
        "Pod" => Object::Pod {
            spec: typed::<WirePodSpec>(&kind, &name, value.clone())?.into_spec(),
            pod: Box::new(typed::<WirePod>(&kind, &name, value)?.into_engine()),
        },
        "DrainRequest" => {
            let request = typed::<WireRequest>(&kind, &name, value)?.into_request();
            Object::DrainRequest(Box::new(request))
        }
        _ => match Resource::of_object(&head.api_version, &kind) {
            Some((of, resource)) => Object::Fact((resource.decode)(value, &of).map_err(unreadable)?),
            None => Object::Other { kind },
        },
    })
}

fn typed<T: DeserializeOwned>(kind: &str, name: &str, value: Value) -> Result<T, DecodeError> {
    serde_json::from_value(value).map_err(|source| DecodeError::Field {
        kind: kind.to_owned(),
        name: name.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lists_of_either_kind_are_read() {
        let pod = json!({"metadata": {"namespace": "shop", "name": "cart"}, "spec": {"nodeName": "a"}});
        let mut named = pod.clone();
        named["kind"] = json!("Pod");
        let items = |list: Value| decode(list).unwrap();
        let typed = items(json!({"kind": "PodList", "items": [pod]}));
        let mixed =
            items(json!({"kind": "List", "items": [named, {"kind": "Service", "metadata": {"name": "x"}}]}));
        let [Object::Pod { pod, .. }] = &typed[..] else {
            panic!("{typed:?}")
        };
        assert_eq!(pod.id.to_string(), "shop/cart");
        assert_eq!(mixed[0], typed[0]);
        assert_eq!(
            mixed[1],
            Object::Other {
                kind: "Service".to_owned()
            }
        );
    }

    #[test]
    fn unreadable_objects_are_named() {
        let wrong = |value| decode(value).unwrap_err().to_string();
        assert_eq!(wrong(json!({"metadata": {}})), "an object has no kind");
        assert_eq!(wrong(json!({"kind": "Pod"})), "a Pod has no metadata.name");
        let pod = json!({"kind": "Pod", "metadata": {"name": "cart"}, "spec": {"priority": "high"}});
        assert_eq!(wrong(pod), "the Pod cart is not a valid API object");
    }
}
