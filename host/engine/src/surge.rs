//! Surge: if a budget never lets the pods of a Deployment go, the drain has their replacements created on other nodes
//! first, by a rollout or by one replica more.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::{PodRef, Time, Uid};

/// How a Deployment gets replacements for its pods on the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum SurgeMethod {
    /// It is restarted: the rollout creates the replacements and then removes the pods.
    #[default]
    Restart,
    /// Its replicas are raised by one, so that its budget has room for one eviction at a time; once its pods are gone, the
    /// replica is taken back.
    Scale,
}

impl SurgeMethod {
    /// In one word, for people and programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Restart => "restart",
            Self::Scale => "scale",
        }
    }

    /// The method of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Restart, Self::Scale]
            .into_iter()
            .find(|method| method.name() == name)
    }
}

/// Which Deployments may be surged, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SurgeSettings {
    /// How.
    pub method: SurgeMethod,
    /// In these namespaces only; empty: in all.
    pub namespaces: BTreeSet<String>,
    /// How long a surge may take until its pods must be leaving.
    pub timeout: Duration,
}

impl SurgeSettings {
    /// The default of [`SurgeSettings::timeout`].
    pub const TIMEOUT: Duration = Duration::from_secs(300);

    /// Deployments of this namespace may be surged.
    pub fn covers(&self, namespace: &str) -> bool {
        self.namespaces.is_empty() || self.namespaces.contains(namespace)
    }
}

/// A Deployment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct DeploymentRef {
    /// `metadata.namespace`
    pub namespace: String,
    /// `metadata.name`
    pub name: String,
    /// `metadata.uid`
    pub uid: Uid,
}

/// A Deployment that the drain surges, because a budget lets none of its pods go.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Surge {
    /// The Deployment.
    pub deployment: DeploymentRef,
    /// How many pods it has, all of which a restart replaces; `None`: unknown.
    pub replicas: Option<u32>,
    /// The budget's name.
    pub budget: String,
    /// Its pods on the node. Those of a restart stand in one wave.
    pub pods: Vec<PodRef>,
}

/// A workload whose pods a budget never lets go, and that cannot be surged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct NotSurged {
    /// Its kind, such as `StatefulSet`; empty: the pod has no controller, or an unknown one.
    pub kind: String,
    /// Its name, or that of the pod.
    pub name: String,
    /// The budget's name.
    pub budget: String,
    /// Its pods on the node.
    pub pods: Vec<PodRef>,
    /// Why.
    pub reason: String,
}

/// The surges of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SurgePlan {
    /// How the Deployments are surged.
    pub method: SurgeMethod,
    /// The Deployments to surge, each once.
    pub surges: Vec<Surge>,
    /// Workloads that would need it and cannot.
    pub impossible: Vec<NotSurged>,
}

impl SurgePlan {
    /// Whether the plan has nothing to say about surges.
    pub const fn is_empty(&self) -> bool {
        self.surges.is_empty() && self.impossible.is_empty()
    }

    /// The surge that replaces this pod.
    pub fn of_pod(&self, pod: &Uid) -> Option<&Surge> {
        let mut surges = self.surges.iter();
        surges.find(|surge| surge.pods.iter().any(|surged| surged.uid == *pod))
    }
}

/// Names a drain on the Deployments that it writes: by its node, whose name people read, and by its request's id. A drain
/// of another node is another drain, even with the same id.
pub fn surge_mark(node: &str, uid: &Uid, request: &str) -> String {
    format!("{node}/{uid}/{request}")
}

/// A Deployment whose replicas a drain has raised, or is about to raise.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Raised {
    /// The Deployment.
    pub deployment: DeploymentRef,
    /// That drain, by its [`surge_mark`].
    pub drain: String,
    /// The pods for which it did so.
    pub pods: BTreeSet<Uid>,
}

/// How far a surge has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SurgeStep {
    /// The Deployment's rollout has begun.
    Restarted {
        /// When its pods must be leaving.
        until: Time,
    },
    /// Its replicas are raised by one.
    Raised {
        /// When its pods must be leaving.
        until: Time,
    },
    /// Its pods on the node are gone.
    Replaced,
    /// Its replicas are as they were before they were raised.
    TakenBack,
    /// Its replicas were raised and are not taken back.
    LeftRaised {
        /// Why.
        message: String,
    },
    /// Its pods wait for their budget, as without a surge.
    GaveUp {
        /// Why.
        message: String,
    },
}

impl SurgeStep {
    /// In one word, for JSON and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Restarted { .. } => "restarted",
            Self::Raised { .. } => "raised",
            Self::Replaced => "replaced",
            Self::TakenBack => "taken-back",
            Self::LeftRaised { .. } => "left-raised",
            Self::GaveUp { .. } => "gave-up",
        }
    }
}

impl fmt::Display for DeploymentRef {
    /// `Deployment namespace/name`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Deployment {}/{}", self.namespace, self.name)
    }
}
