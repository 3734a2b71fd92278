//! The pods that belong together: those of one controller, or of one scheduling group.
//!
//! A namespace is listed only if a pod that a policy asks about belongs to something there; where labels say so, the
//! server selects by them. What belongs to the other pods of the call is remembered from the same lists.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use scupper_api::facts::{
    FactKind, FactObject, FactQuery, FactType as _, Peer, PeerSelection, PodGroups, Selection,
};
use scupper_engine::{PodPhase, Uid};
use scupper_policy_spec::Fact;

use super::cache::{Answer, FactReader, Facts, Objects};
use super::caller::{CallerPod, FactCaller};
use crate::wit::bindings::scupper::drain::facts;
use crate::wit::to_wit;

/// The pods that a list returned, and what it was for.
#[derive(Clone, Debug)]
pub struct KnownPeers {
    /// What the list was for.
    pub wanted: PeerSelection,
    pods: Objects,
}

impl KnownPeers {
    /// What it returned.
    pub fn pods(&self) -> impl Iterator<Item = &Peer> {
        self.pods.iter().filter_map(Peer::of)
    }
}

/// What pods of a namespace have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Bond {
    Controller(String, Uid),
    Group(String, (&'static str, String)),
}

/// Which bonds are asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Controller,
    SchedulingGroup,
}

/// A pod of the call with its scheduling groups.
type Member<'a> = (&'a CallerPod, PodGroups);

impl Facts {
    /// What these pods of the call belong to. A pod that belongs to nothing is in none of the groups.
    pub(crate) async fn peers(
        &self,
        caller: &FactCaller,
        uids: &[String],
        relation: Relation,
    ) -> Answer<Vec<facts::PeerGroup>> {
        let asked: BTreeSet<&str> = uids.iter().map(String::as_str).collect();
        for uid in &asked {
            caller.pod(uid)?;
        }
        let mut reader = self.reader(caller).await;
        if reader.is_blank() || asked.is_empty() {
            return Ok(Vec::new());
        }
        let mut members = Vec::new();
        for pod in &caller.pods {
            let spec = reader.spec(pod).await?;
            members.push((pod, spec.map(|spec| spec.groups).unwrap_or_default()));
        }
        let mut groups = BTreeMap::<Bond, (String, Vec<Uid>)>::new();
        let asked = members
            .iter()
            .filter(|(pod, _)| asked.contains(pod.id.uid.as_str()));
        for (pod, marks) in asked {
            for (bond, name) in bonds(pod, marks, relation) {
                let (_, pods) = groups.entry(bond).or_insert_with(|| (name, Vec::new()));
                pods.push(pod.id.uid.clone());
            }
        }
        let mut found = Vec::new();
        for (bond, (name, pods)) in groups {
            let all = reader.bound(&members, &bond).await?;
            let own: BTreeSet<&Uid> = pods.iter().collect();
            let others = all.iter().filter_map(Peer::of);
            let others = others.filter(|peer| bond.includes(peer) && !own.contains(&peer.id.uid));
            let others: Vec<&Peer> = others.collect();
            reader.count(
                Fact::Peers,
                &bond.key(),
                others.iter().map(|peer| bytes(peer)).sum(),
            )?;
            found.push(facts::PeerGroup {
                name,
                pods: pods.into_iter().map(|uid| uid.as_str().to_owned()).collect(),
                others: others.into_iter().map(as_wit).collect(),
            });
        }
        Ok(found)
    }
}

impl FactReader<'_> {
    /// The pods of the bond's namespace that belong to pods of the call, those of the bond among them.
    async fn bound(&mut self, members: &[Member<'_>], bond: &Bond) -> Answer<Objects> {
        let namespace = bond.namespace();
        let is_whole =
            |known: &&KnownPeers| known.wanted.namespace == namespace && known.wanted.label.is_none();
        if let Some(whole) = self.answers.known_peers.iter().find(is_whole) {
            return Ok(Arc::clone(&whole.pods));
        }
        let wanted = wanted(members, bond);
        let (kind, selection) = (FactKind::Peer, Selection::Peers(wanted.clone()));
        let query = FactQuery { kind, selection };
        let lives = |peer: &Peer| !matches!(peer.phase, PodPhase::Succeeded | PodPhase::Failed);
        let keeps =
            |object: &FactObject| Peer::of(object).is_some_and(|peer| lives(peer) && wanted.includes(peer));
        let pods = self.ask(query, keeps).await?;
        if !self
            .answers
            .known_peers
            .iter()
            .any(|known| known.wanted == wanted)
        {
            let pods = Arc::clone(&pods);
            self.answers.known_peers.push(KnownPeers { wanted, pods });
        }
        Ok(pods)
    }
}

