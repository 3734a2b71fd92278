//! Builders of objects for tests and demos. They build JSON for [`super::Store::apply`] or a POST.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use serde_json::{Value, json};

use super::cluster::status;
use super::fields;

/// The start time of all built objects.
const STARTED: &str = "2026-01-01T00:00:00Z";

/// A node that is Ready.
pub fn node(name: &str) -> Object {
    Object(json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}},
        "spec": {},
        "status": {
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady",
                "message": "kubelet is posting ready status",
                "lastHeartbeatTime": STARTED, "lastTransitionTime": STARTED}],
            "nodeInfo": {"kubeletVersion": "v1.37.1", "architecture": "amd64", "operatingSystem": "linux",
                "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "", "kubeProxyVersion": "",
                "machineID": "", "osImage": "", "systemUUID": ""},
        },
    }))
}

/// A namespace.
pub fn namespace(name: &str) -> Object {
    Object(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
}

/// A running, ready pod without a controller.
pub fn pod(namespace: &str, name: &str, node: &str) -> Object {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name, "labels": {}, "annotations": {}},
        "spec": {"nodeName": node, "terminationGracePeriodSeconds": 30,
            "containers": [{"name": "main", "image": "none"}]},
        "status": {},
    });
    status::run(&mut pod, true, STARTED);
    Object(pod)
}

/// A PersistentVolume that is bound to this claim.
pub fn persistent_volume(name: &str, namespace: &str, claim: &str) -> Object {
    Object(json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name, "annotations": {}},
        "spec": {"claimRef": {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": claim}},
    }))
}

/// A PersistentVolumeClaim that is bound to this volume.
pub fn volume_claim(namespace: &str, name: &str, volume: &str) -> Object {
    Object(json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": namespace, "name": name, "annotations": {}}, "spec": {"volumeName": volume},
    }))
}

/// A PersistentVolume whose data is on one node, bound to this claim.
pub fn local_volume(name: &str, node: &str, namespace: &str, claim: &str) -> Object {
    let host = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [node]});
    persistent_volume(name, namespace, claim)
        .with("/spec/local", json!({"path": format!("/mnt/{name}")}))
        .with(
            "/spec/nodeAffinity",
            json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [host]}]}}),
        )
}

/// A PersistentVolume that is attached to a node. The annotation `testbed/detaches` says how many seconds detaching takes
/// once no pod uses it; `never`: it stays.
pub fn volume_attachment(name: &str, node: &str, volume: &str) -> Object {
    Object(json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": name, "annotations": {}},
        "spec": {"attacher": "csi.example.com", "nodeName": node, "source": {"persistentVolumeName": volume}},
        "status": {"attached": true},
    }))
}

/// A budget that requires `minimum` pods with all of these labels. The disruption controller writes its status.
pub fn budget(namespace: &str, name: &str, selector: &[(&str, &str)], minimum: impl Into<Value>) -> Value {
    let labels: serde_json::Map<String, Value> = selector
        .iter()
        .map(|(key, value)| ((*key).to_owned(), Value::from(*value)))
        .collect();
    json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"minAvailable": minimum.into(), "selector": {"matchLabels": labels}}})
}

/// A Service of the pods with this label.
pub fn service(namespace: &str, name: &str, (key, value): (&str, &str)) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": namespace, "name": name},
        "spec": {"selector": {key: value}}})
}

/// A ReplicaSet with this number of pods. With [`super::Options::owners`] it creates missing ones.
pub fn replica_set(namespace: &str, name: &str, replicas: u32) -> Object {
    owner("ReplicaSet", namespace, name).with("/spec/replicas", replicas)
}

/// A Deployment whose rollout is complete. Nothing carries out its rollouts.
pub fn deployment(namespace: &str, name: &str, replicas: u32) -> Object {
    let status = json!({"observedGeneration": 1, "replicas": replicas, "updatedReplicas": replicas});
    owner("Deployment", namespace, name)
        .with("/spec/replicas", replicas)
        .with("/status", status)
}

/// A StatefulSet with this number of pods. With [`super::Options::owners`] it creates missing ones.
pub fn stateful_set(namespace: &str, name: &str, replicas: u32) -> Object {
    owner("StatefulSet", namespace, name).with("/spec/replicas", replicas)
}

