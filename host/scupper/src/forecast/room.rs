//! Where the pods that leave can come back: each node's drain by itself, and all of this forecast at once.

use std::collections::{BTreeMap, BTreeSet};

use scupper_cluster::ClusterRoom;
use scupper_engine::{Pod, Verdict};
use scupper_forecast::{Situation, Workload, on_all_cores};
use scupper_placement::wire::PodToPlace;
use scupper_placement::{Newcomer, Placement, Refusals, Resident};

/// Where the pods of each node can come back.
#[derive(Debug, Default)]
pub(super) struct Rooms {
    nodes: BTreeMap<String, NodeRoom>,
}

/// Where the pods of a node can come back.
#[derive(Debug, Default)]
pub(super) struct NodeRoom {
    /// How many nodes there are.
    pub(super) nodes: usize,
    /// How many of its pods leave and come back.
    pub(super) pods: usize,
    /// Those that fit nowhere.
    pub(super) nowhere: Vec<Homeless>,
    /// Those that fit somewhere, but nowhere if all nodes of this forecast are drained at once.
    pub(super) together: Vec<Homeless>,
    /// Those that another scheduler places, which are not looked at.
    pub(super) other_schedulers: Vec<String>,
    /// Why it is not known which nodes reach their volumes.
    pub(super) volumes_unread: Option<String>,
}

/// Pods of a workload that fit nowhere for the same reasons.
#[derive(Debug)]
pub(super) struct Homeless {
    pub(super) workload: Workload,
    /// As NAMESPACE/NAME.
    pub(super) pods: Vec<String>,
    /// Each of them fits nowhere by itself.
    pub(super) alone: bool,
    pub(super) refusals: Refusals,
    /// Other nodes that only their own drains keep from taking them.
    pub(super) fits_on: Vec<String>,
}

/// A pod that leaves and comes back.
struct Returning<'a> {
    pod: &'a Pod,
    to_place: &'a PodToPlace,
}

/// What all drains of this forecast have in common.
struct Search<'a> {
    room: &'a ClusterRoom,
    drained: Vec<&'a str>,
    /// The pods that stay on these nodes.
    staying: Vec<(&'a str, &'a Resident)>,
    returning: Vec<Returning<'a>>,
    /// Those that another scheduler places.
    others: Vec<Returning<'a>>,
}

impl Rooms {
    pub(super) fn of<'a>(room: &ClusterRoom, situations: impl Iterator<Item = &'a Situation>) -> Self {
        let situations: Vec<&Situation> = situations.collect();
        let search = Search::of(room, &situations);
        let at_once = match search.drained[..] {
            [] | [_] => Vec::new(),
            _ => search.place(
                &search.drained,
                search.staying.iter().copied(),
                search.returning.iter(),
            ),
        };
        let nodes = on_all_cores(search.drained.len(), |place| {
            let node = *search.drained.get(place)?;
            Some((node.to_owned(), search.at(node, &at_once)))
        });
        Self {
            nodes: nodes.into_iter().flatten().collect(),
        }
    }

    /// What is known of a node.
    pub(super) fn take(&mut self, node: &str) -> NodeRoom {
        self.nodes.remove(node).unwrap_or_default()
    }
}

