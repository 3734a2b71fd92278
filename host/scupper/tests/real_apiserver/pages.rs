//! Objects in the pages, which a reader applies to the API server.

use serde_json::{Value, json};

use super::area::Area;
use super::setup::{create, until};
use super::skip;

const GPU_PAGE: &str = include_str!("../../../../plugins/gpu/README.md");

/// The account that the page names.
const COLLECTOR: &str = "system:serviceaccount:nvsentinel:metadata-collector";

/// The object in a page that begins so.
fn object(page: &'static str, begin: &str) -> &'static str {
    let mut blocks = page.split("```yaml\n").skip(1);
    let block = blocks.find(|block| block.starts_with(begin)).unwrap();
    block.split("```").next().unwrap()
}

/// In one namespace: other tests share the server.
fn enforce(area: &Area, policy: &str, namespace: &str) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), policy).unwrap();
    area.kubectl(&["apply", "--validate=strict", "-f", file.path().to_str().unwrap()]);
    let there = json!({"matchLabels": {"kubernetes.io/metadata.name": namespace}});
    create(
        area,
        &json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "device-annotations"},
            "spec": {"policyName": "device-annotations", "validationActions": ["Deny"],
                "matchResources": {"namespaceSelector": there}},
        }),
    );
}

#[test]
fn the_policy_for_device_annotations_lets_only_its_account_write_them() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let area = Area::with(0);
    let namespace = area.namespace("devices");
    let policy = object(GPU_PAGE, "apiVersion: admissionregistration.k8s.io/");
    enforce(&area, policy, &namespace);
    let rbac = "rbac.authorization.k8s.io";
    let api = format!("{rbac}/v1");
    // A role of its own: what `admin` and `edit` allow is gathered by a controller that does not run here.
    create(
        &area,
        &json!({
            "apiVersion": api, "kind": "Role",
            "metadata": {"name": "collector", "namespace": namespace},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}],
        }),
    );
    create(
        &area,
        &json!({
            "apiVersion": api, "kind": "RoleBinding",
            "metadata": {"name": "collector", "namespace": namespace},
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "collector"},
            "subjects": [{"apiGroup": rbac, "kind": "User", "name": COLLECTOR}],
        }),
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    let creates = |annotations: &Value, more: &[&str]| {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "train", "namespace": namespace, "annotations": annotations},
            "spec": {"containers": [{"name": "main", "image": "none"}]},
        });
        std::fs::write(file.path(), pod.to_string()).unwrap();
        let create = ["create", "--dry-run=server", "-f", file.path().to_str().unwrap()];
        let output = area
            .kubectl_command(&[&create[..], more].concat())
            .output()
            .unwrap();
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    };
    let devices = json!({"dgxc.nvidia.com/devices": "{}"});
    let is_refused = || {
        let refused = creates(&devices, &[]).err();
        refused.is_some_and(|it| it.contains("only NVSentinel may write dgxc.nvidia.com/devices"))
    };
    until("the policy takes effect", is_refused);
    creates(&json!({"example.com/note": "1"}), &[]).unwrap();
    creates(&devices, &["--as", COLLECTOR]).unwrap();
}
