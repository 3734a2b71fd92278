//! The peers of a pod: the pods of the same controller or of the same scheduling group.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use scupper_engine::Uid;

use super::answers::{Answer, Answers, Asker, Facts};
use super::source::{PeerFact, PodGroups};

/// The answers about peers.
#[derive(Debug, Default)]
pub(super) struct PeerAnswers {
    /// By namespace: the pods of the call, and their peers.
    pods: BTreeMap<String, Answer<Arc<Vec<PeerFact>>>>,
    /// The pods whose peers the policy has received.
    learned: BTreeSet<Uid>,
}

/// A peer of a pod.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) fact: PeerFact,
    pub(crate) same_controller: bool,
    /// The name of the group that both are in.
    pub(crate) group: Option<String>,
}

/// What the pods of the call belong to.
struct Belongings {
    uids: BTreeSet<Uid>,
    controllers: BTreeSet<Uid>,
}

impl Facts {
    /// The other pods with the controller or a scheduling group of a pod of the call.
    pub(crate) async fn peers(&self, asker: &Asker, uid: &str) -> Answer<Vec<Peer>> {
        let pod = asker.pod(uid)?;
        if self.is_blank {
            return Ok(Vec::new());
        }
        let mut answers = self.answers.lock().await;
        let all = self.belonging(&mut answers, asker, &pod.id.namespace).await?;
        let controller = pod.controller.as_ref().map(|controller| &controller.uid);
        let own = all.iter().find(|other| other.pod.uid == pod.id.uid);
        let groups = own.map(|own| own.groups.as_slice()).unwrap_or_default();
        let others = all.iter().filter(|other| other.pod.uid != pod.id.uid);
        let peers = others.filter_map(|other| {
            let same_controller = controller.is_some() && other.controller.as_ref() == controller;
            let group = shared(groups, &other.groups);
            (same_controller || group.is_some()).then(|| Peer {
                fact: other.clone(),
                same_controller,
                group,
            })
        });
        let peers: Vec<_> = peers.collect();
        if !answers.peers.learned.contains(&pod.id.uid) {
            answers.admit_bytes(peers.iter().map(Peer::bytes).sum())?;
            answers.peers.learned.insert(pod.id.uid.clone());
        }
        Ok(peers)
    }

    async fn belonging(
        &self,
        answers: &mut Answers,
        asker: &Asker,
        namespace: &str,
    ) -> Answer<Arc<Vec<PeerFact>>> {
        if let Some(known) = answers.peers.pods.get(namespace) {
            return known.clone();
        }
        let (cluster, wanted) = (Arc::clone(&asker.cluster), namespace.to_owned());
        let belongings = Belongings::of(asker);
        let reading = async move {
            let listed = cluster.pods_of_namespace(&wanted).await?;
            Ok(belongings.select(listed))
        };
        let answer = self.fetch(answers, reading).await.map(Arc::new);
        answers.peers.pods.insert(namespace.to_owned(), answer.clone());
        answer
    }
}

impl Belongings {
    fn of(asker: &Asker) -> Self {
        let controllers = asker.pods.iter().filter_map(|pod| pod.controller.as_ref());
        Self {
            uids: asker.pods.iter().map(|pod| pod.id.uid.clone()).collect(),
            controllers: controllers.map(|controller| controller.uid.clone()).collect(),
        }
    }

    /// The pods of the call, and their peers.
    fn select(&self, mut listed: Vec<PeerFact>) -> Vec<PeerFact> {
        let is_ours = |pod: &PeerFact| self.uids.contains(&pod.pod.uid);
        let ours = listed.iter().filter(|pod| is_ours(pod));
        let groups: BTreeSet<_> = ours.flat_map(|pod| pod.groups.clone()).collect();
        listed.retain(|pod| {
            let controller = pod.controller.as_ref();
            is_ours(pod)
                || controller.is_some_and(|controller| self.controllers.contains(controller))
                || pod.groups.iter().any(|group| groups.contains(group))
        });
        listed
    }
}

/// The first group that is in both.
fn shared(groups: &[(&'static str, String)], others: &PodGroups) -> Option<String> {
    let mut groups = groups.iter();
    let shared = groups.find(|group| others.contains(group));
    shared.map(|(_, name)| name.clone())
}

impl Peer {
    /// The total size of its texts in bytes.
    fn bytes(&self) -> usize {
        let texts = [&self.fact.pod.name, &self.fact.pod.uid.0, &self.fact.node];
        texts.into_iter().chain(&self.group).map(String::len).sum()
    }
}
