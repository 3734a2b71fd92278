//! The objects that policies may ask about: where the API serves each kind, and how it is read. Other parts of this edge
//! read the same objects the same way. A drain without a policy that asks reads none of it.

use futures::future::{BoxFuture, FutureExt as _};
use scupper_api::facts::{FactKind, FactObject, FactQuery, FactType, Metadata, Namespace, Place, Selection};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::budget::WireBudget;
use super::devices::{WireClaim, WireSlice};
use super::listing::Source;
use super::owners::{OWNER_KINDS, WireOwner};
use super::peers::{self, WirePeer};
use super::pod_specs::WirePodSpec;
use super::storage::{WireAttachment, WireVolume, WireVolumeClaim};
use super::transport::escaped;
use super::wire::{MetaOnly, bounded};
use super::{Cluster, ReadError};

/// An object on the wire that policies may ask about.
pub(super) trait WireFact: DeserializeOwned + Send {
    /// The object as it is kept. `kind`: lists do not say it with each item.
    fn into_fact(self, kind: &FactKind) -> FactObject;
}

/// The answer to a query.
type Read<'a> = BoxFuture<'a, Result<Vec<FactObject>, ReadError>>;

/// Where the API serves the objects of a kind, and how they are read.
#[derive(Clone, Copy)]
pub(super) struct Resource {
    /// Such as `/apis/apps/v1`.
    root: &'static str,
    /// Such as `Deployment`.
    kind: &'static str,
    /// Such as `deployments`.
    plural: &'static str,
    read: for<'a> fn(&'a Cluster, Self, &'a FactQuery) -> Read<'a>,
    pub(super) decode: fn(Value, &FactKind) -> serde_json::Result<FactObject>,
}

impl Resource {
    const fn of<T: WireFact + 'static>(root: &'static str, kind: &'static str, plural: &'static str) -> Self {
        Self {
            root,
            kind,
            plural,
            read: |cluster, resource, query| cluster.read_facts::<T>(resource, query).boxed(),
            decode: |value, kind| Ok(serde_json::from_value::<T>(value)?.into_fact(kind)),
        }
    }

    /// `None`: this edge does not read the kind.
    pub(super) fn find(kind: &FactKind) -> Option<Self> {
        Some(match kind {
            FactKind::LifecycleEvent => Self::of::<MetaOnly>("", "LifecycleEvent", "lifecycleevents"),
            FactKind::Namespace => Self::of::<MetaOnly>("/api/v1", "Namespace", "namespaces"),
            FactKind::Budget => {
                Self::of::<WireBudget>("/apis/policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
            }
            FactKind::Owner { api_version, kind } => {
                let mut kinds = OWNER_KINDS.into_iter();
                let known = kinds.find(|it| it.api_version == api_version && it.kind == kind)?;
                Self::of::<WireOwner>(known.root, known.kind, known.plural)
            }
            FactKind::PodSpec { .. } => Self::of::<WirePodSpec>("/api/v1", "Pod", "pods"),
            FactKind::Peer => Self::of::<WirePeer>("/api/v1", "Pod", "pods"),
            FactKind::ResourceClaim => {
                Self::of::<WireClaim>("/apis/resource.k8s.io/v1", "ResourceClaim", "resourceclaims")
            }
            FactKind::DeviceSlice { .. } => {
                Self::of::<WireSlice>("/apis/resource.k8s.io/v1", "ResourceSlice", "resourceslices")
            }
            FactKind::PersistentVolumeClaim => {
                Self::of::<WireVolumeClaim>("/api/v1", "PersistentVolumeClaim", "persistentvolumeclaims")
            }
            FactKind::PersistentVolume => {
                Self::of::<WireVolume>("/api/v1", "PersistentVolume", "persistentvolumes")
            }
            FactKind::VolumeAttachment => {
                Self::of::<WireAttachment>("/apis/storage.k8s.io/v1", "VolumeAttachment", "volumeattachments")
            }
            FactKind::DrainRequest => return None,
        })
    }

    /// The kind of an object in a file, and how it is decoded.
    pub(super) fn of_object(api_version: &str, kind: &str) -> Option<(FactKind, Self)> {
        let owner = FactKind::Owner {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        };
        let kinds = [
            FactKind::Namespace,
            FactKind::Budget,
            FactKind::ResourceClaim,
            FactKind::DeviceSlice { node: String::new() },
            FactKind::PersistentVolumeClaim,
            FactKind::PersistentVolume,
            FactKind::VolumeAttachment,
            owner,
        ];
        let known = kinds.into_iter().filter_map(|kind| {
            let resource = Self::find(&kind)?;
            Some((kind, resource))
        });
        known.into_iter().find(|(_, resource)| resource.kind == kind)
    }

    /// Where its objects are: those of a namespace, or of all, or those that have none.
    pub(super) fn path(self, namespace: &str) -> String {
        collection(self.root, namespace, self.plural)
    }
}

