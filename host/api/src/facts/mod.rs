//! What a policy may ask about the cluster: which objects, and what is read of them.
//!
//! One enum of kinds and one of objects serve everything that reads, keeps or plays them: `cluster` sends a query to the
//! API server, `policy` keeps answers by their query, and a cluster in memory answers with those of its objects that the
//! query [wants](FactQuery::wants).

mod objects;

use std::collections::BTreeSet;
use std::ops::Deref as _;
use std::sync::Arc;

use scupper_engine::{Budget, Controller};
use serde::{Deserialize, Serialize};

use crate::DrainRequestFields;
pub use objects::*;

/// Where the API has an object: its namespace, or nothing, and its name.
pub type Place = (String, String);

/// A kind of objects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FactKind {
    /// LifecycleEvents: their metadata.
    LifecycleEvent,
    /// DrainRequests. The API server is not asked for these: the trigger knows which ones a drain serves.
    DrainRequest,
    /// Namespaces.
    Namespace,
    /// PodDisruptionBudgets.
    Budget,
    /// Objects of one kind that own pods.
    Owner {
        /// Such as `apps/v1`.
        api_version: String,
        /// Such as `Deployment`.
        kind: String,
    },
    /// The specs of a node's pods, by UID.
    PodSpec {
        /// The node.
        node: String,
    },
    /// Pods of a namespace on all nodes.
    Peer,
    /// ResourceClaims.
    ResourceClaim,
    /// ResourceSlices of a node.
    DeviceSlice {
        /// The node.
        node: String,
    },
    /// PersistentVolumeClaims.
    PersistentVolumeClaim,
    /// PersistentVolumes.
    PersistentVolume,
    /// VolumeAttachments, by their volume.
    VolumeAttachment,
}

/// Some objects of a kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Selection {
    /// All.
    All,
    /// The one at this place, if it exists.
    One(Place),
    /// The one with this name, if it exists and has this UID.
    Named {
        /// `metadata.name`
        name: String,
        /// `metadata.uid`
        uid: String,
    },
    /// These, as far as they exist: in one list of a namespace, or of all (`None`).
    These {
        /// The namespace to list.
        namespace: Option<String>,
        /// Where they are.
        places: BTreeSet<Place>,
    },
    /// Pods that belong to others.
    Peers(PeerSelection),
    /// Those that the drain with this id serves.
    OfDrain(String),
}

/// A question: some objects of a kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FactQuery {
    /// The kind.
    pub kind: FactKind,
    /// Which of them.
    pub selection: Selection,
}

/// The type of objects of one kind.
pub trait FactType: Sized {
    /// The object, if it is of this type.
    fn of(object: &FactObject) -> Option<&Self>;
}

