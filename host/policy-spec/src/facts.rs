//! The facts about the cluster that a policy may ask for: the targets of the capability `facts`.

/// A kind of facts. Each is granted by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fact {
    /// Who asked for the drain: labels and annotations of the LifecycleEvent, the DrainRequests.
    Request,
    /// Labels and annotations of namespaces.
    Namespaces,
    /// The disruption budgets of the node's pods.
    Budgets,
    /// The workloads that own the node's pods.
    Owners,
    /// What the node's pods request, and their devices.
    Resources,
    /// The volumes of the node's pods.
    Volumes,
    /// The pods of the same controllers or scheduling groups as the node's pods.
    Peers,
}

/// The targets of all facts.
pub const FACTS: [&str; 7] = [
    Fact::Request.as_str(),
    Fact::Namespaces.as_str(),
    Fact::Budgets.as_str(),
    Fact::Owners.as_str(),
    Fact::Resources.as_str(),
    Fact::Volumes.as_str(),
    Fact::Peers.as_str(),
];

impl Fact {
    /// The target of its grant.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Namespaces => "namespaces",
            Self::Budgets => "budgets",
            Self::Owners => "owners",
            Self::Resources => "resources",
            Self::Volumes => "volumes",
            Self::Peers => "peers",
        }
    }
}
