//! The served kinds: names, scope, selectable fields.

use serde_json::{Value, json};

/// A kind of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) kind: String,
    pub(crate) namespaced: bool,
    /// It has a `/status`, and writes of the main resource do not change the status.
    pub(crate) status: bool,
    /// `metadata.generation` counts changes of the spec.
    pub(crate) generation: bool,
    /// Served from a CRD: objects in lists have their kind, and there is no strategic merge.
    pub(crate) custom: bool,
    /// The selectable fields besides `metadata.name` and `metadata.namespace`.
    pub(crate) selectable: Vec<String>,
}

impl Kind {
    /// A kind of a CRD, cluster-scoped, with a status and a counted generation.
    pub fn custom(group: &str, version: &str, plural: &str, kind: &str) -> Self {
        Self {
            custom: true,
            status: true,
            generation: true,
            ..Self::of(group, version, plural, kind)
        }
    }

    /// The same kind, in namespaces.
    #[must_use]
    pub fn namespaced(mut self) -> Self {
        self.namespaced = true;
        self
    }

    /// The same kind, with one more field to select by (`spec.nodeName`).
    #[must_use]
    pub fn selectable(mut self, field: &str) -> Self {
        self.selectable.push(field.to_owned());
        self
    }

    fn of(group: &str, version: &str, plural: &str, kind: &str) -> Self {
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural.to_owned(),
            kind: kind.to_owned(),
            namespaced: false,
            status: false,
            generation: false,
            custom: false,
            selectable: Vec::new(),
        }
    }

    fn with_status(mut self, generation: bool) -> Self {
        self.status = true;
        self.generation = generation;
        self
    }

    /// `pods`, `lifecycleevents.lifecycle.k8s.io`.
    pub(crate) fn resource(&self) -> String {
        qualify(&self.plural, &self.group)
    }

    /// `Pod`, `LifecycleEvent.lifecycle.k8s.io`.
    pub(crate) fn qualified(&self) -> String {
        qualify(&self.kind, &self.group)
    }

    /// `v1`, `policy/v1`.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The details of a Status about an object of this kind.
    pub(crate) fn details(&self, name: &str, kind: &str) -> Value {
        let mut details = json!({"kind": kind});
        if let Some(map) = details.as_object_mut() {
            if !name.is_empty() {
                map.insert("name".to_owned(), name.into());
            }
            if !self.group.is_empty() {
                map.insert("group".to_owned(), self.group.clone().into());
            }
        }
        details
    }
}

fn qualify(name: &str, group: &str) -> String {
    if group.is_empty() {
        name.to_owned()
    } else {
        format!("{name}.{group}")
    }
}

/// How the kinds of `lifecycle.k8s.io` are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lifecycle {
    /// By the API server itself, with its own validation.
    #[default]
    Native,
    /// From CRDs, as on clusters of today.
    Crd,
    /// Not at all.
    NotServed,
}

/// The two kinds of SLM, under a group name.
fn lifecycle(how: Lifecycle, group: &str) -> Vec<Kind> {
    if how == Lifecycle::NotServed {
        return Vec::new();
    }
    let custom = how == Lifecycle::Crd;
    let transition = Kind::of(group, "v1alpha1", "lifecycletransitions", "LifecycleTransition")
        .selectable("spec.nodeName")
        .selectable("spec.driver");
    let event = Kind::of(group, "v1alpha1", "lifecycleevents", "LifecycleEvent")
        .with_status(custom)
        .selectable("spec.bindingNode");
    vec![
        Kind {
            custom,
            generation: custom,
            ..transition
        },
        Kind { custom, ..event },
    ]
}

/// All kinds that a server with these options serves.
pub(crate) fn all(how: Lifecycle, group: &str, extra: &[Kind]) -> Vec<Kind> {
    let mut kinds = vec![
        Kind::of("", "v1", "nodes", "Node")
            .with_status(false)
            .selectable("spec.unschedulable"),
        Kind::of("", "v1", "namespaces", "Namespace")
            .with_status(false)
            .selectable("status.phase"),
        Kind::of("", "v1", "pods", "Pod")
            .namespaced()
            .with_status(true)
            .selectable("spec.nodeName")
            .selectable("spec.restartPolicy")
            .selectable("spec.schedulerName")
            .selectable("spec.serviceAccountName")
            .selectable("status.phase")
            .selectable("status.podIP")
            .selectable("status.nominatedNodeName"),
        Kind::of("", "v1", "configmaps", "ConfigMap").namespaced(),
        Kind::of("", "v1", "services", "Service").namespaced(),
        Kind::of("", "v1", "persistentvolumes", "PersistentVolume").with_status(false),
        Kind::of("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
            .namespaced()
            .with_status(false),
        Kind::of("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment").with_status(false),
        Kind::of("", "v1", "secrets", "Secret")
            .namespaced()
            .selectable("type"),
        Kind::of("", "v1", "serviceaccounts", "ServiceAccount").namespaced(),
        Kind::of("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
            .namespaced()
            .with_status(true),
        Kind::of("apps", "v1", "daemonsets", "DaemonSet")
            .namespaced()
            .with_status(true),
        Kind::of("apps", "v1", "deployments", "Deployment")
            .namespaced()
            .with_status(true),
        Kind::of("apps", "v1", "replicasets", "ReplicaSet")
            .namespaced()
            .with_status(true),
        Kind::of("apps", "v1", "statefulsets", "StatefulSet")
            .namespaced()
            .with_status(true),
        Kind::of("batch", "v1", "jobs", "Job")
            .namespaced()
            .with_status(true),
        Kind::of("batch", "v1", "cronjobs", "CronJob")
            .namespaced()
            .with_status(true),
        Kind::of("", "v1", "replicationcontrollers", "ReplicationController")
            .namespaced()
            .with_status(true),
        Kind::of(
            "autoscaling",
            "v2",
            "horizontalpodautoscalers",
            "HorizontalPodAutoscaler",
        )
        .namespaced()
        .with_status(false),
        Kind::of("coordination.k8s.io", "v1", "leases", "Lease").namespaced(),
        events(Kind::of("", "v1", "events", "Event"), "involvedObject"),
        events(Kind::of("events.k8s.io", "v1", "events", "Event"), "regarding"),
    ];
    kinds.extend(lifecycle(how, group));
    kinds.extend(extra.iter().cloned());
    kinds
}

fn events(kind: Kind, about: &str) -> Kind {
    let fields = [
        "kind",
        "namespace",
        "name",
        "uid",
        "apiVersion",
        "resourceVersion",
        "fieldPath",
    ];
    let kind = fields.iter().fold(kind.namespaced(), |kind, field| {
        kind.selectable(&format!("{about}.{field}"))
    });
    kind.selectable("reason")
        .selectable("type")
        .selectable("reportingComponent")
        .selectable("source")
}
