//! Other programs that empty nodes, beside a driver: each is played by the writes that it makes, as `deploy/NEIGHBOURS.md`
//! describes them, and the files of `examples/neighbours` run as they are.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::area::Area;
use super::commands::Killed;
use super::cordon::becomes;
use super::self_claim::{Claimer, OFFICIAL};
use super::setup::{Account, Config, create, until};
use super::{condition, pods_on, skip};

const LABEL: &str = "scupper.dev/drain-on-cordon=true";
const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/neighbours");

/// `kubectl drain` with the flags that its library has in kured and in the node-maintenance-operator.
fn kubectl_drain(area: &Area, name: &str, more: &[&str]) -> Command {
    let flags = ["--force", "--ignore-daemonsets", "--delete-emptydir-data"];
    let mut command = area.kubectl_command(&[&["drain", name], &flags[..], more].concat());
    command.stdin(Stdio::null());
    command
}

/// Two pods behind a budget that allows no eviction.
fn with_closed_budget(area: &Area, name: &str) -> String {
    let namespace = area.namespace("shop");
    let there = ["--node", name, "--namespace", &namespace, "--count", "2"];
    area.make_pods(&[&there[..], &["--owner", "replicaset", "--pdb", "2"]].concat());
    namespace
}

/// The driver drains the node, and the budget holds it.
fn is_held(area: &Area, name: &str, claimer: &Claimer) {
    becomes(area, name, claimer, ["DrainInProgress", "DrainStarted"]);
    until("the budget holds the driver", || {
        claimer.log().contains("  waits  ")
    });
}

/// kured and the node-maintenance-operator do the same: they cordon, evict and uncordon with kubectl's library.
#[test]
fn kubectl_drain_waits_for_nothing_that_holds_the_drain_that_its_cordon_starts() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let area = Area::with(1);
    let name = area.node(0);
    // The driver plans while they terminate: without pods there is nothing to hold.
    area.pods(name, 3, 12);
    let account = Account::admin(&area);
    let config = Config::with("{notify-before: 5m}");
    let held = ["--config", config.path()];
    let mut claimer = Claimer::start(&area.driver(), name, &account.kubeconfig, &held);
    claimer.publishes(&area);
    let mark = area.mark();
    // As kured does it with `--pre-reboot-node-labels`.
    area.kubectl(&["label", "node", name, LABEL]);
    let kubectl = kubectl_drain(&area, name, &[])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    becomes(&area, name, &claimer, ["DrainInProgress", "DrainStarted"]);
    let output = kubectl.unwrap().wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(pods_on(&area, name), 0);
    let own = area.list_requests(&["--user", &account.user], &mark);
    assert!(!own.contains("eviction"), "kubectl evicted all pods:\n{own}");
    area.kubectl(&["uncordon", name]);
    becomes(&area, name, &claimer, ["DrainInProgress", "DrainCancelled"]);
}

/// As kured finds it, and as the node-maintenance-operator leaves it.
#[test]
fn kubectl_drain_passes_a_node_that_scupper_has_drained_and_its_uncordon_is_noticed() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let area = Area::with(1);
    let name = area.node(0);
    area.pods(name, 2, 0);
    let mut claimer = Claimer::start(&area.driver(), name, &area.kubeconfig(), &[]);
    claimer.publishes(&area);
    area.kubectl(&["label", "node", name, "scupper.dev/undo-on-uncordon=true"]);
    let event = claimer.asks(&area, OFFICIAL, &area.driver());
    assert_eq!(
        claimer.ended(&area, OFFICIAL, &event),
        "Succeeded",
        "{}",
        claimer.log()
    );
    let output = kubectl_drain(&area, name, &[]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("already cordoned") && !text.contains("evict"),
        "{text}"
    );
    area.kubectl(&["uncordon", name]);
    becomes(&area, name, &claimer, ["Drained", "MaintenanceComplete"]);
}