/// What a pod belongs to, with its name.
fn bonds(pod: &CallerPod, groups: &PodGroups, relation: Relation) -> Vec<(Bond, String)> {
    let namespace = &pod.id.namespace;
    match relation {
        Relation::Controller => {
            let controller = pod.controller.iter();
            let bond = |uid: &Uid| Bond::Controller(namespace.clone(), uid.clone());
            controller.map(|it| (bond(&it.uid), it.name.clone())).collect()
        }
        Relation::SchedulingGroup => {
            let bond = |group: &(&'static str, String)| Bond::Group(namespace.clone(), group.clone());
            groups
                .iter()
                .map(|group| (bond(group), group.1.clone()))
                .collect()
        }
    }
}

/// The list in which the pods of a bond are: for all pods of the call in its namespace at once.
fn wanted(members: &[Member<'_>], bond: &Bond) -> PeerSelection {
    let namespace = bond.namespace();
    let here: Vec<_> = members
        .iter()
        .filter(|(pod, _)| pod.id.namespace == namespace)
        .collect();
    if let Bond::Group(_, (mark, _)) = bond {
        let with_mark = || {
            here.iter()
                .flat_map(|(pod, groups)| groups.iter().map(move |group| (pod, group)))
        };
        let mut of_mark = with_mark().filter(|(_, (other, _))| other == mark);
        // What a label says of one pod of a group, it says of all.
        if of_mark
            .clone()
            .all(|(pod, (_, name))| pod.labels.get(*mark) == Some(name))
        {
            let names: BTreeSet<String> = of_mark.by_ref().map(|(_, (_, name))| name.clone()).collect();
            return PeerSelection {
                namespace: namespace.to_owned(),
                groups: names.iter().map(|name| (*mark, name.clone())).collect(),
                label: Some(((*mark).to_owned(), names)),
                controllers: BTreeSet::new(),
            };
        }
    }
    let controllers = here.iter().filter_map(|(pod, _)| pod.controller.as_ref());
    PeerSelection {
        namespace: namespace.to_owned(),
        label: None,
        controllers: controllers.map(|controller| controller.uid.clone()).collect(),
        groups: here
            .iter()
            .flat_map(|(_, groups)| groups.iter().cloned())
            .collect(),
    }
}

impl Bond {
    fn namespace(&self) -> &str {
        match self {
            Self::Controller(namespace, _) | Self::Group(namespace, _) => namespace,
        }
    }

    /// Its parts as texts.
    fn key(&self) -> Vec<&str> {
        match self {
            Self::Controller(namespace, uid) => vec![namespace, uid.as_str()],
            Self::Group(namespace, (mark, name)) => vec![namespace, mark, name],
        }
    }

    fn includes(&self, peer: &Peer) -> bool {
        match self {
            Self::Controller(_, uid) => peer.controller.as_ref() == Some(uid),
            Self::Group(_, group) => peer.groups.contains(group),
        }
    }
}

fn as_wit(peer: &Peer) -> facts::Peer {
    facts::Peer {
        uid: peer.id.uid.as_str().to_owned(),
        name: peer.id.name.clone(),
        node: peer.node.clone(),
        phase: to_wit::phase(peer.phase),
        ready: peer.ready,
        deletion_timestamp: peer.deletion.map(|deletion| deletion.as_millis()),
    }
}

/// The total size of a peer's texts in bytes.
fn bytes(peer: &Peer) -> usize {
    let texts = [peer.id.name.as_str(), peer.id.uid.as_str(), &peer.node];
    texts.into_iter().map(str::len).sum()
}
