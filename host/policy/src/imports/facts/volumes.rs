//! The volumes of a pod: its spec, the claims behind them, and where they are attached.

use scupper_api::facts::{
    FactKind, FactQuery, FactType as _, PersistentVolume, PersistentVolumeClaim, PodVolume, VolumeAttachment,
};
use scupper_policy_spec::Fact;

use super::cache::{Answer, FactReader, Facts, at};
use super::caller::{CallerPod, FactCaller};
use crate::wit::bindings::scupper::drain::facts;

/// Volumes whose data is on the node, by the kind of their source in a pod.
const NODE_LOCAL: [&str; 3] = ["csi", "emptyDir", "hostPath"];

/// Kinds of PersistentVolumes that are never attached.
const NOT_ATTACHED: [&str; 4] = ["", "hostPath", "local", "nfs"];

impl Facts {
    /// The volumes of a pod of the call.
    pub(crate) async fn volumes(&self, caller: &FactCaller, uid: &str) -> Answer<Vec<facts::Volume>> {
        let pod = caller.pod(uid)?;
        let mut reader = self.reader(caller).await;
        let spec = reader.spec(pod).await?;
        let mut volumes = Vec::new();
        for PodVolume { name, kind, claim } in spec.map(|spec| spec.volumes).unwrap_or_default() {
            let mut node_local = NODE_LOCAL.contains(&kind.as_str());
            let claim = match claim {
                Some(claim) => {
                    let (claim, is_local) = reader.claimed(pod, claim).await?;
                    node_local |= is_local;
                    Some(claim)
                }
                None => None,
            };
            volumes.push(facts::Volume {
                name,
                kind,
                node_local,
                claim,
            });
        }
        reader.count(Fact::Volumes, &[uid], volumes.iter().map(bytes).sum())?;
        Ok(volumes)
    }
}

impl FactReader<'_> {
    /// A claim of a pod, and whether only the pod's node can use its volume.
    async fn claimed(&mut self, pod: &CallerPod, name: String) -> Answer<(facts::VolumeClaim, bool)> {
        let place = (pod.id.namespace.clone(), name.clone());
        let found = self.one::<PersistentVolumeClaim>(FactKind::PersistentVolumeClaim, place);
        let found = found.await?.unwrap_or_default();
        let mut claim = facts::VolumeClaim {
            name,
            volume: found.volume,
            kind: String::new(),
            storage_class: found.storage_class,
            access_modes: found.access_modes,
            attached_to: Vec::new(),
        };
        if claim.volume.is_empty() {
            return Ok((claim, false));
        }
        let place = (String::new(), claim.volume.clone());
        let volume = self.one::<PersistentVolume>(FactKind::PersistentVolume, place.clone());
        let volume = volume.await?.unwrap_or_default();
        if !NOT_ATTACHED.contains(&volume.kind.as_str()) {
            let attachments = self
                .ask(FactQuery::all(FactKind::VolumeAttachment), |_| true)
                .await?;
            let attached = at(&attachments, &place);
            let nodes = attached.iter().filter_map(VolumeAttachment::of);
            claim.attached_to = nodes.map(|attachment| attachment.node.clone()).collect();
        }
        let is_local = volume.is_local_to(&pod.node);
        claim.kind = volume.kind;
        Ok((claim, is_local))
    }
}

/// The total size of a volume's texts in bytes.
fn bytes(volume: &facts::Volume) -> usize {
    let claim = volume.claim.iter().flat_map(|claim| {
        let texts = [&claim.name, &claim.kind, &claim.volume, &claim.storage_class].into_iter();
        texts.chain(&claim.access_modes).chain(&claim.attached_to)
    });
    let texts = [&volume.name, &volume.kind].into_iter().chain(claim);
    texts.map(String::len).sum()
}
