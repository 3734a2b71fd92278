//! What several tests of this folder need: objects on the API server, configuration files, waiting.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::area::Area;
use super::limit::LIMIT;
use super::testbed::Testbed;

/// A user of its own, whose requests can be counted.
pub(super) struct Account {
    pub(super) user: String,
    pub(super) kubeconfig: PathBuf,
}

impl Account {
    /// With all permissions by RBAC, unlike the testbed's admin, who is in a group that may do everything.
    pub(super) fn admin(area: &Area) -> Self {
        Self::of_namespace(area, &area.namespace("account"))
    }

    pub(super) fn of_namespace(testbed: &Testbed, namespace: &str) -> Self {
        Self::with_roles(testbed, namespace, &["cluster-admin"], ["*", "*", "*"])
    }

    /// With these ClusterRoles. `last`: a right of the last one: verb, group, resource.
    pub(super) fn with_roles(
        testbed: &Testbed,
        namespace: &str,
        roles: &[&str],
        [verb, group, resource]: [&str; 3],
    ) -> Self {
        let account = format!("{namespace}/driver");
        let args = ["--serviceaccount", &account, "--seconds", "7200", "--kubeconfig"];
        let kubeconfig = PathBuf::from(testbed.run(&["token"], &args).trim());
        let api = "rbac.authorization.k8s.io";
        for role in roles {
            let binding = json!({"metadata": {"name": format!("{namespace}-{role}")},
                "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": role},
                "subjects": [{"kind": "ServiceAccount", "name": "driver", "namespace": namespace}]});
            testbed.post(&format!("/apis/{api}/v1/clusterrolebindings"), &binding);
        }
        let user = format!("system:serviceaccount:{namespace}:driver");
        let attributes = json!({"verb": verb, "group": group, "resource": resource});
        let review = json!({"spec": {"user": user, "resourceAttributes": attributes}});
        let reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        until("the binding takes effect", || {
            testbed.post(reviews, &review)["status"]["allowed"] == true
        });
        Self { user, kubeconfig }
    }
}

/// Creates an object that names its API version, kind and, if it has one, namespace.
pub(super) fn create(testbed: &Testbed, object: &Value) -> Value {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let (version, kind) = (
        text("/apiVersion").unwrap(),
        text("/kind").unwrap().to_lowercase(),
    );
    let root = if version.contains('/') { "apis" } else { "api" };
    let namespace =
        text("/metadata/namespace").map_or_else(String::new, |name| format!("namespaces/{name}/"));
    let ending = if kind.ends_with('s') { "es" } else { "s" };
    testbed.post(&format!("/{root}/{version}/{namespace}{kind}{ending}"), object)
}

/// The Events in the namespace about an object with this name.
pub(super) fn events_of(testbed: &Testbed, namespace: &str, name: &str) -> Vec<Value> {
    let path = format!("/api/v1/namespaces/{namespace}/events?fieldSelector=involvedObject.name={name}");
    testbed.get(&path)["items"].as_array().unwrap().clone()
}

#[track_caller]
pub(super) fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LIMIT, "{what}: in vain");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Runs `scupper`, and returns its exit code and what it prints.
pub(super) fn scupper(testbed: &Testbed, args: &[&str]) -> (Option<i32>, String) {
    let (code, text, _) = scupper_with_errors(testbed, args);
    (code, text)
}

/// The same, and its errors.
pub(super) fn scupper_with_errors(testbed: &Testbed, args: &[&str]) -> (Option<i32>, String, String) {
    scupper_as(&testbed.kubeconfig(), args)
}

/// The same, as the user of a kubeconfig.
#[expect(clippy::print_stdout, reason = "the output of a failed test shows it")]
pub(super) fn scupper_as(kubeconfig: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scupper"));
    let command = command.args(args).env("KUBECONFIG", kubeconfig);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    println!("$ scupper {}\n{text}{errors}", args.join(" "));
    (output.status.code(), text, errors)
}

/// A configuration file without policies.
pub(super) struct Config(tempfile::NamedTempFile);

impl Config {
    /// `drain`: the settings of that key, in one line.
    pub(super) fn with(drain: &str) -> Self {
        let file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
        let head = "apiVersion: scupper.dev/v1alpha1\nkind: Configuration\npolicies: []\n";
        std::fs::write(file.path(), format!("{head}drain: {drain}\n")).unwrap();
        Self(file)
    }

    pub(super) fn path(&self) -> &str {
        self.0.path().to_str().unwrap()
    }
}
