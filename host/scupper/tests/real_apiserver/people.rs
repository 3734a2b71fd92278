//! People at a terminal, with the rights that they have and no others: those that `kubectl drain` needs, and those of
//! `deploy/people.yaml`.

use serde_json::json;

use super::area::Area;
use super::setup::{Account, create, scupper_as};
use super::testbed::Testbed;
use super::{condition, driver, node, pods_on, skip};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/people.yaml");

/// What `kubectl drain` asks for.
fn role_of_kubectl(testbed: &Testbed, name: &str) {
    create(
        testbed,
        &json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
            "rules": [
                {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "patch"]},
                {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
                {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
                {"apiGroups": ["apps"], "resources": ["daemonsets"], "verbs": ["get", "list"]},
            ],
        }),
    );
}

#[test]
fn whoever_may_use_kubectl_drain_may_use_this() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let area = Area::with(1);
    let (name, namespace) = (area.node(0), area.namespace("sre"));
    role_of_kubectl(&area, &namespace);
    let sre = Account::with_roles(&area, &namespace, &[&namespace], ["list", "", "pods"]);
    area.pods(name, 3, 1);
    for args in [
        &["plan", name, "--force"][..],
        &["status", name],
        &["drain", name, "--local", "--force"],
    ] {
        let (code, out, errors) = scupper_as(&sre.kubeconfig, args);
        assert_eq!(code, Some(0), "{args:?}: {out}{errors}");
    }
    assert_eq!(pods_on(&area, name), 0);
    assert_eq!(node(&area, name)["spec"]["unschedulable"], true);
    let (code, out, errors) = scupper_as(&sre.kubeconfig, &["uncordon", name, "--local"]);
    assert_eq!(code, Some(0), "{out}{errors}");
    assert!(node(&area, name)["spec"]["unschedulable"].is_null());
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_roles_for_people_nothing_is_missing() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let area = Area::with(1);
    let (name, namespace, driver_name) = (area.node(0), area.namespace("people"), area.driver());
    // In a namespace of this test: the drivers of other tests share the server.
    let leases = area.namespace("leases");
    let text = std::fs::read_to_string(FILE).unwrap();
    let roles = text.replace("namespace: scupper", &format!("namespace: {leases}"));
    assert_ne!(text, roles);
    let file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    std::fs::write(file.path(), roles).unwrap();
    tokio::task::block_in_place(|| area.kubectl(&["apply", "-f", file.path().to_str().unwrap()]));
    let roles = ["scupper-view", "scupper-drain"];
    let ops = Account::with_roles(&area, &namespace, &roles, ["create", "", "pods/eviction"]);
    create(
        &area,
        &json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": namespace, "namespace": leases},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "scupper-people"},
            "subjects": [{"kind": "ServiceAccount", "name": "driver", "namespace": namespace}],
        }),
    );
    let run = |args: &[&str]| {
        let (code, out, errors) = tokio::task::block_in_place(|| scupper_as(&ops.kubeconfig, args));
        assert_eq!(code, Some(0), "{args:?}: {out}{errors}");
        let said = format!("{out}{errors}").to_lowercase();
        for word in ["no right", "forbidden"] {
            assert!(!said.contains(word), "{word}: {args:?}: {out}{errors}");
        }
    };
    area.pods(name, 2, 1);
    run(&["plan", name, "--force"]);
    let by = ["--driver-name", &driver_name, "--lease-namespace", &leases];
    let run_by = |args: &[&str]| run(&[args, &by].concat());
    run(&["status", name, "--lease-namespace", &leases]);
    run_by(&["drain", name, "--local", "--force"]);
    assert_eq!(condition(&area, name, "Drained"), "True");
    run_by(&["uncordon", name, "--local"]);

    let mut driver = driver::Driver::start(&area, &driver_name, name, None).await;
    driver.restart_with(&by[2..]).await;
    area.pods(name, 2, 1);
    run_by(&["drain", name, "--force"]);
    assert_eq!(pods_on(&area, name), 0);
    run_by(&["uncordon", name]);
}
