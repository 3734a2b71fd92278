//! What policies have learned of the cluster.

use std::collections::BTreeMap;

use scupper_api::DrainRequestFields;
use scupper_api::facts::{
    DeviceId, DeviceSlice, FactObject, Metadata, Namespace, Owner, Peer, PersistentVolume,
    PersistentVolumeClaim, PodSpec, ResourceClaim, VolumeAttachment, pod_groups,
};

use super::*;

/// One object of each kind, with what JSON has no form of its own for.
fn facts() -> Vec<FactObject> {
    let texts = |key: &str| BTreeMap::from([(key.to_owned(), "a \u{202e}\"b\"".to_owned())]);
    let id = |name: &str| PodRef {
        namespace: "shop".to_owned(),
        name: name.to_owned(),
        uid: Uid::new(format!("uid-of-{name}")),
    };
    let metadata = Metadata {
        name: "shop".to_owned(),
        labels: texts("team"),
        deletion: Some(Time::from_millis(7)),
        ..Metadata::default()
    };
    let device = DeviceId {
        driver: "gpu.example.com".to_owned(),
        pool: "worker-1".to_owned(),
        name: "gpu-0".to_owned(),
    };
    let labels = BTreeMap::from([("pod-group-name".to_owned(), "ring".to_owned())]);
    let groups = pod_groups("native", &labels, &BTreeMap::new());
    let controller = Controller {
        api_version: "apps/v1".to_owned(),
        kind: "Deployment".to_owned(),
        name: "web".to_owned(),
        uid: Uid::new("uid-of-web"),
        missing: false,
    };
    let peer = Peer {
        id: id("web-1"),
        node: "worker-2".to_owned(),
        phase: PodPhase::Running,
        ready: true,
        deletion: None,
        controller: Some(controller.uid.clone()),
        groups: groups.clone(),
    };
    let pod_spec = PodSpec {
        uid: "uid-of-web-1".to_owned(),
        requests: BTreeMap::from([("cpu".to_owned(), u64::MAX)]),
        groups,
        ..PodSpec::default()
    };
    let slice = DeviceSlice {
        node: "worker-1".to_owned(),
        generation: -1,
        devices: BTreeMap::from([(device, texts("model"))]),
    };
    vec![
        metadata.clone().into(),
        Namespace { metadata }.into(),
        DrainRequestFields::default().into(),
        Owner::bare("shop", controller).into(),
        pod_spec.into(),
        peer.into(),
        ResourceClaim::default().into(),
        slice.into(),
        PersistentVolumeClaim::default().into(),
        PersistentVolume::default().into(),
        VolumeAttachment::default().into(),
    ]
}

#[test]
fn facts_are_read_as_they_were_written_and_only_once() {
    let dir = tempfile::tempdir().unwrap();
    let (file, process) = (dir.path().join("a"), busy());
    let recorder = RecordingTarget::File(file.clone()).begin(|| header(&process));
    let log = recorder.facts();
    log.learned("gangs", facts);
    log.clone().learned("gpu", facts);
    let changed = || {
        let metadata = Metadata::default();
        let mut facts = facts();
        facts.push(Namespace { metadata }.into());
        facts
    };
    log.learned("gpu", changed);
    end(recorder);
    log.learned("late", facts);
    let read = Recording::read(&file).unwrap().facts;
    let [first, second] = &read[..] else {
        panic!("{read:#?}")
    };
    assert_eq!((first.policy.as_str(), &first.objects), ("gangs", &facts()));
    assert_eq!((second.policy.as_str(), second.objects.len()), ("gpu", 1));
    let unrecorded = Recorder::default().facts();
    unrecorded.learned("none", || panic!("facts that are not recorded were computed"));
}