#[test]
fn a_budget_holds_kubectl_drain_and_the_driver_alike() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let area = Area::with(1);
    let name = area.node(0);
    let namespace = with_closed_budget(&area, name);
    let claimer = Claimer::start(&area.driver(), name, &area.kubeconfig(), &[]);
    area.kubectl(&["label", "node", name, LABEL]);
    let mut other = Killed(
        kubectl_drain(&area, name, &[])
            .stdout(Stdio::null())
            .spawn()
            .unwrap(),
    );
    is_held(&area, name, &claimer);
    assert_eq!(pods_on(&area, name), 2);
    area.kubectl(&[
        "delete",
        "poddisruptionbudget",
        "--all",
        "--namespace",
        &namespace,
    ]);
    becomes(&area, name, &claimer, ["Drained", "DrainCompleted"]);
    assert!(other.0.wait().unwrap().success());
    assert_eq!(pods_on(&area, name), 0);
}

/// As EKS, GKE with blue-green upgrades and AKS do it: they cordon, evict, and delete in the end what a budget holds.
#[test]
fn a_managed_upgrade_that_cordons_all_nodes_starts_all_drains_at_once_and_ends_them_by_force() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let area = Area::with(2);
    let mut claimers: Vec<Claimer> = area
        .nodes()
        .into_iter()
        .map(|name| {
            with_closed_budget(&area, name);
            Claimer::start(&area.driver(), name, &area.kubeconfig(), &[])
        })
        .collect();
    let nodes = area.nodes();
    for (name, claimer) in nodes.iter().zip(&mut claimers) {
        claimer.publishes(&area);
        area.kubectl(&["label", "node", name, LABEL]);
    }
    for name in &nodes {
        area.kubectl(&["cordon", name]);
    }
    for (name, claimer) in nodes.iter().zip(&claimers) {
        is_held(&area, name, claimer);
    }
    let namespace = area.namespace("shop");
    let by_force = ["--all", "--force", "--grace-period=0", "--namespace", &namespace];
    area.kubectl(&[&["delete", "pods"][..], &by_force].concat());
    for (name, claimer) in nodes.iter().zip(&claimers) {
        becomes(&area, name, claimer, ["Drained", "DrainCompleted"]);
        assert_eq!(pods_on(&area, name), 0);
    }
}

/// The kubelet ends the pods itself, and calls the node not ready; the driver ends with the machine, and comes back with it.
#[test]
fn a_graceful_shutdown_ends_pods_behind_a_budget_and_the_drain_goes_on_after_it() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let area = Area::with(1);
    let name = area.node(0);
    let namespace = with_closed_budget(&area, name);
    let claimer = Claimer::start(&area.driver(), name, &area.kubeconfig(), &[]);
    area.kubectl(&["label", "node", name, LABEL]);
    area.kubectl(&["cordon", name]);
    is_held(&area, name, &claimer);
    let ready = |status: &str| {
        json!({"status": {"conditions": [{"type": "Ready", "status": status, "reason": "KubeletNotReady",
            "message": "node is shutting down"}]}})
        .to_string()
    };
    let status = ["--subresource=status", "--patch"];
    area.kubectl(&[&["patch", "node", name], &status[..], &[&ready("False")]].concat());
    let ended = json!({"status": {"phase": "Failed", "reason": "Terminated",
        "message": "Pod was terminated in response to imminent node shutdown.",
        "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"},
            {"type": "Ready", "status": "False"}]}})
    .to_string();
    let there = ["get", "pods", "--output=name", "--namespace", &namespace];
    for pod in area.kubectl(&there).split_whitespace() {
        let there = ["patch", pod, "--namespace", &namespace];
        area.kubectl(&[&there[..], &status, &[&ended]].concat());
    }
    drop(claimer);
    let claimer = Claimer::start(&area.driver(), name, &area.kubeconfig(), &[]);
    becomes(&area, name, &claimer, ["Drained", "DrainCompleted"]);
    assert_eq!(pods_on(&area, name), 0);
    area.kubectl(&[&["patch", "node", name], &status[..], &[&ready("True")]].concat());
}

