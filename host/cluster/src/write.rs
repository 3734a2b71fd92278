//! Writes as patches only, so that fields of other writers stay unchanged, each as `scupper` in the managed fields.

use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE};
use scupper_engine::PodRef;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::transport::{self, Fault, escaped};
use super::wire::MetaOnly;
use super::{Cluster, WriteError};

/// The driver's name in `metadata.managedFields`.
pub(super) const FIELD_MANAGER: &str = "scupper";

/// How a patch is merged.
#[derive(Clone, Copy, Debug)]
pub(super) enum Merge {
    /// RFC 7386
    Json,
    /// Lists are merged by their keys, conditions by their type.
    Strategic,
}

impl Merge {
    const fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
        }
    }
}

impl Cluster {
    /// Sets an annotation of the node.
    pub async fn set_node_annotation(&self, node: &str, key: &str, value: &str) -> Result<(), WriteError> {
        self.annotate_node(node, key, json!(value)).await
    }

    /// Removes an annotation of the node.
    pub async fn remove_node_annotation(&self, node: &str, key: &str) -> Result<(), WriteError> {
        self.annotate_node(node, key, Value::Null).await
    }

    /// Sets an annotation of a pod that still has this UID.
    pub async fn set_pod_annotation(&self, pod: &PodRef, key: &str, value: &str) -> Result<(), WriteError> {
        self.annotate_pod(pod, key, json!(value)).await
    }

    /// Removes an annotation of a pod that still has this UID.
    pub async fn remove_pod_annotation(&self, pod: &PodRef, key: &str) -> Result<(), WriteError> {
        self.annotate_pod(pod, key, Value::Null).await
    }

    async fn annotate_node(&self, node: &str, key: &str, value: Value) -> Result<(), WriteError> {
        let patch = json!({"metadata": {"annotations": {key: value}}});
        let written = self
            .patch::<MetaOnly>(&format!("/api/v1/nodes/{}", escaped(node)), Merge::Json, &patch)
            .await;
        written
            .map(|_| ())
            .map_err(|fault| fault.write(&format!("annotate node {node}")))
    }

    async fn annotate_pod(&self, pod: &PodRef, key: &str, value: Value) -> Result<(), WriteError> {
        let what = format!("annotate pod {pod}");
        // The UID is immutable, so the server refuses the patch (422) for another pod.
        let patch = json!({"metadata": {"uid": pod.uid.as_str(), "annotations": {key: value}}});
        let path = format!(
            "/api/v1/namespaces/{}/pods/{}",
            escaped(&pod.namespace),
            escaped(&pod.name)
        );
        match self.patch::<MetaOnly>(&path, Merge::Json, &patch).await {
            Ok(_) => Ok(()),
            Err(fault) if fault.is_of_another_uid() => Err(WriteError::Conflict {
                what,
                message: fault.write("").to_string(),
            }),
            Err(fault) => Err(fault.write(&what)),
        }
    }

    /// Patches one object and returns the result.
    pub(super) async fn patch<T: DeserializeOwned>(
        &self,
        path: &str,
        merge: Merge,
        patch: &Value,
    ) -> Result<T, Fault> {
        let request = Request::patch(format!("{path}?fieldManager={FIELD_MANAGER}"))
            .header(CONTENT_TYPE, merge.content_type());
        self.write(request, patch).await
    }

    /// Creates one object.
    pub(super) async fn create<T: DeserializeOwned>(&self, path: &str, object: &Value) -> Result<T, Fault> {
        let request = Request::post(format!("{path}?fieldManager={FIELD_MANAGER}"));
        self.write(request.header(CONTENT_TYPE, "application/json"), object)
            .await
    }

    /// Deletes one object if it still has this UID; `None` accepts any. A missing one is no error.
    pub(super) async fn delete_object(
        &self,
        path: &str,
        uid: Option<&str>,
        what: &str,
    ) -> Result<(), WriteError> {
        let preconditions = uid.map_or(Value::Null, |uid| json!({ "uid": uid }));
        self.delete_if(path, preconditions, what).await
    }

    /// Deletes one object if it meets the preconditions. A missing one is no error.
    pub(super) async fn delete_if(
        &self,
        path: &str,
        preconditions: Value,
        what: &str,
    ) -> Result<(), WriteError> {
        let what = format!("delete {what}");
        let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        if let Some(options) = options.as_object_mut().filter(|_| !preconditions.is_null()) {
            options.insert("preconditions".to_owned(), preconditions);
        }
        let request = Request::delete(path)
            .header(CONTENT_TYPE, "application/json")
            .body(options.to_string().into_bytes());
        let request = request.map_err(|error| Fault::Malformed(error.to_string()).write(&what))?;
        match transport::call::<Value>(self.client(), request, self.options().request_timeout).await {
            Ok(_) => Ok(()),
            Err(fault) if fault.is_not_found() => Ok(()),
            Err(fault) => Err(fault.write(&what)),
        }
    }

    async fn write<T: DeserializeOwned>(
        &self,
        request: http::request::Builder,
        body: &Value,
    ) -> Result<T, Fault> {
        let request = request
            .header(ACCEPT, "application/json")
            .body(body.to_string().into_bytes());
        let request = request.map_err(|error| Fault::Malformed(error.to_string()))?;
        transport::call(self.client(), request, self.options().request_timeout).await
    }
}
