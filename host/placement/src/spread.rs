//! Constraints of topology spread that keep a pod from nodes (`DoNotSchedule`).

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Newcomer, Node, Spread, Taint};
use crate::refusal::{Filter, Refusal};
use crate::residents::Residents;

/// How the pods of each constraint of a newcomer are spread.
pub(crate) struct Spreads<'a> {
    of: Vec<(&'a Spread, Domains<'a>)>,
}

/// How many pods a constraint counts at each place.
struct Domains<'a> {
    pods: BTreeMap<&'a str, u64>,
    /// The least of them.
    least: u64,
    /// The newcomer is one of the pods that are counted.
    counts_itself: bool,
}

impl<'a> Spreads<'a> {
    /// `drained`: nodes that are cordoned by their drain. They count as places all the same, unless taints count.
    pub(crate) fn of(
        newcomer: &'a Newcomer,
        nodes: &'a [Node],
        drained: &BTreeSet<usize>,
        residents: &Residents,
    ) -> Self {
        let all_keys = |node: &Node| {
            let mut spreads = newcomer.spread.iter();
            spreads.all(|spread| node.labels.contains_key(&spread.topology_key))
        };
        let of = newcomer.spread.iter().map(|spread| {
            // By the place in the list: the node's value of the label, if the node counts.
            let counting = nodes.iter().enumerate().map(|(place, node)| {
                let counts = all_keys(node) && spread.counts(newcomer, node, drained.contains(&place));
                counts.then(|| node.labels.get(&spread.topology_key).map(String::as_str))?
            });
            let counting: Vec<Option<&str>> = counting.collect();
            (spread, Domains::of(spread, newcomer, &counting, residents))
        });
        Self { of: of.collect() }
    }

    pub(crate) fn refusal(&self, node: &Node) -> Option<Refusal> {
        let breaks = |spread: &Spread, domains: &Domains<'_>| {
            let Some(value) = node.labels.get(&spread.topology_key) else {
                return true;
            };
            let there = domains.pods.get(value.as_str()).copied().unwrap_or(0);
            let with = there + u64::from(domains.counts_itself);
            with.saturating_sub(domains.least) > spread.max_skew
        };
        let mut broken = self.of.iter().filter(|(spread, domains)| breaks(spread, domains));
        broken
            .next()
            .map(|(spread, _)| Refusal::new(Filter::Spread, &spread.topology_key))
    }
}

impl Spread {
    fn counts(&self, newcomer: &Newcomer, node: &Node, is_drained: bool) -> bool {
        let selected = !self.honors_affinity || newcomer.selects(node);
        let cordon = Taint::of_cordon();
        let mut taints = node.taints.iter().chain(is_drained.then_some(&cordon));
        selected
            && (!self.honors_taints || taints.all(|taint| !taint.keeps_away() || newcomer.tolerates(taint)))
    }
}

impl<'a> Domains<'a> {
    fn of(spread: &Spread, newcomer: &Newcomer, counting: &[Option<&'a str>], residents: &Residents) -> Self {
        let mut pods: BTreeMap<&str, u64> = counting.iter().flatten().map(|value| (*value, 0)).collect();
        let own = &newcomer.resident.namespace;
        let there = residents.of(|namespace| namespace == own);
        let counted = there.filter(|(_, labels, _)| spread.selector.matches(labels));
        for (node, count) in counted.flat_map(|(_, _, counts)| counts) {
            if let Some(sum) = counting.get(*node).and_then(|value| pods.get_mut((*value)?)) {
                *sum += count;
            }
        }
        let enough = spread.min_domains.is_none_or(|least| pods.len() as u64 >= least);
        let least = pods.values().copied().min().filter(|_| enough);
        Self {
            least: least.unwrap_or(0),
            counts_itself: spread.selector.matches(&newcomer.resident.labels),
            pods,
        }
    }
}
