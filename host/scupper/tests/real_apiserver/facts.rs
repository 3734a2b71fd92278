//! What policies learn of real objects: those that real controllers and the real scheduler have written.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use xtask::policies;
use xtask::workspace::Workspace;

use super::area::Area;
use super::commands::Killed;
use super::guests::guest;
use super::setup::{create, scupper, until};
use super::testbed::Testbed;
use super::volumes::{attachment, is_attached_to, pod_with_volume};
use super::{ALONE, pods_on, skip};

/// The drained node of the test that has its own control plane.
const NODE: &str = "node-0";

/// A file with this policy alone.
fn configuration(folder: &Path, policy: &Value) -> String {
    let file = folder.join("scupper.yaml");
    let whole = json!({"apiVersion": "scupper.dev/v1alpha1", "kind": "Configuration", "policies": [policy]});
    std::fs::write(&file, whole.to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

/// A device on each node, for claims of the class `gpu.example.com`.
fn with_devices(area: &Area, namespace: &str) {
    let api = "resource.k8s.io/v1";
    create(
        area,
        &json!({"apiVersion": api, "kind": "DeviceClass", "metadata": {"name": "gpu.example.com"},
            "spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]}}),
    );
    let attributes = json!({"uuid": {"string": "GPU-1"}});
    for node in area.nodes() {
        let slice = json!({"apiVersion": api, "kind": "ResourceSlice", "metadata": {"name": node},
            "spec": {"driver": "gpu.example.com", "nodeName": node, "devices": [{"name": "gpu-0", "attributes": attributes}],
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}}});
        create(area, &slice);
    }
    create(
        area,
        &json!({"apiVersion": api, "kind": "ResourceClaimTemplate",
            "metadata": {"name": "gpu", "namespace": namespace},
            "spec": {"spec": {"devices": {"requests": [{"name": "gpu",
                "exactly": {"deviceClassName": "gpu.example.com"}}]}}}}),
    );
}

/// A Deployment with a pod and a device on each node, and a budget that needs both.
fn with_train(area: &Area, namespace: &str) {
    let label = json!({"app": "train"});
    let apart = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": label}}]}});
    let container = json!({"name": "main", "image": "none",
        "resources": {"requests": {"cpu": "250m", "memory": "64Mi"}, "claims": [{"name": "gpu"}]}});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "train", "namespace": namespace, "labels": {"tier": "front"}},
        "spec": {"replicas": 2, "selector": {"matchLabels": label}, "template": {"metadata": {"labels": label},
            "spec": {"affinity": apart, "containers": [container],
                "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]}}}});
    create(area, &deployment);
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep-train", "namespace": namespace},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": label}}});
    create(area, &budget);
    let status = |path: String| area.get(&path)["status"].clone();
    let deployment = || status(format!("/apis/apps/v1/namespaces/{namespace}/deployments/train"));
    until("both pods are ready", || deployment()["readyReplicas"] == 2);
    let budgets = format!("/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets");
    let budget = || status(format!("{budgets}/keep-train"));
    until("the budget counts them", || budget()["currentHealthy"] == 2);
}

/// A pod with an attached volume. The test plays the volume driver's external-attacher.
fn with_disk(area: &Area, namespace: &str) {
    let node = area.node(0);
    is_attached_to(area, node);
    let kind = json!({"csi": {"driver": "csi.example.com", "volumeHandle": "disk-2"}});
    pod_with_volume(area, node, namespace, &kind);
    let attachment = attachment(area, node);
    area.patch(
        &format!("{attachment}/status"),
        &json!({"status": {"attached": true}}),
    );
}

#[test]
fn policies_learn_what_real_controllers_and_the_real_scheduler_have_written() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let area = Area::with(2);
    let namespace = area.namespace("gold");
    let label = json!({"metadata": {"labels": {"team": "gold"}}});
    area.patch(&format!("/api/v1/namespaces/{namespace}"), &label);
    with_devices(&area, &namespace);
    with_train(&area, &namespace);
    with_disk(&area, &namespace);
    let folder = tempfile::tempdir().unwrap();
    let learned = |question: &str| {
        let policy = json!({
            "name": "asks", "module": guest("asks"), "config": {"ask": question},
            "grants": {"facts": ["request", "namespaces", "budgets", "owners", "resources", "volumes", "peers"]},
        });
        let config = configuration(folder.path(), &policy);
        scupper(&area, &["plan", area.node(0), "--force", "--config", &config]).1
    };
    let of_namespace = format!("namespace {namespace}");
    for (question, answers) in [
        ("request", vec!["command plan None"]),
        (&of_namespace, vec![&format!("{namespace} Some(\"gold\")")[..]]),
        (
            "budgets",
            vec![&format!("{namespace}/keep-train"), " 2 2 2 0 ", " true true"],
        ),
        (
            "owners",
            vec![
                "ReplicaSet/train-",
                " < Deployment/train Some(\"front\") Some(2) Some(2) \"RollingUpdate\"",
            ],
        ),
        (
            "resources",
            vec![
                "cpu=250,",
                "memory=67108864,",
                " gpu.example.com ",
                " gpu-0 ",
                "GPU-1",
            ],
        ),
        (
            "volumes",
            vec![&format!(
                r#"data persistentVolumeClaim data="{namespace}" "csi"  ReadWriteOnce ["{}"], "#,
                area.node(0)
            )],
        ),
        ("peers", vec!["train-", area.node(1), "Running ready"]),
    ] {
        let text = learned(question);
        for answer in answers {
            assert!(text.contains(answer), "{question}: {answer}: {text}");
        }
    }
}