/// A DaemonSet, as the owner of its pods.
pub fn daemon_set(namespace: &str, name: &str) -> Object {
    owner("DaemonSet", namespace, name)
}

fn owner(kind: &str, namespace: &str, name: &str) -> Object {
    let labels = json!({"app": name});
    Object(json!({
        "apiVersion": "apps/v1", "kind": kind,
        "metadata": {"namespace": namespace, "name": name, "uid": owner_uid(kind, namespace, name)},
        "spec": {"selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels, "annotations": {}},
                "spec": {"containers": [{"name": "main", "image": "none"}]}}},
    }))
}

/// The UID of an owner follows from its name, so that pods can be built before it.
fn owner_uid(kind: &str, namespace: &str, name: &str) -> String {
    let mut hasher = DefaultHasher::new();
    (kind, namespace, name).hash(&mut hasher);
    format!("0b1ec7ed-0000-4000-8000-{:012x}", hasher.finish() >> 16)
}

/// A LifecycleTransition for all nodes.
pub fn transition(name: &str, driver: &str, start: &str, end: &str) -> Object {
    Object(json!({
        "apiVersion": "lifecycle.k8s.io/v1alpha1", "kind": "LifecycleTransition", "metadata": {"name": name},
        "spec": {"driver": driver, "start": start, "end": end, "allNodes": true},
    }))
}

/// A LifecycleEvent that asks a node for a transition.
pub fn lifecycle_event(name: &str, transition: &str, node: &str) -> Object {
    Object(json!({
        "apiVersion": "lifecycle.k8s.io/v1alpha1", "kind": "LifecycleEvent", "metadata": {"name": name},
        "spec": {"transitionName": transition, "bindingNode": node},
    }))
}

/// An object under construction.
#[derive(Clone, Debug, PartialEq)]
pub struct Object(Value);

impl From<Object> for Value {
    fn from(object: Object) -> Self {
        object.0
    }
}

impl Object {
    /// The object.
    pub fn build(self) -> Value {
        self.0
    }

    /// Sets a value at a pointer (`/spec/hostNetwork`). Keys with a slash have their own methods.
    #[must_use]
    pub fn with(mut self, pointer: &str, value: impl Into<Value>) -> Self {
        fields::set(&mut self.0, pointer, value.into());
        self
    }

    /// A label.
    #[must_use]
    pub fn label(self, key: &str, value: &str) -> Self {
        self.entry("/metadata/labels", key, value)
    }

    /// An annotation.
    #[must_use]
    pub fn annotation(self, key: &str, value: &str) -> Self {
        self.entry("/metadata/annotations", key, value)
    }

    fn entry(mut self, map: &str, key: &str, value: &str) -> Self {
        let mut entries = self
            .0
            .pointer(map)
            .filter(|it| it.is_object())
            .cloned()
            .unwrap_or_else(|| json!({}));
        if let Some(entries) = entries.as_object_mut() {
            entries.insert(key.to_owned(), value.into());
        }
        fields::set(&mut self.0, map, entries);
        self
    }

    fn push(mut self, list: &str, value: Value) -> Self {
        let mut entries = fields::items(&self.0, list).to_vec();
        entries.push(value);
        fields::set(&mut self.0, list, entries.into());
        self
    }

    /// The node is cordoned.
    #[must_use]
    pub fn cordoned(self) -> Self {
        let taint = json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"});
        self.with("/spec/unschedulable", true).push("/spec/taints", taint)
    }

    /// The pod belongs to a ReplicaSet. Its `app` label is that one's name.
    #[must_use]
    pub fn owner_replicaset(self, name: &str) -> Self {
        self.owned_by("ReplicaSet", name)
    }

    /// The ReplicaSet belongs to a Deployment. Its `app` label is that one's name.
    #[must_use]
    pub fn owner_deployment(self, name: &str) -> Self {
        self.owned_by("Deployment", name)
    }

    /// The pod belongs to a StatefulSet. Its `app` label is that one's name.
    #[must_use]
    pub fn owner_statefulset(self, name: &str) -> Self {
        self.owned_by("StatefulSet", name)
    }

