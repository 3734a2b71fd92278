//! Finds the API group in which LifecycleEvents and LifecycleTransitions are served.
//!
//! Their official group belongs to Kubernetes. A server that uses that group for other resources (EvictionRequests)
//! accepts their CRDs, reports them as Established, and does not serve them. So this module looks up the resources,
//! never the group or the CRD, and the project's own group serves as the fallback.

use serde::Deserialize;

use super::lifecycle_wire::VERSION;
use super::transport::{Fault, escaped};
use super::{Cluster, ReadError};

/// The official group.
pub const OFFICIAL_GROUP: &str = "lifecycle.k8s.io";
/// The project's own group, for servers that reserve the official one.
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

/// The resources that a server serves in a group, in the supported version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LifecycleGroup {
    /// Its name.
    pub group: String,
    /// Its resources; empty if it is not served.
    pub resources: Vec<String>,
}

impl LifecycleGroup {
    /// True if it has both lifecycle kinds.
    pub fn is_whole(&self) -> bool {
        self.has("lifecycleevents") && self.has("lifecycletransitions")
    }

    /// True if the server uses the group for other resources.
    pub fn is_taken(&self) -> bool {
        !self.resources.is_empty() && !self.is_whole()
    }

    fn has(&self, resource: &str) -> bool {
        self.resources.iter().any(|name| name == resource)
    }
}

impl Cluster {
    /// Returns the resources that the server serves in a group.
    pub async fn lifecycle_group_as_served(&self, group: &str) -> Result<LifecycleGroup, ReadError> {
        let path = format!("/apis/{}/{VERSION}", escaped(group));
        let resources = self.resources_at(&path).await;
        let resources = resources.map_err(|fault| fault.read(&format!("discover {group}/{VERSION}")))?;
        Ok(LifecycleGroup {
            group: group.to_owned(),
            resources,
        })
    }

    /// Returns the resources that the server serves in a version of a group; none if it does not serve that.
    pub(super) async fn resources_at(&self, path: &str) -> Result<Vec<String>, Fault> {
        match self.get::<Resources>(path).await {
            Ok(Resources { resources }) => Ok(resources.into_iter().map(|resource| resource.name).collect()),
            Err(Fault::Refused(404, _)) => Ok(Vec::new()),
            Err(fault) => Err(fault),
        }
    }

    /// Uses the group in which the lifecycle objects are served; the official one if there are two. Returns `None` if
    /// no group serves them.
    pub async fn in_served_group(self) -> Result<Option<Self>, ReadError> {
        for group in [OFFICIAL_GROUP, OWN_GROUP] {
            if self.lifecycle_group_as_served(group).await?.is_whole() {
                return Ok(Some(self.with_lifecycle_group(group)));
            }
        }
        Ok(None)
    }
}
