//! Why nodes refuse a pod, in the order in which the filters run.

use std::collections::BTreeMap;
use std::fmt;

/// A filter, by the name of the scheduler's plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Filter {
    /// `NodeUnschedulable`
    Cordon,
    /// `TaintToleration`
    Taint,
    /// `NodeAffinity`, which is also `nodeSelector`
    NodeAffinity,
    /// `NodePorts`
    HostPort,
    /// `NodeResourcesFit`, of which this is the number of pods
    PodCount,
    /// `NodeResourcesFit`
    Resources,
    /// `VolumeBinding`, of volumes that are bound
    Volume,
    /// `PodTopologySpread`
    Spread,
    /// `InterPodAffinity`
    PodAffinity,
    /// The same, of the pod
    PodAntiAffinity,
    /// The same, of pods on the node
    AntiAffinityOfOthers,
    /// No filter of the scheduler: nothing but that the node is drained
    Drained,
}

impl Filter {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Cordon,
        Self::Taint,
        Self::NodeAffinity,
        Self::HostPort,
        Self::PodCount,
        Self::Resources,
        Self::Volume,
        Self::Spread,
        Self::PodAffinity,
        Self::PodAntiAffinity,
        Self::AntiAffinityOfOthers,
        Self::Drained,
    ];

    /// Its name for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cordon => "cordon",
            Self::Taint => "taint",
            Self::NodeAffinity => "nodeAffinity",
            Self::HostPort => "hostPort",
            Self::PodCount => "podCount",
            Self::Resources => "resources",
            Self::Volume => "volume",
            Self::Spread => "topologySpread",
            Self::PodAffinity => "podAffinity",
            Self::PodAntiAffinity => "podAntiAffinity",
            Self::AntiAffinityOfOthers => "antiAffinityOfOthers",
            Self::Drained => "drained",
        }
    }
}

/// Why a node refuses a pod: what the first filter that does so says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refusal {
    /// The filter.
    pub filter: Filter,
    /// Which resource, taint, port or label; empty where there is only one.
    pub detail: String,
}

impl Refusal {
    pub(crate) fn new(filter: Filter, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self { filter, detail }
    }

    /// `8 have too little cpu`
    fn of(&self, nodes: usize) -> String {
        let one = nodes == 1;
        let detail = &self.detail;
        let (be, have, act, violate) = if one {
            ("is", "has", "does", "violates")
        } else {
            ("are", "have", "do", "violate")
        };
        let text = match self.filter {
            Filter::Cordon => format!("{be} cordoned"),
            Filter::Taint => format!("{have} the taint {detail}"),
            Filter::NodeAffinity => format!("{act} not match its node selector or affinity"),
            Filter::HostPort => format!("{have} host port {detail} in use"),
            Filter::PodCount => format!("{have} no pod slot left"),
            Filter::Resources => format!("{have} too little {detail}"),
            Filter::Volume => "cannot reach its volume".to_owned(),
            Filter::Spread => format!("{violate} its topology spread constraint on {detail}"),
            Filter::PodAffinity => format!("{act} not match its pod affinity on {detail}"),
            Filter::PodAntiAffinity => format!("{violate} its pod anti-affinity on {detail}"),
            Filter::AntiAffinityOfOthers => {
                format!("{have} pods whose anti-affinity on {detail} excludes it")
            }
            Filter::Drained => format!("{be} to be drained"),
        };
        format!("{nodes} {text}")
    }
}

/// Why no node takes a pod. Its text says it in one line: `of 12 nodes, 8 have too little cpu, 4 are cordoned`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refusals {
    /// How many nodes refuse it for each reason.
    pub nodes: BTreeMap<Refusal, usize>,
    /// Nodes that refuse it only because they are drained.
    pub drained: Vec<String>,
}

impl Refusals {
    pub(crate) fn add(&mut self, node: &str, refusal: Refusal) {
        if refusal.filter == Filter::Drained {
            self.drained.push(node.to_owned());
        }
        *self.nodes.entry(refusal).or_default() += 1;
    }

    /// How many nodes there are.
    pub fn total(&self) -> usize {
        self.nodes.values().sum()
    }

    /// The reasons, that of the most nodes first.
    pub fn sorted(&self) -> Vec<(&Refusal, usize)> {
        let mut all: Vec<_> = self
            .nodes
            .iter()
            .map(|(refusal, nodes)| (refusal, *nodes))
            .collect();
        all.sort_by_key(|(_, nodes)| std::cmp::Reverse(*nodes));
        all
    }
}

impl fmt::Display for Refusals {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total();
        let ending = if total == 1 { "" } else { "s" };
        let sorted = self.sorted().into_iter();
        let reasons: Vec<_> = sorted.map(|(refusal, nodes)| refusal.of(nodes)).collect();
        write!(out, "of {total} node{ending}, {}", reasons.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted_and_the_most_frequent_is_first() {
        let mut refusals = Refusals::default();
        refusals.add("a", Refusal::new(Filter::Drained, ""));
        for node in ["b", "c", "d"] {
            refusals.add(node, Refusal::new(Filter::Resources, "nvidia.com/gpu"));
        }
        for node in ["e", "f"] {
            refusals.add(node, Refusal::new(Filter::Taint, "batch=only"));
        }
        let text =
            "of 6 nodes, 3 have too little nvidia.com/gpu, 2 have the taint batch=only, 1 is to be drained";
        assert_eq!(refusals.to_string(), text);
        assert_eq!(refusals.drained, ["a"]);
    }

    #[test]
    fn every_filter_has_words_for_one_node_and_for_several() {
        let mut names = std::collections::BTreeSet::new();
        for filter in Filter::ALL {
            let refusal = Refusal::new(filter, "x");
            let (one, two) = (refusal.of(1), refusal.of(2));
            let is_the_same = one.strip_prefix("1 ") == two.strip_prefix("2 ");
            assert_eq!(is_the_same, filter == Filter::Volume, "{one}");
            assert!(names.insert(filter.name()), "{filter:?}");
        }
    }
}