    /// The pod belongs to a DaemonSet. Its `app` label is that one's name.
    #[must_use]
    pub fn daemonset(self, name: &str) -> Self {
        self.owned_by("DaemonSet", name)
    }

    /// The pod belongs to a Job.
    #[must_use]
    pub fn job(self, name: &str) -> Self {
        self.owned_by("Job", name)
    }

    fn owned_by(self, kind: &str, name: &str) -> Self {
        let version = if kind == "Job" { "batch/v1" } else { "apps/v1" };
        let uid = owner_uid(kind, fields::text(&self.0, "/metadata/namespace"), name);
        let reference = json!({"apiVersion": version, "kind": kind, "name": name, "uid": uid,
            "controller": true, "blockOwnerDeletion": true});
        self.label("app", name)
            .push("/metadata/ownerReferences", reference)
    }

    /// The pod is the mirror of a static pod.
    #[must_use]
    pub fn mirror(self) -> Self {
        self.annotation("kubernetes.io/config.mirror", "0123456789abcdef")
            .annotation("kubernetes.io/config.source", "file")
    }

    /// Once deleted, its containers take this many seconds to end.
    #[must_use]
    pub fn takes(self, seconds: f64) -> Self {
        self.annotation("testbed/takes", &seconds.to_string())
    }

    /// Once deleted, it never ends.
    #[must_use]
    pub fn stuck(self) -> Self {
        self.annotation("testbed/stuck", "true")
    }

    /// The exit code of its containers.
    #[must_use]
    pub fn exit_code(self, code: i32) -> Self {
        self.annotation("testbed/exit-code", &code.to_string())
    }

    /// It ends by itself after this many seconds.
    #[must_use]
    pub fn completes(self, seconds: f64) -> Self {
        self.annotation("testbed/completes", &seconds.to_string())
    }

    /// It runs but is not ready.
    #[must_use]
    pub fn unready(mut self) -> Self {
        status::set_ready(&mut self.0, false, "ContainersNotReady", STARTED);
        self.annotation("testbed/ready", "false")
    }

    /// It is pending and never starts.
    #[must_use]
    pub fn pending(self) -> Self {
        self.annotation("testbed/starts", "false")
            .with("/status", json!({"phase": "Pending"}))
    }

    /// It has ended with this code.
    #[must_use]
    pub fn finished(mut self, code: i64) -> Self {
        status::finish(&mut self.0, code, STARTED);
        self
    }

    /// Its grace period in seconds.
    #[must_use]
    pub fn grace(self, seconds: u32) -> Self {
        self.with("/spec/terminationGracePeriodSeconds", seconds)
    }

    /// Its priority.
    #[must_use]
    pub fn priority(self, priority: i32) -> Self {
        self.with("/spec/priority", priority)
    }

    /// It has an `emptyDir` volume.
    #[must_use]
    pub fn empty_dir(self) -> Self {
        self.push("/spec/volumes", json!({"name": "scratch", "emptyDir": {}}))
    }

    /// It uses this PersistentVolumeClaim.
    #[must_use]
    pub fn claim(self, claim: &str) -> Self {
        let volume = json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}});
        self.push("/spec/volumes", volume)
    }

    /// It is a slurmd of the Slurm operator, in those states (`Idle`, `Allocated`, `Drain`).
    #[must_use]
    pub fn slurm(self, states: &[&str]) -> Self {
        let name = fields::text(&self.0, "/metadata/name").to_owned();
        let pod = self
            .label("app.kubernetes.io/name", "slurmd")
            .label("app.kubernetes.io/component", "worker")
            .label("nodeset.slinky.slurm.net/pod-name", &name)
            .with("/spec/hostname", name);
        states.iter().fold(pod, |pod, state| {
            let condition = json!({"type": format!("SlurmNodeState{state}"), "status": "True",
                "lastTransitionTime": STARTED});
            pod.push("/status/conditions", condition)
        })
    }

    /// A finalizer holds it.
    #[must_use]
    pub fn finalizer(self, name: &str) -> Self {
        self.push("/metadata/finalizers", name.into())
    }
}
