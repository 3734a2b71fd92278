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
            let specs = known.as_ref().map_err(Clone::clone)?;
            return Ok(specs.get(uid).cloned());
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
        let found = match &read {
            Ok(specs) => Ok(specs.get(uid).cloned()),
            Err(error) => Err(error.clone()),
        };
        answers.pod_specs = Some(read);
        found
    }
}

impl Answers {
    /// The specs of the call's pods with their namespaces, if they were read for this plan.
    pub(super) fn specs_of<'a>(
        &'a self,
        asker: &'a Asker,
    ) -> impl Iterator<Item = (&'a str, &'a PodSpecFact)> {
        let specs = self.pod_specs.iter().flatten().next();
        let pods = asker.pods.iter();
        pods.filter_map(move |pod| Some((pod.id.namespace.as_str(), specs?.get(&pod.id.uid)?)))
    }
}
