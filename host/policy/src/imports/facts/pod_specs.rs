//! The specs of the node's pods, which several facts need: one list.

use std::collections::BTreeMap;
use std::sync::Arc;

use scupper_engine::{Time, Uid};

use super::answers::{Answer, Answers, AskedPod, Asker, Facts};
use super::source::PodSpecFact;

/// The specs of the node's pods.
pub(super) type PodSpecs = BTreeMap<Uid, PodSpecFact>;

/// Specs, with the time when each was read.
pub(super) type KeptPodSpecs = BTreeMap<Uid, (Time, PodSpecFact)>;

impl Facts {
    /// `None`: the pod is gone.
    pub(super) async fn pod_spec(
        &self,
        answers: &mut Answers,
        asker: &Asker,
        pod: &AskedPod,
    ) -> Answer<Option<PodSpecFact>> {
        let uid = &pod.id.uid;
        if let Some(known) = &answers.pod_specs {
            return known.clone().map(|specs| specs.get(uid).cloned());
        }
        if let Some(kept) = self.kept(|kept| kept.pod_specs.get(uid).cloned()) {
            return Ok(Some(kept));
        }
        let (cluster, node) = (Arc::clone(&asker.cluster), pod.node.clone());
        let reading = async move { cluster.pod_specs(&node).await };
        let read = self.fetch(answers, reading).await;
        self.keep(&read, |kept, (now, specs)| {
            let dated = specs.into_iter().map(|(uid, spec)| (uid, (now, spec)));
            kept.pod_specs = dated.collect();
        });
        let found = read.clone().map(|specs| specs.get(uid).cloned());
        answers.pod_specs = Some(read);
        found
    }
}

impl Answers {
    /// The specs of the call's pods in a namespace, if they were read for this plan.
    pub(super) fn specs_in<'a>(
        &'a self,
        asker: &'a Asker,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a PodSpecFact> {
        let specs = self.pod_specs.iter().flatten().flatten();
        let is_there = move |uid: &Uid| {
            let pod = asker.pod(&uid.0);
            pod.is_ok_and(|pod| pod.id.namespace == namespace)
        };
        specs.filter_map(move |(uid, spec)| is_there(uid).then_some(spec))
    }
}