#[test]
fn cluster_autoscaler_starts_a_drain_by_its_cordon_and_not_by_its_taint_and_ends_it_by_giving_up() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let area = Area::with(1);
    let name = area.node(0);
    with_closed_budget(&area, name);
    let mut claimer = Claimer::start(&area.driver(), name, &area.kubeconfig(), &[]);
    claimer.publishes(&area);
    area.kubectl(&["label", "node", name, LABEL]);
    let path = format!("/api/v1/nodes/{name}");
    let taint = json!([{"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}]);
    // With --cordon-node-before-terminating=false.
    area.patch(&path, &json!({"spec": {"taints": taint}}));
    // As by default: one write.
    area.patch(&path, &json!({"spec": {"taints": taint, "unschedulable": true}}));
    becomes(&area, name, &claimer, ["DrainInProgress", "DrainStarted"]);
    // The taint alone has begun nothing: the drain found the cordon.
    until("the drain found the cordon", || {
        claimer.log().contains("the node was already cordoned")
    });
    area.patch(&path, &json!({"spec": {"taints": null, "unschedulable": null}}));
    becomes(&area, name, &claimer, ["DrainInProgress", "DrainCancelled"]);
    assert_eq!(pods_on(&area, name), 2);
}

#[test]
fn the_example_for_karpenter_drains_a_node_that_is_being_deleted() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let area = Area::with(1);
    let (name, namespace) = (area.node(0), area.namespace("shop"));
    let there = ["--node", name, "--namespace", &namespace, "--count", "2"];
    let waits = ["--annotations", "karpenter.sh/do-not-disrupt=true"];
    area.make_pods(&[&there[..], &waits].concat());
    let mut claimer = Claimer::start(&area.driver(), name, &area.kubeconfig(), &[]);
    claimer.publishes(&area);
    area.kubectl(&["label", "node", name, LABEL]);
    let path = format!("/api/v1/nodes/{name}");
    let taint = json!([{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]);
    let marks = json!({"metadata": {"finalizers": ["karpenter.sh/termination"]}, "spec": {"taints": taint}});
    area.patch(&path, &marks);
    area.kubectl(&["delete", "node", name, "--wait=false"]);
    let _script = Script::start(&area, "karpenter.sh");
    // Karpenter waits until no pod is left, and removes its finalizer.
    becomes(&area, name, &claimer, ["Drained", "DrainCompleted"]);
    assert_eq!(pods_on(&area, name), 0);
    // The script's was the only drain.
    assert!(!claimer.log().contains(" for cordon "), "{}", claimer.log());
    area.patch(&path, &json!({"metadata": {"finalizers": null}}));
    until("the node is gone", || {
        let nodes = area.get(&format!("/api/v1/nodes?fieldSelector=metadata.name={name}"));
        nodes["items"] == json!([])
    });
}

#[test]
fn the_example_for_cluster_api_drains_the_node_before_it_removes_its_hook() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let area = Area::with(1);
    let (name, namespace) = (area.node(0), area.namespace("machines"));
    area.pods(name, 2, 1);
    let mut claimer = Claimer::start(&area.driver(), name, &area.kubeconfig(), &[]);
    claimer.publishes(&area);
    // As after an earlier drain of some pods, for a GPU that was to be reset.
    area.kubectl(&["cordon", name]);
    let drained = json!({"status": {"conditions": [{"type": "Drained", "status": "True", "reason": "DrainCompleted",
        "message": "drain of-a-gpu: 0 pods evicted, 2 kept as planned"}]}});
    area.kubectl(&[
        "patch",
        "node",
        name,
        "--subresource=status",
        "--patch",
        &drained.to_string(),
    ]);
    create_machine_kind(&area);
    let hook = "pre-drain.delete.hook.machine.cluster.x-k8s.io/scupper";
    let guide = include_str!("../../../../deploy/NEIGHBOURS.md");
    assert!(
        guide.contains(&format!("annotations: {{{hook}: scupper}}")),
        "{hook}"
    );
    let machine = |machine: &str, node: &str, hooks: Value| {
        let meta = json!({"name": machine, "namespace": namespace, "annotations": hooks,
            "finalizers": ["machine.cluster.x-k8s.io"]});
        create(
            &area,
            &json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": meta,
                "status": {"nodeRef": {"name": node}}}),
        );
    };
    // One to be deleted, one whose node is gone, one without the hook, and one that stays.
    machine("first", name, json!({hook: "scupper", "example.com/other": "1"}));
    machine("lost", "no-such-node", json!({hook: "scupper"}));
    machine("plain", name, json!({}));
    machine("stays", name, json!({hook: "scupper"}));
    let leaving = ["first", "lost", "plain"];
    let deleted = [
        "delete",
        "machines.cluster.x-k8s.io",
        "--wait=false",
        "--namespace",
    ];
    area.kubectl(&[&deleted[..], &[&namespace], &leaving].concat());
    let _script = Script::start(&area, "cluster-api.sh");
    let path = format!("/apis/cluster.x-k8s.io/v1beta2/namespaces/{namespace}/machines");
    let annotations =
        |machine: &str| area.get(&format!("{path}/{machine}"))["metadata"]["annotations"].clone();
    until("the hook is removed", || {
        let is_removed = annotations("first") == json!({"example.com/other": "1"});
        assert!(!is_removed || pods_on(&area, name) == 0, "{}", claimer.log());
        is_removed
    });
    assert_eq!(condition(&area, name, "Drained"), "True", "{}", claimer.log());
    assert_eq!(pods_on(&area, name), 0);
    until("the hook of the lost node is removed", || {
        annotations("lost").is_null()
    });
    assert_eq!(annotations("stays"), json!({hook: "scupper"}));
    for machine in leaving {
        area.patch(
            &format!("{path}/{machine}"),
            &json!({"metadata": {"finalizers": null}}),
        );
    }
}

