//! The pods that belong together: those of one controller, or of one scheduling group.
//!
//! A namespace is listed only if a pod that a policy asks about belongs to something there; where labels say so, the
//! server selects by them. What belongs to the other pods of the call is remembered from the same lists.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use scupper_engine::{PodPhase, Uid};

use super::answers::{ALL_FETCHES, Answer, Answers, AskedPod, Asker, Facts};
use super::source::{PeerFact, PodGroups, WantedPeers};

/// A list: its namespace, and the label that selects its pods.
type Listed = (String, Option<String>);

/// The answers about peers.
#[derive(Debug, Default)]
pub(super) struct PeerAnswers {
    /// The pods that belong to those of the call, by namespace, and by the label that selects them.
    pods: BTreeMap<Listed, Answer<Arc<Vec<PeerFact>>>>,
    /// The lists that were read, for a watch of the same.
    known: Vec<KnownPeers>,
    /// The groups that the policies have received.
    learned: BTreeSet<Bond>,
}

/// The pods that a list returned, and what it was for.
#[derive(Clone, Debug)]
pub struct KnownPeers {
    /// What the list was for.
    pub wanted: WantedPeers,
    /// What it returned.
    pub pods: Arc<Vec<PeerFact>>,
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

/// Pods that belong together.
#[derive(Clone, Debug)]
pub(crate) struct PeerGroup {
    /// Of the controller or the scheduling group.
    pub(crate) name: String,
    /// Those that were asked about.
    pub(crate) pods: Vec<Uid>,
    pub(crate) others: Vec<PeerFact>,
}

/// A pod of the call with its scheduling groups.
type Member<'a> = (&'a AskedPod, PodGroups);

impl Facts {
    /// What a call has learned of peers. None while it is being made.
    pub fn known_peers(&self) -> Vec<KnownPeers> {
        let answers = self.answers.try_lock();
        answers
            .map(|answers| answers.peers.known.clone())
            .unwrap_or_default()
    }

    /// What these pods of the call belong to. A pod that belongs to nothing is in none of the groups.
    pub(crate) async fn peers(
        &self,
        asker: &Asker,
        uids: &[String],
        relation: Relation,
    ) -> Answer<Vec<PeerGroup>> {
        let asked: BTreeSet<&str> = uids.iter().map(String::as_str).collect();
        for uid in &asked {
            asker.pod(uid)?;
        }
        if self.is_blank || asked.is_empty() {
            return Ok(Vec::new());
        }
        let mut answers = self.answers(asker).await;
        let mut members = Vec::new();
        for pod in &asker.pods {
            let spec = self.pod_spec(&mut answers, asker, pod).await?;
            members.push((pod, spec.map(|spec| spec.groups).unwrap_or_default()));
        }
        let mut groups = BTreeMap::<Bond, (String, Vec<Uid>)>::new();
        for (pod, marks) in members
            .iter()
            .filter(|(pod, _)| asked.contains(pod.id.uid.0.as_str()))
        {
            for (bond, name) in bonds(pod, marks, relation) {
                let (_, pods) = groups.entry(bond).or_insert_with(|| (name, Vec::new()));
                pods.push(pod.id.uid.clone());
            }
        }
        let mut found = Vec::new();
        for (bond, (name, pods)) in groups {
            let all = self.bound(&mut answers, asker, &members, &bond).await?;
            let own: BTreeSet<&Uid> = pods.iter().collect();
            let others = all
                .iter()
                .filter(|peer| bond.includes(peer) && !own.contains(&peer.pod.uid));
            let others: Vec<PeerFact> = others.cloned().collect();
            if !answers.peers.learned.contains(&bond) {
                answers.admit_bytes(others.iter().map(bytes).sum())?;
                answers.peers.learned.insert(bond);
            }
            found.push(PeerGroup { name, pods, others });
        }
        Ok(found)
    }

    /// The pods of the bond's namespace that belong to pods of the call, those of the bond among them.
    async fn bound(
        &self,
        answers: &mut Answers,
        asker: &Asker,
        members: &[Member<'_>],
        bond: &Bond,
    ) -> Answer<Arc<Vec<PeerFact>>> {
        let namespace = bond.namespace().to_owned();
        let whole = (namespace.clone(), None);
        if let Some(known) = answers.peers.pods.get(&whole) {
            return known.clone();
        }
        let wanted = wanted(members, bond);
        let place = (namespace, wanted.label.as_ref().map(|(key, _)| key.clone()));
        if let Some(known) = answers.peers.pods.get(&place) {
            return known.clone();
        }
        let (cluster, selected) = (Arc::clone(&asker.cluster), wanted.clone());
        let reading = async move {
            let mut listed = cluster.peers(&selected).await?;
            let has_ended = |peer: &PeerFact| matches!(peer.phase, PodPhase::Succeeded | PodPhase::Failed);
            listed
                .retain(|peer| !has_ended(peer) && selected.includes(peer.controller.as_ref(), &peer.groups));
            Ok(listed)
        };
        let answer = self
            .fetch_within(ALL_FETCHES, answers, reading)
            .await
            .map(Arc::new);
        if let Ok(pods) = &answer {
            let pods = Arc::clone(pods);
            answers.peers.known.push(KnownPeers { wanted, pods });
        }
        answers.peers.pods.insert(place, answer.clone());
        answer
    }
}

/// What a pod belongs to, with its name.
fn bonds(pod: &AskedPod, groups: &PodGroups, relation: Relation) -> Vec<(Bond, String)> {
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
fn wanted(members: &[Member<'_>], bond: &Bond) -> WantedPeers {
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
            return WantedPeers {
                namespace: namespace.to_owned(),
                groups: names.iter().map(|name| (*mark, name.clone())).collect(),
                label: Some(((*mark).to_owned(), names)),
                controllers: BTreeSet::new(),
            };
        }
    }
    let controllers = here.iter().filter_map(|(pod, _)| pod.controller.as_ref());
    WantedPeers {
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

    fn includes(&self, peer: &PeerFact) -> bool {
        match self {
            Self::Controller(_, uid) => peer.controller.as_ref() == Some(uid),
            Self::Group(_, group) => peer.groups.contains(group),
        }
    }
}

/// The total size of a peer's texts in bytes.
fn bytes(peer: &PeerFact) -> usize {
    let texts = [&peer.pod.name, &peer.pod.uid.0, &peer.node];
    texts.into_iter().map(String::len).sum()
}
