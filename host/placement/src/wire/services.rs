//! Services.

use serde::Deserialize;

use super::{Meta, Texts, nullable};
use crate::services::Service;

/// A Service.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct WireService {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: Spec,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    #[serde(deserialize_with = "nullable")]
    selector: Texts,
    #[serde(rename = "type", deserialize_with = "nullable")]
    kind: String,
}

impl WireService {
    /// The Service, if it selects pods: somebody else writes the endpoints of those that do not.
    pub fn into_service(self) -> Option<Service> {
        let selects = !self.spec.selector.is_empty() && self.spec.kind != "ExternalName";
        selects.then_some(Service {
            namespace: self.metadata.namespace,
            name: self.metadata.name,
            selector: self.spec.selector,
            ready: 0,
        })
    }
}