fn create_machine_kind(area: &Area) {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version = json!({"name": "v1beta2", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": schema}});
    create(
        area,
        &json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "machines.cluster.x-k8s.io",
                "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"}},
            "spec": {"group": "cluster.x-k8s.io", "scope": "Namespaced", "versions": [version],
                "names": {"kind": "Machine", "plural": "machines", "singular": "machine"}}}),
    );
    let established = [
        "wait",
        "--for=condition=Established",
        "crd",
        "machines.cluster.x-k8s.io",
    ];
    area.kubectl(&established);
}

#[test]
fn the_example_of_an_admission_policy_leaves_evictions_to_scupper() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let area = Area::with(1);
    let (name, namespace) = (area.node(0), area.namespace("shop"));
    area.make_pods(&["--node", name, "--namespace", &namespace, "--count", "2"]);
    let account = Account::admin(&area);
    let mut claimer = Claimer::start(&area.driver(), name, &account.kubeconfig, &[]);
    claimer.publishes(&area);
    let policy = std::fs::read_to_string(Path::new(EXAMPLES).join("only-scupper-evicts.yaml")).unwrap();
    let policy = policy.replace("system:serviceaccount:scupper:scupper", &account.user);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), policy).unwrap();
    area.kubectl(&["apply", "-f", file.path().to_str().unwrap()]);
    let label = "scupper.dev/only-scupper-evicts=true";
    area.kubectl(&["label", "namespace", &namespace, label]);
    let dry = || {
        kubectl_drain(&area, name, &["--dry-run=server"])
            .output()
            .unwrap()
    };
    until("the policy takes effect", || !dry().status.success());
    let output = kubectl_drain(&area, name, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        errors.contains("only Scupper evicts pods of this namespace"),
        "{errors}"
    );
    assert_eq!(pods_on(&area, name), 2);
    area.kubectl(&["label", "node", name, LABEL]);
    becomes(&area, name, &claimer, ["Drained", "DrainCompleted"]);
    assert_eq!(pods_on(&area, name), 0);
}

/// A script of `examples/neighbours` with the testbed's `kubectl`.
struct Script {
    _child: Killed,
    _folder: tempfile::TempDir,
}

impl Script {
    fn start(area: &Area, name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let real = area.kubectl_command(&[]);
        let words = std::iter::once(real.get_program()).chain(real.get_args());
        let words: Vec<String> = words
            .map(|word| format!("'{}'", word.to_str().unwrap()))
            .collect();
        let kubectl = folder.path().join("kubectl");
        std::fs::write(&kubectl, format!("#!/bin/sh\nexec {} \"$@\"\n", words.join(" "))).unwrap();
        std::fs::set_permissions(&kubectl, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(PathBuf::from(folder.path())).chain(std::env::split_paths(&path));
        let child = Command::new(Path::new(EXAMPLES).join(name))
            .env("PATH", std::env::join_paths(folders).unwrap())
            .env("DRIVER", area.driver())
            .env("EVERY", "1")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            _child: Killed(child),
            _folder: folder,
        }
    }
}
