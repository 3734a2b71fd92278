//! Nodes and pods, with the fields that the filters look at. Names are those of the Kubernetes API.

use std::collections::{BTreeMap, BTreeSet};

use scupper_engine::Selector;

/// Amounts by resource: `cpu` in thousandths, everything else in whole units.
pub type Amounts = BTreeMap<String, u64>;

/// The taint of a cordoned node.
pub const TAINT_OF_CORDON: &str = "node.kubernetes.io/unschedulable";

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// It is cordoned.
    pub unschedulable: bool,
    /// What pods can request of it; `None`: it does not say, so that no pod is too large for it.
    pub allocatable: Option<Amounts>,
}

/// One of `spec.taints` of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taint {
    /// Its key.
    pub key: String,
    /// Its value, or empty.
    pub value: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

/// One of `spec.tolerations` of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Toleration {
    /// The key of the taint; empty: every taint.
    pub key: String,
    /// Every value of the taint is tolerated.
    pub any_value: bool,
    /// The only value that is tolerated otherwise.
    pub value: String,
    /// The only effect that is tolerated; empty: every effect.
    pub effect: String,
}

/// A pod on a node, or one that comes to it, as the other pods meet it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resident {
    /// Its namespace.
    pub namespace: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// What it requests, without zeros.
    pub requests: Amounts,
    /// The ports of the node that it uses.
    pub ports: BTreeSet<HostPort>,
    /// `podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution`
    pub anti_affinity: Vec<PodTerm>,
}

/// A port of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPort {
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    /// The number.
    pub port: u32,
    /// The address of the node; empty or `0.0.0.0`: all of them.
    pub ip: String,
}

/// A required term of `podAffinity` or `podAntiAffinity`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodTerm {
    /// The pods that it is about.
    pub selector: Selector,
    /// Their namespaces.
    pub namespaces: BTreeSet<String>,
    /// Further namespaces, by the one label that each has: `kubernetes.io/metadata.name`. One that selects by others cannot
    /// be judged here: leave out the term.
    pub namespace_selector: Option<Selector>,
    /// Nodes with the same value of this label are one place.
    pub topology_key: String,
}

/// A term of a node selector: what the labels and the fields of a node must be. One that is empty in the API selects no
/// node: [`Selector::NOTHING`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeTerm {
    /// `matchExpressions`
    pub labels: Selector,
    /// `matchFields`, of which there is `metadata.name`.
    pub fields: Selector,
}

/// One of `spec.topologySpreadConstraints` with `whenUnsatisfiable: DoNotSchedule`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// `topologyKey`
    pub topology_key: String,
    /// `maxSkew`
    pub max_skew: u64,
    /// `minDomains`; with fewer places the least number of pods counts as 0.
    pub min_domains: Option<u64>,
    /// The pods that it counts, `matchLabelKeys` included.
    pub selector: Selector,
    /// `nodeAffinityPolicy` is `Honor`: only nodes that the pod selects count.
    pub honors_affinity: bool,
    /// `nodeTaintsPolicy` is `Honor`: only nodes whose taints the pod tolerates count.
    pub honors_taints: bool,
}

/// A pod that needs a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Newcomer {
    /// What it is once it runs.
    pub resident: Resident,
    /// `nodeSelector`
    pub node_selector: BTreeMap<String, String>,
    /// `nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution`: one of these holds.
    pub node_terms: Option<Vec<NodeTerm>>,
    /// `tolerations`
    pub tolerations: Vec<Toleration>,
    /// `podAffinity.requiredDuringSchedulingIgnoredDuringExecution`
    pub affinity: Vec<PodTerm>,
    /// `topologySpreadConstraints`
    pub spread: Vec<Spread>,
    /// The nodes that can use each of its volumes: one of these holds. Volumes of which nothing is known are left out.
    pub volumes: Vec<Vec<NodeTerm>>,
    /// `priority`
    pub priority: i32,
}

impl NodeTerm {
    pub(crate) fn selects(&self, node: &Node) -> bool {
        let fields = BTreeMap::from([("metadata.name".to_owned(), node.name.clone())]);
        self.labels.matches(&node.labels) && self.fields.matches(&fields)
    }
}

impl Toleration {
    fn tolerates(&self, taint: &Taint) -> bool {
        let of_effect = self.effect.is_empty() || self.effect == taint.effect;
        let of_key = self.key == taint.key || self.key.is_empty();
        of_effect && of_key && (self.any_value || self.value == taint.value)
    }
}

impl Taint {
    /// It keeps pods away, as all but `PreferNoSchedule` do.
    pub(crate) fn keeps_away(&self) -> bool {
        matches!(self.effect.as_str(), "NoSchedule" | "NoExecute")
    }

    pub(crate) fn of_cordon() -> Self {
        Self {
            key: TAINT_OF_CORDON.to_owned(),
            value: String::new(),
            effect: "NoSchedule".to_owned(),
        }
    }
}

impl Newcomer {
    pub(crate) fn tolerates(&self, taint: &Taint) -> bool {
        self.tolerations
            .iter()
            .any(|toleration| toleration.tolerates(taint))
    }

    /// The node's labels are those that it selects.
    pub(crate) fn selects(&self, node: &Node) -> bool {
        let selected = self
            .node_selector
            .iter()
            .all(|(key, value)| node.labels.get(key) == Some(value));
        selected
            && self
                .node_terms
                .as_ref()
                .is_none_or(|terms| one_selects(terms, node))
    }
}

pub(crate) fn one_selects(terms: &[NodeTerm], node: &Node) -> bool {
    terms.iter().any(|term| term.selects(node))
}