impl<'a> Search<'a> {
    fn of(room: &'a ClusterRoom, situations: &[&'a Situation]) -> Self {
        let leaving = situations.iter().flat_map(|one| one.plan.leaving());
        let leaving: BTreeSet<&str> = leaving.map(|decision| decision.pod.as_str()).collect();
        let staying = room.pods.iter().filter(|pod| !leaving.contains(pod.uid.as_str()));
        let known = room.pods.iter().map(|pod| (pod.uid.as_str(), pod));
        let known: BTreeMap<&str, &PodToPlace> = known.collect();
        let returning = situations.iter().flat_map(|one| {
            let pods = one.pods.iter().filter(|pod| comes_back(one, pod));
            pods.filter_map(|pod| {
                let to_place = known.get(pod.id.uid.as_str())?;
                Some(Returning { pod, to_place })
            })
        });
        let (returning, others) = returning.partition(|one| one.to_place.other_scheduler.is_none());
        Self {
            room,
            drained: situations.iter().map(|one| one.node.name.as_str()).collect(),
            staying: staying.map(at_node).collect(),
            returning,
            others,
        }
    }

    /// Of one node. `at_once`: what becomes of all pods if all these nodes are drained; empty: there is no other.
    fn at(&self, node: &str, at_once: &[Placement]) -> NodeRoom {
        let is_own = |one: &&Returning<'_>| one.to_place.node == node;
        let own: Vec<&Returning<'_>> = self.returning.iter().filter(is_own).collect();
        let elsewhere = self.room.pods.iter().filter(|pod| pod.node != node).map(at_node);
        let here = self.staying.iter().copied().filter(|(place, _)| *place == node);
        let alone = self.place(&[node], here.chain(elsewhere), own.iter().copied());
        let fit_alone = own
            .iter()
            .zip(&alone)
            .filter(|(_, placement)| matches!(placement, Placement::Fits { .. }));
        let fit_alone: BTreeSet<&str> = fit_alone.map(|(one, _)| one.to_place.uid.as_str()).collect();
        let together = self.returning.iter().zip(at_once);
        let together = together.filter(|(one, _)| fit_alone.contains(one.to_place.uid.as_str()));
        let other_schedulers = self.others.iter().filter(is_own);
        let has_claims = own.iter().any(|one| !one.to_place.claims.is_empty());
        let unread = self.room.volumes_unread.as_ref().filter(|_| has_claims);
        NodeRoom {
            nodes: self.room.scene.nodes(),
            pods: own.len(),
            nowhere: homeless(node, own.iter().copied().zip(&alone)),
            together: homeless(node, together),
            other_schedulers: other_schedulers.map(|one| one.pod.id.to_string()).collect(),
            volumes_unread: unread.map(ToString::to_string),
        }
    }

    fn place<'b>(
        &'b self,
        drained: &[&'b str],
        staying: impl Iterator<Item = (&'b str, &'b Resident)>,
        returning: impl Iterator<Item = &'b Returning<'b>>,
    ) -> Vec<Placement> {
        let newcomers: Vec<Newcomer> = returning.map(|one| one.to_place.newcomer.clone()).collect();
        let trial = self.room.scene.trial(drained.iter().copied(), staying);
        trial.place(&newcomers)
    }
}

fn at_node(pod: &PodToPlace) -> (&str, &Resident) {
    (&pod.node, &pod.newcomer.resident)
}

/// The pod is evicted or deleted, and its controller makes another that may run on any node.
fn comes_back(situation: &Situation, pod: &Pod) -> bool {
    let verdict = situation
        .plan
        .decision(&pod.id.uid)
        .map(|decision| decision.verdict);
    let leaves = matches!(verdict, Some(Verdict::Evict | Verdict::Delete));
    let controller = pod.controller.as_ref();
    let returns = controller.is_some_and(|owner| !owner.missing && owner.kind != "Node");
    leaves && returns && !pod.is_daemon() && !pod.is_finished() && pod.deletion.is_none()
}

/// Those that fit nowhere, by workload and reasons.
fn homeless<'a>(
    node: &str,
    placed: impl Iterator<Item = (&'a Returning<'a>, &'a Placement)>,
) -> Vec<Homeless> {
    let mut groups: BTreeMap<(Workload, bool, &Refusals), Vec<String>> = BTreeMap::new();
    for (one, placement) in placed {
        if let Placement::Nowhere { refusals, alone } = placement {
            let group = (Workload::of(one.pod), *alone, refusals);
            groups.entry(group).or_default().push(one.pod.id.to_string());
        }
    }
    let groups = groups.into_iter();
    let homeless = groups.map(|((workload, alone, refusals), pods)| Homeless {
        workload,
        pods,
        alone,
        fits_on: refusals
            .drained
            .iter()
            .filter(|other| *other != node)
            .cloned()
            .collect(),
        refusals: refusals.clone(),
    });
    homeless.collect()
}
