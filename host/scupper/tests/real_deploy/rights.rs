//! Every permission is needed: many drivers at once, each without one of them, and each names the missing one.

use std::path::{Path, PathBuf};
use std::process::Command;

use http::Method;
use serde_json::{Value, json};

use crate::installed::{Driver, Installed, ask, event, transition, until};
use crate::{ALONE, skip};

/// A driver that lacks a permission.
struct Deprived {
    right: [String; 3],
    node: String,
    kubeconfig: PathBuf,
    driver: Driver,
}

#[tokio::test]
async fn a_driver_and_the_doctor_name_a_missing_permission() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let _alone = ALONE.lock().await;
    // An API server that lists before it watches, as all did once: on others the permission to watch also covers
    // listing.
    let unstreamed = ["--apiserver-arg", "--feature-gates=WatchList=false"];
    let installed = Installed::up("self-claim", &[&["--nodes", "26"][..], &unstreamed].concat()).await;
    let granted = installed.granted().await;
    assert_eq!(
        granted.len(),
        25,
        "a node for each, and one for the driver that has them all: {granted:?}"
    );
    let accounts = (0..=granted.len()).flat_map(|number| account(&granted, number));
    let held = granted.iter().position(|right| *right == COUNTS_UP);
    let is_held = |number| held == Some(number) || number == granted.len();
    let work = (0..=granted.len()).flat_map(|number| work(&format!("node-{number}"), is_held(number)));
    installed.create(&accounts.chain(work).collect::<Vec<_>>());
    let whole = format!("node-{}", granted.len());
    let kubeconfig = installed
        .kubeconfig(&format!("without-{}", granted.len()), None)
        .await;
    let driver = Driver::start(&installed, &whole, &kubeconfig, &["--scope=node", "--force"]).await;
    let mut all = Vec::new();
    for (number, right) in granted.into_iter().enumerate() {
        let node = format!("node-{number}");
        let kubeconfig = installed.kubeconfig(&format!("without-{number}"), None).await;
        let driver = Driver::start(&installed, &node, &kubeconfig, &["--scope=node", "--force"]).await;
        all.push(Deprived {
            right,
            node,
            kubeconfig,
            driver,
        });
    }
    comes_back(&installed, &whole, &driver).await;
    until(async || is_through(&installed, &whole).await, || driver.log()).await;
    assert!(!driver.log().contains("cannot "), "{}", driver.log());
    let reported = installed.testbed.kubectl(&["describe", "node", &whole]);
    let reported: Vec<_> = reported
        .lines()
        .filter(|line| line.contains("UncordonedByOthers"))
        .collect();
    assert!(
        reported.len() == 1 && reported[0].contains("(x2 over "),
        "{reported:?}"
    );
    let silent = all.iter().find(|deprived| deprived.right == COUNTS_UP).unwrap();
    comes_back(&installed, &silent.node, &silent.driver).await;
    for deprived in &all {
        let refused = refusal(&deprived.right);
        let reported = || format!("{}: {refused}:\n{}", deprived.node, deprived.driver.log());
        until(async || unescaped(&deprived.driver).contains(&refused), reported).await;
        doctor_names_it(deprived);
    }
    leases(&installed, all.len()).await;
    for deprived in &all {
        let through = async || is_through(&installed, &deprived.node).await;
        if tells_less_without(&deprived.right) {
            until(through, || {
                format!("{:?}:\n{}", deprived.right, deprived.driver.log())
            })
            .await;
        } else {
            assert!(!through().await, "{:?} was not needed", deprived.right);
        }
    }
}

/// The permission that only a repeated event needs.
const COUNTS_UP: [&str; 3] = ["patch", "events.k8s.io", "events"];

/// The node is uncordoned twice while its drain waits for a pod.
async fn comes_back(installed: &Installed, name: &str, driver: &Driver) {
    let node = format!("/api/v1/nodes/{name}");
    for times in 1..=2 {
        for held in [false, true] {
            let cordon = json!({"spec": {"unschedulable": held}});
            let lifted = || {
                driver
                    .log()
                    .matches("the node was uncordoned outside Scupper")
                    .count()
            };
            until(
                async || is_cordoned(installed, &node).await != held,
                || driver.log(),
            )
            .await;
            let (code, said) = ask(&installed.admin, Method::PATCH, &node, &cordon).await;
            assert!(code.is_success(), "{said}");
            until(async || lifted() == times, || driver.log()).await;
        }
        is_seen(installed, &node, driver).await;
    }
    let pod = format!("/api/v1/namespaces/default/pods/bare-{name}");
    let let_go = json!({"metadata": {"finalizers": null}});
    let (code, said) = ask(&installed.admin, Method::PATCH, &pod, &let_go).await;
    assert!(code.is_success(), "{said}");
}

