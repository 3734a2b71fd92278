//! People at a terminal, with the rights that they have and no others: those that `kubectl drain` needs, and those of
//! `deploy/people.yaml`.

use serde_json::json;

use super::area::Area;
use super::setup::{Account, create, scupper_as, until};
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

/// Who has the roles of `deploy/people.yaml`, and no other rights.
struct Operator<'a> {
    area: &'a Area,
    account: Account,
    driver: String,
    /// A namespace of this test: the drivers of other tests share the server.
    leases: String,
}

impl<'a> Operator<'a> {
    fn of(area: &'a Area) -> Self {
        let (namespace, leases) = (area.namespace("people"), area.namespace("leases"));
        let text = std::fs::read_to_string(FILE).unwrap();
        let roles = text.replace("namespace: scupper", &format!("namespace: {leases}"));
        assert_ne!(text, roles);
        let file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
        std::fs::write(file.path(), roles).unwrap();
        area.kubectl(&["apply", "-f", file.path().to_str().unwrap()]);
        let roles = ["scupper-view", "scupper-drain"];
        let account = Account::with_roles(area, &namespace, &roles, ["create", "", "pods/eviction"]);
        create(
            area,
            &json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                "metadata": {"name": namespace, "namespace": leases},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "scupper-people"},
                "subjects": [{"kind": "ServiceAccount", "name": "driver", "namespace": namespace}],
            }),
        );
        let driver = area.driver();
        Self {
            area,
            account,
            driver,
            leases,
        }
    }

    fn leases(&self) -> [&str; 2] {
        ["--lease-namespace", &self.leases]
    }

    fn types(&self, args: &[&str], more: &[&str]) -> (Option<i32>, String, String) {
        scupper_as(&self.account.kubeconfig, &[args, more].concat())
    }

    /// The command succeeds, and no right is missing.
    fn does(&self, args: &[&str], more: &[&str]) {
        let (code, out, errors) = tokio::task::block_in_place(|| self.types(args, more));
        assert_eq!(code, Some(0), "{args:?}: {out}{errors}");
        let said = format!("{out}{errors}").to_lowercase();
        for word in ["no right", "forbidden"] {
            assert!(!said.contains(word), "{word}: {args:?}: {out}{errors}");
        }
    }

    fn cancels_a_drain(&self, name: &str, by: &[&str]) {
        let namespace = self.area.namespace("stuck");
        let there = ["--node", name, "--namespace", &namespace, "--count", "1"];
        self.area
            .make_pods(&[&there[..], &["--name", "stuck", "--stuck", "true"]].concat());
        // The limit ends it also where this test fails.
        let drain = || self.types(&["drain", name, "--force", "--timeout=100s"], by);
        let is_cordoned = || node(self.area, name)["spec"]["unschedulable"] == true;
        let (code, out, errors) = std::thread::scope(|scope| {
            let drain = scope.spawn(drain);
            until("the drain has begun", is_cordoned);
            // The nodes of other tests may have reasons that say `forbidden`.
            let (code, out, errors) = self.types(&["status"], &self.leases());
            assert_eq!(code, Some(0), "{out}{errors}");
            for word in ["no right", "forbidden"] {
                assert!(!errors.to_lowercase().contains(word), "{word}: {errors}");
            }
            let line = format!("{name} ");
            assert!(out.lines().any(|it| it.starts_with(&line)), "{out}");
            self.does(&["cancel", name], by);
            drain.join().unwrap()
        });
        assert_eq!(code, Some(5), "{out}{errors}");
        assert!(!is_cordoned());
    }

    /// What only drivers may is named; who reads it is told of the roles for people.
    fn asks_the_doctor(&self, name: &str) {
        let doctor = ["doctor", "--node", name, "--driver-name", &self.driver];
        let (code, out, errors) = self.types(&doctor, &self.leases());
        assert_eq!(code, Some(8), "{out}{errors}");
        let text = out.split_whitespace().collect::<Vec<_>>().join(" ");
        let words =
            "needed to publish transitions do: for a person the roles of deploy/people.yaml are enough";
        assert!(text.contains(words), "{out}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_roles_for_people_nothing_is_missing() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let area = Area::with(1);
    let name = area.node(0);
    let ops = tokio::task::block_in_place(|| Operator::of(&area));
    let by = [&["--driver-name", &ops.driver][..], &ops.leases()].concat();
    area.pods(name, 2, 1);
    ops.does(&["plan", name, "--force"], &[]);
    ops.does(&["forecast", name, "--force"], &[]);
    ops.does(&["status", name], &ops.leases());
    tokio::task::block_in_place(|| ops.asks_the_doctor(name));
    ops.does(&["drain", name, "--local", "--force"], &by);
    assert_eq!(condition(&area, name, "Drained"), "True");
    ops.does(&["uncordon", name, "--local"], &by);

    let mut driver = driver::Driver::start(&area, &ops.driver, name, None).await;
    driver.restart_with(&ops.leases()).await;
    area.pods(name, 2, 1);
    ops.does(&["drain", name, "--force"], &by);
    assert_eq!(pods_on(&area, name), 0);
    ops.does(&["uncordon", name], &by);
    tokio::task::block_in_place(|| ops.cancels_a_drain(name, &by));
}
