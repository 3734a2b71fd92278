//! Converts pods from the API's form to the engine's.

use scupper_engine::{Controller, Deletion, Pod, PodPhase, PodRef, Time, Uid};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::wire::{self, Condition, Meta, Object, nullable};

/// Directories of a node's system: pods read them, and keep no data there.
const SYSTEM_PATHS: [&str; 10] = [
    "/bin", "/dev", "/etc", "/lib", "/proc", "/run", "/sys", "/usr", "/var/log", "/var/run",
];

/// The API server's default for a pod without a grace period.
const DEFAULT_GRACE_SECONDS: i64 = 30;

/// The most of each that is kept of a pod: its owner decides how many there are, and a node runs no pod with more volumes.
const MOST_CONDITIONS: usize = 64;
const MOST_FINALIZERS: usize = 32;
const MOST_VOLUMES: usize = 512;

/// The taint that the API server puts on a cordoned node.
const CORDON_TAINT: &str = "node.kubernetes.io/unschedulable";

/// The fields of a pod that the driver needs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WirePod {
    metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    spec: Spec,
    #[serde(deserialize_with = "nullable")]
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    #[serde(deserialize_with = "nullable")]
    node_name: String,
    priority: Option<i32>,
    #[serde(deserialize_with = "nullable")]
    priority_class_name: String,
    termination_grace_period_seconds: Option<i64>,
    #[serde(deserialize_with = "nullable")]
    volumes: Vec<Volume>,
    #[serde(deserialize_with = "nullable")]
    host_network: bool,
    #[serde(deserialize_with = "nullable")]
    hostname: String,
    #[serde(deserialize_with = "nullable")]
    tolerations: Vec<Toleration>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Volume {
    name: String,
    empty_dir: Option<IgnoredAny>,
    persistent_volume_claim: Option<ClaimSource>,
    ephemeral: Option<IgnoredAny>,
    host_path: Option<HostPath>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct HostPath {
    path: String,
    #[serde(rename = "type", deserialize_with = "nullable")]
    kind: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClaimSource {
    claim_name: String,
}

impl Volume {
    /// The PersistentVolumeClaim behind it. That of an ephemeral volume is named after the pod and the volume.
    fn claim(&self, pod: &str) -> Option<String> {
        let named = self.persistent_volume_claim.as_ref();
        let named = named.map(|claim| claim.claim_name.clone());
        named.or_else(|| self.ephemeral.map(|_| format!("{pod}-{}", self.name)))
    }

    /// The directory of the node that it shows, if that may hold the pod's data.
    fn host_directory(&self) -> Option<String> {
        let HostPath { path, kind } = self.host_path.as_ref()?;
        let is_directory = matches!(kind.as_str(), "" | "Directory" | "DirectoryOrCreate");
        let is_below = |parent: &str| {
            let rest = path.strip_prefix(parent);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let is_data = is_directory && path != "/" && !SYSTEM_PATHS.iter().any(|parent| is_below(parent));
        is_data.then(|| path.clone())
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    #[serde(deserialize_with = "nullable")]
    phase: String,
    #[serde(deserialize_with = "nullable")]
    conditions: Vec<Condition>,
}

/// One of `spec.tolerations`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Toleration {
    #[serde(deserialize_with = "nullable")]
    key: String,
    #[serde(deserialize_with = "nullable")]
    operator: String,
    #[serde(deserialize_with = "nullable")]
    value: String,
    #[serde(deserialize_with = "nullable")]
    effect: String,
}

impl Toleration {
    /// Formats the toleration for users, if it tolerates the taint of a cordon by the API's rules.
    fn of_a_cordon(&self) -> Option<String> {
        let exists = self.operator == "Exists";
        let of_effect = self.effect.is_empty() || self.effect == "NoSchedule";
        let of_key = match self.key.as_str() {
            "" => exists,
            CORDON_TAINT => exists || self.value.is_empty(),
            _ => false,
        };
        (of_effect && of_key).then(|| match self.key.as_str() {
            "" => "every taint".to_owned(),
            key => format!("{key}:NoSchedule"),
        })
    }
}

impl Object for WirePod {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl WirePod {
    /// Converts to the engine's type. Whether its controller is missing is not known here.
    pub(super) fn into_engine(self) -> Pod {
        let Self {
            metadata: meta,
            spec,
            status,
        } = self;
        let deletion = deletion(&meta);
        let controller = controller(&meta);
        let conditions: Vec<_> = status
            .conditions
            .into_iter()
            .take(MOST_CONDITIONS)
            .map(Condition::into_engine)
            .collect();
        let claims = spec.volumes.iter().filter_map(|volume| volume.claim(&meta.name));
        let volume_claims: Vec<_> = claims.take(MOST_VOLUMES).collect();
        let host_paths = spec.volumes.iter().filter_map(Volume::host_directory);
        let host_paths = host_paths.take(MOST_VOLUMES).collect();
        Pod {
            id: PodRef {
                namespace: meta.namespace,
                name: meta.name,
                uid: Uid::new(meta.uid),
            },
            node: spec.node_name,
            labels: wire::bounded(meta.labels),
            annotations: wire::bounded(meta.annotations),
            controller,
            phase: phase(&status.phase),
            ready: conditions
                .iter()
                .any(|condition| condition.kind == "Ready" && condition.status == "True"),
            conditions,
            priority: spec.priority.unwrap_or(0),
            priority_class: spec.priority_class_name,
            grace_seconds: whole(
                spec.termination_grace_period_seconds
                    .unwrap_or(DEFAULT_GRACE_SECONDS),
            ),
            created: meta.creation_timestamp.unwrap_or_default(),
            deletion,
            finalizers: meta.finalizers.into_iter().take(MOST_FINALIZERS).collect(),
            empty_dir: spec.volumes.iter().any(|volume| volume.empty_dir.is_some()),
            host_network: spec.host_network,
            hostname: spec.hostname,
            cordon_toleration: spec.tolerations.iter().find_map(Toleration::of_a_cordon),
            volume_claims,
            host_paths,
        }
    }
}

fn deletion(meta: &Meta) -> Option<Deletion> {
    let at: Time = meta.deletion_timestamp?;
    Some(Deletion {
        at,
        grace_seconds: whole(meta.deletion_grace_period_seconds.unwrap_or(0)),
    })
}

/// The owner reference with `controller: true`.
pub(super) fn controller(meta: &Meta) -> Option<Controller> {
    let owner = meta
        .owner_references
        .iter()
        .find(|owner| owner.controller == Some(true))?;
    Some(Controller {
        api_version: owner.api_version.clone(),
        kind: owner.kind.clone(),
        name: owner.name.clone(),
        uid: Uid::new(owner.uid.clone()),
        missing: false,
    })
}

pub(super) fn phase(text: &str) -> PodPhase {
    match text {
        "Pending" => PodPhase::Pending,
        "Running" => PodPhase::Running,
        "Succeeded" => PodPhase::Succeeded,
        "Failed" => PodPhase::Failed,
        _ => PodPhase::Unknown,
    }
}

fn whole(seconds: i64) -> u64 {
    u64::try_from(seconds).unwrap_or(0)
}
