//! Evicts the pods of a gang together: in one wave, after one call of its hooks. Names the gang's pods on other nodes,
//! and can wait until these are gone.

mod settings;

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
};

use scupper_sdk::{
    Call, Description, Draft, Drain, Grant, Hooks, Node, Outcome, Phase, Planner, Pod, PodPhase, Policy,
    Problem, config, count, description,
    facts::{self, Peer, PeerGroup},
    hold,
};

use crate::settings::Settings;

/// The names of the waves that wait for pods on other nodes begin with it.
const WHOSE: &str = "gangs";
/// Maximum number of nodes that a reason names.
const NAMED: usize = 3;

struct Gangs;

scupper_sdk::export!(Gangs with planner, hooks);

impl Policy for Gangs {
    fn describe() -> Description {
        description!("Evicts the pods of a gang together")
            .config_schema(include_str!("../config.schema.json"))
            .wants(Grant::facts_of_peers())
    }

    fn check_config() -> Vec<Problem> {
        config::check(&settings::KEYS, Settings::read())
    }
}

/// Pods that work only together.
struct Gang<'a> {
    name: String,
    members: BTreeSet<String>,
    /// In the order in which they leave.
    here: Vec<&'a Pod>,
    /// The nodes of the others that still run there, by UID.
    elsewhere: BTreeMap<String, String>,
}

impl Planner for Gangs {
    fn plan(drain: &Drain, node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
        let settings = Settings::read()?;
        let gangs = gangs(&settings, node, draft)?;
        let mut held = Vec::new();
        for gang in &gangs {
            for pod in &gang.here {
                draft.explain(pod, gang.text());
            }
            if let Some(hold) = settings.hold.filter(|_| !gang.elsewhere.is_empty()) {
                held.extend(gang.here.iter().map(|pod| (*pod, hold)));
            }
        }
        draft.hold(WHOSE, drain, held);
        for gang in gangs {
            draft.gather(drain, gang.here);
        }
        Ok(())
    }
}

impl Hooks for Gangs {
    fn phases() -> Vec<Phase> {
        match Settings::read() {
            Ok(settings) if settings.hold.is_some() => vec![Phase::BeforeWave],
            _ => Vec::new(),
        }
    }

    fn step(call: &Call) -> Outcome {
        let settings = match Settings::read() {
            Ok(settings) => settings,
            Err(problem) => return problem.into(),
        };
        let groups = OnceCell::new();
        hold::step_asking(WHOSE, call, |pod| {
            match groups.get_or_init(|| groups_of(&settings, &call.leaving())) {
                Ok(groups) => {
                    let own = groups.iter().filter(|group| group.has(pod));
                    let running = own.flat_map(|group| &group.others);
                    let running = running.filter(|peer| runs_elsewhere(peer, &call.node));
                    let nodes: BTreeMap<_, _> = running.map(|peer| (&peer.uid, peer.node.as_str())).collect();
                    let nodes: Vec<&str> = nodes.into_values().collect();
                    (!nodes.is_empty()).then(|| format!("waits for {}", pods_on(&nodes)))
                }
                // The time limit still applies, so an outage delays the drain no longer than that.
                Err(error) => Some(format!("its gang cannot be read: {error}")),
            }
        })
    }
}

/// The gangs of the pods that leave.
fn gangs<'a>(settings: &Settings, node: &Node, draft: &Draft<'a>) -> Result<Vec<Gang<'a>>, facts::Error> {
    let mut leaving = draft.leaving();
    leaving.retain(|pod| !pod.driver);
    let mut gangs: Vec<Gang<'a>> = Vec::new();
    for group in groups_of(settings, &leaving)? {
        if group.pods.len() + group.others.len() < 2 {
            continue;
        }
        let mut gang = Gang::of(&group, &leaving, node);
        // A pod may be in several groups: then they are one gang.
        let (same, others) = gangs
            .into_iter()
            .partition(|other: &Gang<'_>| !other.members.is_disjoint(&gang.members));
        gangs = others;
        gang = same
            .into_iter()
            .rev()
            .fold(gang, |gang, earlier| earlier.with(gang));
        gangs.push(gang);
    }
    for gang in &mut gangs {
        gang.here = leaving
            .iter()
            .copied()
            .filter(|pod| gang.members.contains(&pod.uid))
            .collect();
    }
    Ok(gangs)
}

/// What pods are in together. Only pods that may be in a gang are asked about, because a plain Deployment may have thousands.
fn groups_of(settings: &Settings, pods: &[&Pod]) -> Result<Vec<PeerGroup>, facts::Error> {
    let mut groups = match settings.scheduling_groups {
        true => facts::group_peers(pods.iter().copied())?,
        false => Vec::new(),
    };
    let marked = pods.iter().copied().filter(|pod| settings.is_marked(pod));
    groups.extend(facts::controller_peers(marked)?);
    Ok(groups)
}

fn runs_elsewhere(peer: &Peer, node: &Node) -> bool {
    let has_ended = matches!(peer.phase, PodPhase::Succeeded | PodPhase::Failed);
    peer.is_elsewhere(node) && !peer.is_terminating() && !has_ended
}

impl<'a> Gang<'a> {
    fn of(group: &PeerGroup, leaving: &[&'a Pod], node: &Node) -> Self {
        let running = group.others.iter().filter(|peer| runs_elsewhere(peer, node));
        let others = group.others.iter().map(|peer| &peer.uid);
        Self {
            name: group.name.clone(),
            members: group.pods.iter().chain(others).cloned().collect(),
            here: leaving.iter().copied().filter(|pod| group.has(pod)).collect(),
            elsewhere: running
                .map(|peer| (peer.uid.clone(), peer.node.clone()))
                .collect(),
        }
    }

    /// Both as one, under the name of this one.
    fn with(mut self, later: Self) -> Self {
        self.members.extend(later.members);
        self.elsewhere.extend(later.elsewhere);
        self
    }

    /// `gang bert of 2 pods here and 3 more pods on node-2, node-3`
    fn text(&self) -> String {
        let here = count(self.here.len(), "pod");
        let nodes: Vec<&str> = self.elsewhere.values().map(String::as_str).collect();
        let more = match nodes.len() {
            0 => String::new(),
            _ => format!(" and {}", pods_on(&nodes)),
        };
        format!("gang {} of {here} here{more}", self.name)
    }
}

/// `3 more pods on node-2, node-3 and 2 more nodes`
fn pods_on(nodes: &[&str]) -> String {
    let distinct: BTreeSet<&str> = nodes.iter().copied().collect();
    let named: Vec<&str> = distinct.iter().take(NAMED).copied().collect();
    let rest = match distinct.len().saturating_sub(NAMED) {
        0 => String::new(),
        rest => format!(" and {}", count(rest, "more node")),
    };
    format!("{} on {}{rest}", count(nodes.len(), "more pod"), named.join(", "))
}

#[cfg(test)]
mod tests;
