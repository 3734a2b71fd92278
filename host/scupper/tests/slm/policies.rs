//! The policies that scenarios load, built once, and the objects that the Slurm one reads.

use std::path::PathBuf;
use std::sync::OnceLock;

use serde_json::{Value, json};
use xtask::policies;
use xtask::workspace::Workspace;

use crate::rig::Rig;

const ANNOTATION: &str = "nodeset.slinky.slurm.net/node-cordon-reason";

/// `NAME=FILE`, for `--policy`.
pub(crate) fn argument(name: &str) -> String {
    static BUILT: OnceLock<Vec<(String, PathBuf)>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let wanted = ["slurm", "priority", "namespace-modes"].map(str::to_owned);
        let built = policies::build(&Workspace::read().unwrap(), &wanted, None).unwrap();
        built.into_iter().map(|built| (built.name, built.file)).collect()
    });
    let (_, file) = built.iter().find(|(built, _)| built == name).unwrap();
    format!("{name}={}", file.display())
}

/// A pod of a Slurm node whose jobs still run.
pub(crate) fn slurm_pod(mut pod: Value) -> Value {
    pod["metadata"]["labels"] =
        json!({"app.kubernetes.io/component": "worker", "app.kubernetes.io/name": "slurmd"});
    pod["status"]["conditions"] = json!([
        {"type": "Ready", "status": "True"},
        {"type": "SlurmNodeStateAllocated", "status": "True"},
        {"type": "SlurmNodeStateDrain", "status": "True"},
    ]);
    pod
}

/// Its last job ends.
pub(crate) fn finish_jobs(rig: &Rig, pod: &str) {
    let idle = |pod: &mut Value| {
        for condition in pod["status"]["conditions"].as_array_mut().unwrap() {
            if condition["type"] == "SlurmNodeStateAllocated" {
                condition["type"] = json!("SlurmNodeStateIdle");
            }
        }
    };
    rig.api.store().edit("pods", "default", pod, idle).unwrap();
}

/// The policy's reason in Slurm.
pub(crate) fn annotation(node: &Value) -> Option<&str> {
    node["metadata"]["annotations"][ANNOTATION].as_str()
}
