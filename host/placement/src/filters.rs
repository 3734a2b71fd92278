//! The filters that look at one node only.

use crate::model::{HostPort, Newcomer, Node, TAINT_OF_CORDON, Taint, one_selects};
use crate::refusal::{Filter, Refusal};
use crate::scene::Used;

/// The resource that counts pods.
const PODS: &str = "pods";

/// What the first of these filters says that refuses the pod. A node that is drained has its cordon by that.
pub(crate) fn refusal(node: &Node, used: &Used, newcomer: &Newcomer, is_drained: bool) -> Option<Refusal> {
    let refuse = |filter| Some(Refusal::new(filter, ""));
    if !is_drained && node.unschedulable && !newcomer.tolerates(&Taint::of_cordon()) {
        return refuse(Filter::Cordon);
    }
    let kept_away = node
        .taints
        .iter()
        .filter(|taint| !(is_drained && taint.key == TAINT_OF_CORDON));
    let mut kept_away = kept_away.filter(|taint| taint.keeps_away() && !newcomer.tolerates(taint));
    if let Some(taint) = kept_away.next() {
        return Some(Refusal::new(Filter::Taint, named(taint)));
    }
    if !newcomer.selects(node) {
        return refuse(Filter::NodeAffinity);
    }
    ports(used, newcomer)
        .or_else(|| resources(node, used, newcomer))
        .or_else(|| {
            let reach = newcomer.volumes.iter().all(|terms| one_selects(terms, node));
            if reach { None } else { refuse(Filter::Volume) }
        })
}

/// `key` or `key=value`
fn named(taint: &Taint) -> String {
    match taint.value.as_str() {
        "" => taint.key.clone(),
        value => format!("{}={value}", taint.key),
    }
}

fn ports(used: &Used, newcomer: &Newcomer) -> Option<Refusal> {
    let wanted = newcomer.resident.ports.iter();
    let mut taken = wanted.filter(|port| used.ports.iter().any(|other| port.collides(other)));
    taken
        .next()
        .map(|port| Refusal::new(Filter::HostPort, port.port.to_string()))
}

impl HostPort {
    fn collides(&self, other: &Self) -> bool {
        let all = |ip: &str| matches!(ip, "" | "0.0.0.0");
        let same_address = all(&self.ip) || all(&other.ip) || self.ip == other.ip;
        self.port == other.port && self.protocol == other.protocol && same_address
    }
}

fn resources(node: &Node, used: &Used, newcomer: &Newcomer) -> Option<Refusal> {
    let allocatable = node.allocatable.as_ref()?;
    let amount = |name: &str| allocatable.get(name).copied().unwrap_or(0);
    if used.pods >= amount(PODS) {
        return Some(Refusal::new(Filter::PodCount, ""));
    }
    let lacking = newcomer.resident.requests.iter().filter(|(name, wanted)| {
        let used = used.requests.get(*name).copied().unwrap_or(0);
        used.saturating_add(**wanted) > amount(name)
    });
    let lacking: Vec<&str> = lacking.map(|(name, _)| name.as_str()).collect();
    (!lacking.is_empty()).then(|| Refusal::new(Filter::Resources, lacking.join(" and ")))
}

/// How full the node is with the pod, of the resource that it then has least of: 1 is full.
pub(crate) fn fullness(node: &Node, used: &Used, newcomer: &Newcomer) -> f64 {
    let allocatable = node.allocatable.iter().flatten();
    let share = |(name, most): (&String, &u64)| {
        let wanted = newcomer.resident.requests.get(name)?;
        let used = used.requests.get(name).copied().unwrap_or(0);
        Some(used.saturating_add(*wanted) as f64 / (*most).max(1) as f64)
    };
    allocatable.filter_map(share).fold(0.0, f64::max)
}