/// The driver has seen the current cordon of the node. It reads only the node's latest state, so it may never see a
/// cordon that is lifted at once. It reports a node that is not ready, which soon changes back: this is repeated until
/// the driver has read it in between.
async fn is_seen(installed: &Installed, node: &str, driver: &Driver) {
    let reports = || driver.log().matches("its pods may not terminate").count();
    let before = reports();
    let unready = json!({"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Test"}]}});
    let seen = async || {
        let (code, said) = ask(
            &installed.admin,
            Method::PATCH,
            &format!("{node}/status"),
            &unready,
        )
        .await;
        assert!(code.is_success(), "{said}");
        reports() > before
    };
    until(seen, || driver.log()).await;
}

async fn is_cordoned(installed: &Installed, node: &str) -> bool {
    installed.get(node).await["spec"]["unschedulable"] == true
}

/// Permissions that this drain does not need, since its transition exists, though with wrong content, and what may not be
/// watched is listed again and again.
fn tells_less_without([verb, _, resource]: &[String; 3]) -> bool {
    let resources = [
        "daemonsets",
        "poddisruptionbudgets",
        "events",
        "lifecycletransitions",
    ];
    verb == "watch" || resources.contains(&resource.as_str()) && verb != "get"
}

/// An account with all permissions but one, or with all. Those for leases are limited to a namespace, and kept.
fn account(granted: &[[String; 3]], lacks: usize) -> [Value; 4] {
    let name = format!("without-{lacks}");
    let kept = granted.iter().enumerate().filter(|(number, _)| *number != lacks);
    let rules = kept.map(|(_, [verb, group, resource])| {
        json!({"verbs": [verb], "apiGroups": [group], "resources": [resource]})
    });
    let rules: Vec<_> = rules.collect();
    let api = "rbac.authorization.k8s.io";
    [
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "scupper"}}),
        json!({
            "apiVersion": format!("{api}/v1"), "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules,
        }),
        json!({
            "apiVersion": format!("{api}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "scupper"}],
        }),
        json!({
            "apiVersion": format!("{api}/v1"), "kind": "RoleBinding",
            "metadata": {"name": name, "namespace": "scupper"},
            "roleRef": {"apiGroup": api, "kind": "Role", "name": "scupper-leases"},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "scupper"}],
        }),
    ]
}

/// A pod to evict, a drain to carry out, and two transitions with wrong content. `held`: the pod stays until it is
/// released.
fn work(node: &str, held: bool) -> [Value; 4] {
    let drain = format!("drain.slm.k8s.io.{node}");
    let uncordon = format!("drain.slm.k8s.io-uncordon.{node}");
    let finalizers = held.then_some(["example.com/kept"]);
    [
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("bare-{node}"), "namespace": "default", "finalizers": finalizers},
            "spec": {"nodeName": node, "containers": [{"name": "main", "image": "none"}]},
        }),
        transition(&drain, &json!({"nodeName": node}), "9m"),
        transition(&uncordon, &json!({"allNodes": true}), "5m"),
        event(&format!("drain-{node}"), &drain, node),
    ]
}

/// The event is carried out and gone.
async fn is_through(installed: &Installed, node: &str) -> bool {
    let path = format!("/apis/lifecycle.k8s.io/v1alpha1/lifecycleevents/drain-{node}");
    installed.get(&path).await["code"] == 404 && installed.condition(node, "Drained").await == "True"
}

/// Log lines quote the server's message.
fn unescaped(driver: &Driver) -> String {
    driver.log().replace("\\\"", "\"")
}

/// The API server's message about it.
fn refusal([verb, group, resource]: &[String; 3]) -> String {
    format!("cannot {verb} resource \"{resource}\" in API group \"{group}\"")
}

fn doctor_names_it(deprived: &Deprived) {
    let [verb, group, resource] = &deprived.right;
    let dot = if group.is_empty() { "" } else { "." };
    let named = format!("no right to {verb} {resource}{dot}{group},");
    let said = doctor(&deprived.kubeconfig, &[]);
    assert!(said.contains(&named), "{named}: {said}");
}

/// These apply to one namespace: an account that has every permission there lacks those for leases elsewhere.
async fn leases(installed: &Installed, whole: usize) {
    let kubeconfig = installed.kubeconfig(&format!("without-{whole}"), None).await;
    let said = doctor(&kubeconfig, &[]);
    let missing = "leases.coordination.k8s.io in the namespace ";
    assert!(!said.contains(missing), "{said}");
    let said = doctor(&kubeconfig, &["--lease-namespace", "elsewhere"]);
    for verb in ["get", "create", "patch", "delete"] {
        let named = format!("no right to {verb} {missing}elsewhere,");
        assert!(said.contains(&named), "{named}: {said}");
    }
    let remedy = "bind the Role scupper-leases of deploy/base/rights.yaml to the driver's account in the namespace elsewhere";
    assert!(said.contains(remedy), "{said}");
}

fn doctor(kubeconfig: &Path, args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scupper"));
    let output = command
        .arg("doctor")
        .args(args)
        .env("KUBECONFIG", kubeconfig)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}