/// The variants of [`FactObject`] with their types, and the way from and to these.
macro_rules! fact_objects {
    ($($(#[$doc:meta])* $variant:ident($pointer:ident<$object:ty>),)+) => {
        /// An object, as far as it is read.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum FactObject {
            $($(#[$doc])* $variant($pointer<$object>),)+
        }

        $(
            impl FactType for $object {
                fn of(object: &FactObject) -> Option<&Self> {
                    match object {
                        FactObject::$variant(object) => Some(object.deref()),
                        _ => None,
                    }
                }
            }

            impl From<$object> for FactObject {
                fn from(object: $object) -> Self {
                    Self::$variant($pointer::new(object))
                }
            }
        )+
    };
}

fact_objects! {
    /// A LifecycleEvent.
    LifecycleEvent(Box<Metadata>),
    /// A DrainRequest.
    DrainRequest(Arc<DrainRequestFields>),
    /// A namespace.
    Namespace(Box<Namespace>),
    /// A PodDisruptionBudget.
    Budget(Box<Budget>),
    /// An owner of pods.
    Owner(Box<Owner>),
    /// What a pod's spec says.
    PodSpec(Box<PodSpec>),
    /// A pod on any node.
    Peer(Box<Peer>),
    /// A ResourceClaim.
    ResourceClaim(Box<ResourceClaim>),
    /// A ResourceSlice.
    DeviceSlice(Box<DeviceSlice>),
    /// A PersistentVolumeClaim.
    PersistentVolumeClaim(Box<PersistentVolumeClaim>),
    /// A PersistentVolume.
    PersistentVolume(Box<PersistentVolume>),
    /// A VolumeAttachment.
    VolumeAttachment(Box<VolumeAttachment>),
}

impl FactKind {
    /// Whether objects of this kind are usually the same a minute later.
    pub const fn seldom_changes(&self) -> bool {
        !matches!(
            self,
            Self::DrainRequest | Self::Budget | Self::Peer | Self::VolumeAttachment
        )
    }

    /// The kind of the object that a reference names.
    pub fn owner(reference: &Controller) -> Self {
        Self::Owner {
            api_version: reference.api_version.clone(),
            kind: reference.kind.clone(),
        }
    }
}

impl FactQuery {
    /// The object at this place.
    pub const fn one(kind: FactKind, place: Place) -> Self {
        let selection = Selection::One(place);
        Self { kind, selection }
    }

    /// All objects of a kind.
    pub const fn all(kind: FactKind) -> Self {
        let selection = Selection::All;
        Self { kind, selection }
    }

    /// The place, if it is about one.
    pub const fn place(&self) -> Option<&Place> {
        match &self.selection {
            Selection::One(place) => Some(place),
            _ => None,
        }
    }

    /// Whether it is about a single object.
    pub const fn is_of_one(&self) -> bool {
        matches!(self.selection, Selection::One(_) | Selection::Named { .. })
    }

    /// Whether it takes the right to list the objects of all namespaces, which may be missing.
    pub const fn is_of_all_namespaces(&self) -> bool {
        matches!(self.selection, Selection::These { namespace: None, .. })
    }

    /// Whether the object belongs to the answer. What the object does not tell is taken for granted: that a pod is on the node,
    /// and that a request is served.
    pub fn wants(&self, object: &FactObject) -> bool {
        object.is_of(&self.kind)
            && match &self.selection {
                Selection::All | Selection::OfDrain(_) => true,
                Selection::One(place) => object.place() == *place,
                Selection::Named { name, uid } => Metadata::of(object)
                    .is_some_and(|metadata| metadata.name == *name && metadata.uid == *uid),
                Selection::These { places, .. } => places.contains(&object.place()),
                Selection::Peers(selection) => Peer::of(object)
                    .is_some_and(|peer| peer.id.namespace == selection.namespace && selection.includes(peer)),
            }
    }
}

impl FactObject {
    /// What it is found by: its namespace, if it has one, and its name. Of a pod's spec it is the UID, of a VolumeAttachment the
    /// volume, and of a ResourceSlice the node.
    pub fn place(&self) -> Place {
        let (namespace, name) = match self {
            Self::LifecycleEvent(event) => ("", &event.name),
            Self::DrainRequest(request) => (request.namespace.as_str(), &request.name),
            Self::Namespace(namespace) => ("", &namespace.metadata.name),
            Self::Budget(budget) => (budget.namespace.as_str(), &budget.name),
            Self::Owner(owner) => (owner.namespace.as_str(), &owner.reference.name),
            Self::PodSpec(spec) => ("", &spec.uid),
            Self::Peer(peer) => (peer.id.namespace.as_str(), &peer.id.name),
            Self::ResourceClaim(claim) => (claim.namespace.as_str(), &claim.name),
            Self::DeviceSlice(slice) => ("", &slice.node),
            Self::PersistentVolumeClaim(claim) => (claim.namespace.as_str(), &claim.name),
            Self::PersistentVolume(volume) => ("", &volume.name),
            Self::VolumeAttachment(attachment) => ("", &attachment.volume),
        };
        (namespace.to_owned(), name.clone())
    }

    /// Whether it is of this kind.
    pub fn is_of(&self, kind: &FactKind) -> bool {
        match (self, kind) {
            (Self::Owner(owner), FactKind::Owner { api_version, kind }) => {
                owner.reference.api_version == *api_version && owner.reference.kind == *kind
            }
            (Self::DeviceSlice(slice), FactKind::DeviceSlice { node }) => slice.node == *node,
            (Self::LifecycleEvent(_), FactKind::LifecycleEvent)
            | (Self::DrainRequest(_), FactKind::DrainRequest)
            | (Self::Namespace(_), FactKind::Namespace)
            | (Self::Budget(_), FactKind::Budget)
            | (Self::PodSpec(_), FactKind::PodSpec { .. })
            | (Self::Peer(_), FactKind::Peer)
            | (Self::ResourceClaim(_), FactKind::ResourceClaim)
            | (Self::PersistentVolumeClaim(_), FactKind::PersistentVolumeClaim)
            | (Self::PersistentVolume(_), FactKind::PersistentVolume)
            | (Self::VolumeAttachment(_), FactKind::VolumeAttachment) => true,
            _ => false,
        }
    }

    /// Whether it is likely to be the same a minute later, if its [kind](FactKind::seldom_changes) is: a claim that is not
    /// bound or allocated yet may be so soon.
    pub fn is_settled(&self) -> bool {
        match self {
            Self::ResourceClaim(claim) => claim.devices.is_some(),
            Self::PersistentVolumeClaim(claim) => !claim.volume.is_empty(),
            _ => true,
        }
    }
}
