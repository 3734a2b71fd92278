//! Newcomers placed one after another: those that were placed take room, and are met by the next.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::filters;
use crate::model::{Newcomer, Node, Resident};
use crate::pod_terms::PodTerms;
use crate::refusal::{Filter, Refusal, Refusals};
use crate::residents::Residents;
use crate::scene::{Scene, Used};
use crate::spread::Spreads;

/// What becomes of a newcomer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// It fits on this node. The scheduler may choose another.
    Fits {
        /// The node's name.
        node: String,
    },
    /// It fits on no node.
    Nowhere {
        /// Why.
        refusals: Refusals,
        /// Not even by itself. Otherwise the other newcomers have taken its room: which of them stays without a node depends
        /// on the order in which the scheduler takes them.
        alone: bool,
    },
}

/// Which of the nodes that take a pod it goes to.
#[derive(Clone, Copy, Debug)]
enum Choice {
    /// The fullest, so that large pods find room later.
    Fullest,
    /// The emptiest, as the scheduler prefers.
    Emptiest,
}

/// A cluster some of whose nodes are drained.
#[derive(Clone, Debug)]
pub struct Trial<'a> {
    scene: &'a Scene,
    drained: BTreeSet<usize>,
    /// The pods that stay, besides those of the scene.
    staying: Vec<(usize, &'a Resident)>,
}

/// What newcomers meet: the nodes with the pods that are there, as they fill.
#[derive(Clone, Debug)]
struct Filling<'a> {
    trial: &'a Trial<'a>,
    residents: Residents,
    used: Vec<Used>,
}

impl<'a> Trial<'a> {
    pub(crate) fn new(
        scene: &'a Scene,
        drained: BTreeSet<usize>,
        staying: impl Iterator<Item = (usize, &'a Resident)>,
    ) -> Self {
        Self {
            scene,
            drained,
            staying: staying.collect(),
        }
    }

    /// What becomes of these newcomers together, in their order. A pod that has no node at first is tried again once others
    /// have one. Where not all fit, a second way to fill the nodes is tried: neither is certain to be the best.
    pub fn place(&self, newcomers: &[Newcomer]) -> Vec<Placement> {
        let start = self.filling(newcomers);
        let alone: Vec<_> = newcomers
            .iter()
            .map(|newcomer| start.by_itself(newcomer))
            .collect();
        let could_fit = alone.iter().filter(|(fits, _)| *fits > 0).count();
        let mut order: Vec<usize> = (0..newcomers.len()).collect();
        order.sort_by_key(|place| {
            let priority = newcomers.get(*place).map(|newcomer| newcomer.priority);
            (
                Reverse(priority),
                alone.get(*place).map(|(fits, _)| *fits),
                *place,
            )
        });
        let without = |placed: &[Placement]| {
            placed
                .iter()
                .filter(|one| matches!(one, Placement::Nowhere { .. }))
                .count()
        };
        let fullest = start.clone().fill(newcomers, &order, &alone, Choice::Fullest);
        if without(&fullest) + could_fit <= newcomers.len() {
            return fullest;
        }
        let emptiest = start.clone().fill(newcomers, &order, &alone, Choice::Emptiest);
        if without(&emptiest) < without(&fullest) {
            emptiest
        } else {
            fullest
        }
    }

    /// Before the first of them has a node.
    fn filling(&self, newcomers: &[Newcomer]) -> Filling<'_> {
        let mut start = Filling {
            trial: self,
            residents: self.scene.residents.for_newcomers(newcomers),
            used: self.scene.used.clone(),
        };
        let staying = self.staying.iter();
        staying.for_each(|(node, resident)| start.add(resident, *node));
        start
    }

    fn name(&self, node: usize) -> &str {
        self.scene.nodes.get(node).map_or("", |node| node.name.as_str())
    }
}

impl Filling<'_> {
    fn fill(
        mut self,
        newcomers: &[Newcomer],
        order: &[usize],
        alone: &[(usize, Refusals)],
        choice: Choice,
    ) -> Vec<Placement> {
        let mut nodes: Vec<Option<usize>> = vec![None; newcomers.len()];
        loop {
            let mut has_placed = false;
            for place in order {
                let (Some(newcomer), Some(node @ None)) = (newcomers.get(*place), nodes.get_mut(*place))
                else {
                    continue;
                };
                *node = self.best(newcomer, choice);
                if let Some(chosen) = *node {
                    self.add(&newcomer.resident, chosen);
                    has_placed = true;
                }
            }
            if !has_placed {
                break;
            }
        }
        let all = newcomers.iter().zip(nodes).zip(alone);
        all.map(|((newcomer, node), (fits, refusals))| match node {
            Some(node) => Placement::Fits {
                node: self.trial.name(node).to_owned(),
            },
            None if *fits == 0 => Placement::Nowhere {
                refusals: refusals.clone(),
                alone: true,
            },
            None => Placement::Nowhere {
                refusals: self.by_itself(newcomer).1,
                alone: false,
            },
        })
        .collect()
    }

    fn add(&mut self, resident: &Resident, node: usize) {
        if let Some(used) = self.used.get_mut(node) {
            used.add(resident);
            self.residents.add(resident, node);
        }
    }

    /// How many nodes take it as the cluster is now, and why the others do not.
    fn by_itself(&self, newcomer: &Newcomer) -> (usize, Refusals) {
        let (mut fits, mut refusals) = (0, Refusals::default());
        for (_, node, refusal) in self.tried(newcomer) {
            match refusal {
                None => fits += 1,
                Some(refusal) => refusals.add(&node.name, refusal),
            }
        }
        (fits, refusals)
    }

    fn best(&self, newcomer: &Newcomer, choice: Choice) -> Option<usize> {
        let taking = self.tried(newcomer).filter(|(_, _, refusal)| refusal.is_none());
        let fullness = |place: usize, node: &Node| {
            let used = self.used.get(place);
            used.map_or(0.0, |used| filters::fullness(node, used, newcomer))
        };
        let rated = taking.map(|(place, node, _)| (place, fullness(place, node)));
        let best = rated.min_by(|(_, one), (_, other)| match choice {
            Choice::Fullest => other.total_cmp(one),
            Choice::Emptiest => one.total_cmp(other),
        });
        best.map(|(place, _)| place)
    }

    /// All nodes, and what the first filter says that refuses the pod there.
    fn tried<'b>(
        &'b self,
        newcomer: &'b Newcomer,
    ) -> impl Iterator<Item = (usize, &'b Node, Option<Refusal>)> {
        let nodes = &self.trial.scene.nodes;
        let drained = &self.trial.drained;
        let spreads = Spreads::of(newcomer, nodes, drained, &self.residents);
        let terms = PodTerms::of(newcomer, nodes, &self.residents);
        nodes
            .iter()
            .zip(&self.used)
            .enumerate()
            .map(move |(place, (node, used))| {
                let is_drained = drained.contains(&place);
                let refusal = filters::refusal(node, used, newcomer, is_drained)
                    .or_else(|| spreads.refusal(node))
                    .or_else(|| terms.refusal(node))
                    .or_else(|| is_drained.then(|| Refusal::new(Filter::Drained, "")));
                (place, node, refusal)
            })
    }
}
