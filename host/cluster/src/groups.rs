//! In which API group LifecycleEvents and LifecycleTransitions are served.
//!
//! Their own group belongs to Kubernetes. A server that knows that group without knowing them (it has EvictionRequests
//! there) takes their CRDs, calls them Established, and serves them not. So the resources are looked up, never the
//! group, never the CRD, and a group of ours takes their place.

use serde::Deserialize;

use super::lifecycle_wire::VERSION;
use super::transport::{Fault, escaped};
use super::{Cluster, ReadError};

/// Where they belong.
pub const OFFICIAL_GROUP: &str = "lifecycle.k8s.io";
/// Where they are installed when the server keeps that group for itself.
pub const OWN_GROUP: &str = "lifecycle.scupper.dev";

#[derive(Debug, Deserialize)]
struct Resources {
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Debug, Deserialize)]
struct Resource {
    name: String,
}

/// What a server serves of a group, in the version that we speak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LifecycleGroup {
    /// Its name.
    pub group: String,
    /// The resources in it; none: it is not served.
    pub resources: Vec<String>,
}

impl LifecycleGroup {
    /// It has both kinds of ours.
    pub fn is_whole(&self) -> bool {
        self.has("lifecycleevents") && self.has("lifecycletransitions")
    }

    /// The server knows the group, and has other things in it.
    pub fn is_taken(&self) -> bool {
        !self.resources.is_empty() && !self.is_whole()
    }

    fn has(&self, resource: &str) -> bool {
        self.resources.iter().any(|name| name == resource)
    }
}

impl Cluster {
    /// What the server serves of a group.
    pub async fn lifecycle_group_as_served(&self, group: &str) -> Result<LifecycleGroup, ReadError> {
        let path = format!("/apis/{}/{VERSION}", escaped(group));
        let resources = match self.get::<Resources>(&path).await {
            Ok(Resources { resources }) => resources.into_iter().map(|resource| resource.name).collect(),
            Err(Fault::Refused(404, _)) => Vec::new(),
            Err(fault) => return Err(fault.read(&format!("discover {group}/{VERSION}"))),
        };
        Ok(LifecycleGroup {
            group: group.to_owned(),
            resources,
        })
    }

    /// The same with the lifecycle objects in the group in which they are served; the official one if there are two.
    /// `None`: they are served nowhere.
    pub async fn in_served_group(self) -> Result<Option<Self>, ReadError> {
        for group in [OFFICIAL_GROUP, OWN_GROUP] {
            if self.lifecycle_group_as_served(group).await?.is_whole() {
                return Ok(Some(self.with_lifecycle_group(group)));
            }
        }
        Ok(None)
    }
}
