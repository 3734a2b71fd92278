//! Nodes, pods, volumes and Services as the API has them, read into the plain types of this crate.
//!
//! Only the few fields that filters look at are decoded, as a cluster has many pods. What cannot be judged is left out, so
//! that it refuses no node.

mod nodes;
mod pods;
mod requests;
mod services;
mod terms;

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

pub use nodes::{WireNode, WireVolume};
pub use pods::{PodToPlace, WirePod};
pub use requests::{Container, Resources, requests};
pub use services::WireService;

type Texts = BTreeMap<String, String>;

/// `metadata`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Meta {
    name: String,
    #[serde(deserialize_with = "nullable")]
    namespace: String,
    uid: String,
    #[serde(deserialize_with = "nullable")]
    labels: Texts,
    deletion_timestamp: Option<IgnoredAny>,
}

/// Reads `null` as the type's default.
fn nullable<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

#[cfg(test)]
mod tests;
