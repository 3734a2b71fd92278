//! The scripts of `examples/neighbours` with a `kubectl` that records: which objects they apply for which drivers.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::installed::deploy;
use crate::limit::LIMIT;

/// A node that is to be drained, and the Machine of that node.
const KUBECTL: &str = r#"#!/bin/sh
case "$*" in
"get nodes"*) echo worker-1 ;;
"get node worker-1"*) echo "exists True " ;;
"get machines"*) echo "machines first held:scupper worker-1" ;;
"apply -f -") cat >"$APPLIED.new" && mv "$APPLIED.new" "$APPLIED" ;;
esac
"#;

#[test]
fn the_scripts_ask_drivers_of_either_group_and_scope() {
    let shared = "drain.slm.k8s.io";
    let own = format!("{shared}.worker-1");
    for script in ["karpenter.sh", "cluster-api.sh"] {
        for (group, scope, served, transition) in [
            ("", "", "lifecycle.k8s.io", shared),
            ("lifecycle.scupper.dev", "", "lifecycle.scupper.dev", shared),
            ("", "node", "lifecycle.k8s.io", own.as_str()),
        ] {
            let applied = applied(script, &[("GROUP", group), ("SCOPE", scope)]);
            assert_eq!(applied["apiVersion"], format!("{served}/v1alpha1"), "{script}");
            let spec = json!({"transitionName": transition, "bindingNode": "worker-1"});
            assert_eq!(applied["spec"], spec, "{script} {group} {scope}");
        }
    }
}

/// What the script applies first. Variables that are empty are not set.
fn applied(script: &str, variables: &[(&str, &str)]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let kubectl = folder.path().join("kubectl");
    std::fs::write(&kubectl, KUBECTL).unwrap();
    std::fs::set_permissions(&kubectl, std::fs::Permissions::from_mode(0o755)).unwrap();
    let applied = folder.path().join("applied");
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let set = variables.iter().copied().filter(|(_, value)| !value.is_empty());
    let mut child = Command::new(deploy().join("../examples/neighbours").join(script))
        .env("PATH", path)
        .env("APPLIED", &applied)
        .env("EVERY", "0.1")
        .envs(set)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !applied.exists() && begun.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let text = std::fs::read_to_string(&applied).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}