fn gangs() -> PathBuf {
    let wanted = ["gangs".to_owned()];
    let built = policies::build(&Workspace::read().unwrap(), &wanted, None).unwrap();
    built.into_iter().next().unwrap().file
}

/// The feature is beta in Kubernetes 1.37, and off by default.
#[test]
fn pods_of_a_real_scheduling_group_leave_in_one_wave() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let _alone = ALONE.blocking_lock();
    let gate = ["--apiserver-arg", "--feature-gates=GenericWorkload=true"];
    let testbed = Testbed::bare(&[&["--nodes", "2"][..], &gate].concat());
    for (name, node, group) in [
        ("ring-0", NODE, Some("ring")),
        ("ring-1", NODE, Some("ring")),
        ("ring-2", "node-1", Some("ring")),
        ("cart", NODE, None),
    ] {
        let group = group.map(|group| json!({"podGroupName": group}));
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
            "spec": {"nodeName": node, "schedulingGroup": group, "containers": [{"name": "main", "image": "none"}]}});
        let created = create(&testbed, &pod);
        let group = &created["spec"]["schedulingGroup"];
        assert_eq!(
            *group, pod["spec"]["schedulingGroup"],
            "the API server drops the field"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let policy = json!({"name": "gangs", "module": gangs(), "grants": {"facts": ["peers"]},
        "config": {"spanning": "hold 1h"}});
    let config = configuration(folder.path(), &policy);
    let (code, text) = scupper(&testbed, &["plan", NODE, "--force", "--config", &config]);
    assert_eq!(code, Some(0), "{text}");
    let gang = "gang ring of 2 pods here and 1 more pod on node-1";
    assert_eq!(text.matches(gang).count(), 2, "{text}");

    let story = tempfile::NamedTempFile::new().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_scupper"));
    command.args(["drain", NODE, "--local", "--force", "--config", &config]);
    command
        .env("KUBECONFIG", testbed.kubeconfig())
        .stdin(Stdio::null());
    let mut drain = Killed(command.stdout(story.reopen().unwrap()).spawn().unwrap());
    let reported = || std::fs::read_to_string(story.path()).unwrap();
    let waits = "waits for 1 more pod on node-1";
    until("the gang waits", || reported().matches(waits).count() >= 2);
    assert_eq!(pods_on(&testbed, NODE), 2, "{}", reported());
    testbed.kubectl(&["delete", "pod", "ring-2", "--grace-period=0", "--force"]);
    assert_eq!(drain.0.wait().unwrap().code(), Some(0), "{}", reported());
    let story = reported();
    let (_, last_wave) = story.rsplit_once("  wave     2 of 2, gangs-after-1h").unwrap();
    // A pod may be gone before its eviction is answered; then no line says that it was evicted.
    assert_eq!(
        last_wave.matches("  gone     default/ring-").count(),
        2,
        "{story}"
    );
    assert_eq!(pods_on(&testbed, NODE), 0, "{story}");
}