/// The node by which the server selects objects of the kind.
const fn node_of(kind: &FactKind) -> Option<&String> {
    match kind {
        FactKind::PodSpec { node } | FactKind::DeviceSlice { node } => Some(node),
        _ => None,
    }
}

/// Where the API serves objects: those of a namespace, or of all, or those that have none.
pub(super) fn collection(root: &str, namespace: &str, plural: &str) -> String {
    match namespace {
        "" => format!("{root}/{plural}"),
        namespace => format!("{root}/namespaces/{}/{plural}", escaped(namespace)),
    }
}

impl Cluster {
    /// Reads the objects of a query. A kind that the server, or this edge, does not know has none.
    pub async fn ask(&self, query: &FactQuery) -> Result<Vec<FactObject>, ReadError> {
        match Resource::find(&query.kind) {
            Some(resource) => (resource.read)(self, resource, query).await,
            None => Ok(Vec::new()),
        }
    }

    /// Reads one object; `None` if it does not exist.
    pub async fn ask_one<T: FactType + Clone>(
        &self,
        kind: FactKind,
        place: Place,
    ) -> Result<Option<T>, ReadError> {
        let found = self.ask(&FactQuery::one(kind, place)).await?;
        Ok(found.first().and_then(T::of).cloned())
    }

    async fn read_facts<T: WireFact>(
        &self,
        resource: Resource,
        query: &FactQuery,
    ) -> Result<Vec<FactObject>, ReadError> {
        let FactQuery { kind, selection } = query;
        let path = |namespace: &str| match kind {
            FactKind::LifecycleEvent => self.lifecycle_path(resource.plural, None),
            _ => resource.path(namespace),
        };
        let source = match selection {
            Selection::One((namespace, name)) => {
                let found = self.find_fact::<T>(resource, &path(namespace), name).await?;
                return Ok(found.map(|found| found.into_fact(kind)).into_iter().collect());
            }
            Selection::Named { name, .. } => {
                let found = self.find_fact::<T>(resource, &path(""), name).await?;
                let found = found.map(|found| found.into_fact(kind));
                return Ok(found.filter(|found| query.wants(found)).into_iter().collect());
            }
            Selection::All | Selection::OfDrain(_) => Source {
                selector: node_of(kind).map(|node| format!("fieldSelector=spec.nodeName={}", escaped(node))),
                ..Source::all(path(""))
            },
            Selection::These { namespace, .. } => Source::all(path(namespace.as_deref().unwrap_or(""))),
            Selection::Peers(selection) => peers::source(selection),
        };
        let mut objects = Vec::new();
        let each = |object: T| {
            let object = object.into_fact(kind);
            if query.wants(&object) {
                objects.push(object);
            }
        };
        let listed = super::listing::for_each(self.client(), &source, self.options(), each).await;
        match listed {
            Ok(_) => Ok(objects),
            Err(fault) if fault.is_not_found() => Ok(Vec::new()),
            Err(fault) => Err(fault.read(&format!("list {}", resource.plural))),
        }
    }

    async fn find_fact<T: WireFact>(
        &self,
        resource: Resource,
        path: &str,
        name: &str,
    ) -> Result<Option<T>, ReadError> {
        let what = format!("{} {name}", resource.kind.to_lowercase());
        self.find::<T>(&format!("{path}/{}", escaped(name)), &what).await
    }
}

impl WireFact for MetaOnly {
    fn into_fact(self, kind: &FactKind) -> FactObject {
        let meta = self.metadata;
        let metadata = Metadata {
            namespace: meta.namespace,
            name: meta.name,
            uid: meta.uid,
            labels: bounded(meta.labels),
            annotations: bounded(meta.annotations),
            deletion: meta.deletion_timestamp,
        };
        match kind {
            FactKind::Namespace => Namespace { metadata }.into(),
            _ => metadata.into(),
        }
    }
}

/// An object of this kind as it is read, for tests.
#[cfg(test)]
pub(super) fn decoded<T: FactType + Clone>(kind: &FactKind, value: Value) -> T {
    let resource = Resource::find(kind).unwrap();
    let object = (resource.decode)(value, kind).unwrap();
    T::of(&object).unwrap().clone()
}
