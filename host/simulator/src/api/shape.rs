//! The shape of a response: whole objects, or only their metadata.

use serde_json::{Value, json};

use super::kinds::Kind;

/// The requested shape, from the `Accept` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Whole,
    Metadata,
}

impl Shape {
    /// The first of the accepted types that is served.
    pub(crate) fn parse(accept: &str) -> Self {
        for wanted in accept.split(',') {
            if wanted.contains("as=PartialObjectMetadata") {
                return Self::Metadata;
            }
            if !wanted.contains("as=") && (wanted.contains("json") || wanted.contains("*/*")) {
                return Self::Whole;
            }
        }
        Self::Whole
    }

    pub(crate) fn object(self, object: &Value) -> Value {
        match self {
            Self::Whole => object.clone(),
            Self::Metadata => json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                "metadata": object.get("metadata").cloned().unwrap_or_default()}),
        }
    }

    /// An entry of a list: kinds of the core omit their kind.
    pub(crate) fn item(self, kind: &Kind, object: &Value) -> Value {
        let mut item = self.object(object);
        if self == Self::Whole
            && !kind.custom
            && let Some(map) = item.as_object_mut()
        {
            map.remove("kind");
            map.remove("apiVersion");
        }
        item
    }

    /// Kind and version of a list.
    pub(crate) fn list(self, kind: &Kind) -> (String, String) {
        match self {
            Self::Whole => (format!("{}List", kind.kind), kind.api_version()),
            Self::Metadata => (
                "PartialObjectMetadataList".to_owned(),
                "meta.k8s.io/v1".to_owned(),
            ),
        }
    }

    /// The object of a BOOKMARK. That of a pod has `containers: null`, as on a real server.
    pub(crate) fn bookmark(self, kind: &Kind, version: u64, end_of_initial: bool) -> Value {
        let mut metadata = json!({"resourceVersion": version.to_string()});
        if end_of_initial && let Some(map) = metadata.as_object_mut() {
            map.insert(
                "annotations".to_owned(),
                json!({"k8s.io/initial-events-end": "true"}),
            );
        }
        if self == Self::Metadata {
            return json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata});
        }
        let mut object = json!({"kind": kind.kind, "apiVersion": kind.api_version(), "metadata": metadata});
        if kind.kind == "Pod"
            && let Some(map) = object.as_object_mut()
        {
            map.insert("spec".to_owned(), json!({"containers": null}));
            map.insert("status".to_owned(), json!({}));
        }
        object
    }
}
