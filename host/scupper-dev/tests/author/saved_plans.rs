//! A plan of a cluster is saved as a scenario, and replayed without the cluster.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use scupper_simulator::api::{ApiServer, Kind, Options, objects};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::guests::guest;
use crate::programs::programs;

/// What a policy can ask the simulator about, in two parts: a reason has at most 256 bytes.
const QUESTIONS: &str = "namespace shop\nbudgets\nowners\nresources\npeers";
const MORE_QUESTIONS: &str = "request\ndrain-requests\nvolumes";

/// A cluster, and a configuration of a policy that gives what it learns as the reason of each verdict.
struct Rig {
    api: ApiServer,
    dir: TempDir,
    _runtime: Runtime,
}

fn rig() -> Rig {
    rig_with(QUESTIONS, json!({"sla": "10m", "force": false}))
}

fn rig_with(questions: &str, drain: Value) -> Rig {
    rig_serving(questions, drain, json!({}))
}

fn rig_serving(questions: &str, drain: Value, drain_requests: Value) -> Rig {
    let runtime = Runtime::new().unwrap();
    let requests = Kind::custom(
        "nvsentinel.nvidia.com",
        "v1alpha1",
        "drainrequests",
        "DrainRequest",
    );
    let options = Options {
        kinds: vec![requests.namespaced()],
        ..Options::default()
    };
    let api = runtime.block_on(ApiServer::start(options)).unwrap();
    let apply = |object: objects::Object| api.store().apply(object.build()).unwrap();
    for node in ["worker-1", "worker-2"] {
        apply(objects::node(node));
    }
    apply(objects::namespace("shop").label("team", "gold"));
    let pod = |name: &str, node: &str| {
        objects::pod("shop", name, node)
            .owner_replicaset("web")
            .label("app", "web")
    };
    let csi = json!({"driver": "csi.example.com", "volumeHandle": "data"});
    apply(objects::persistent_volume("pv-data", "shop", "data").with("/spec/csi", csi));
    apply(objects::volume_claim("shop", "data", "pv-data"));
    apply(objects::volume_attachment("csi-data", "worker-1", "pv-data"));
    let mut secretive = pod("web-1", "worker-1").claim("data").build();
    let container = secretive.pointer_mut("/spec/containers/0").unwrap();
    let variables = json!([{"name": "TOKEN", "value": "very-secret"}]);
    container
        .as_object_mut()
        .unwrap()
        .insert("env".to_owned(), variables);
    api.store().apply(secretive).unwrap();
    apply(pod("web-2", "worker-2"));
    apply(objects::replica_set("shop", "web", 2));
    let budget = objects::budget("shop", "keep-web", &[("app", "web")], 1);
    api.store().apply(budget).unwrap();
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::write(dir.path().join("kubeconfig"), api.kubeconfig()).unwrap();
    let configuration = json!({
        "apiVersion": "scupper.dev/v1alpha1", "kind": "Configuration",
        "policies": [{
            "name": "asks", "module": guest("asks"),
            "config": {"ask": questions, "then": "give reasons"},
            "grants": {"facts": ["request", "namespaces", "budgets", "owners", "resources", "volumes", "peers"]},
        }],
        "drain": drain, "drain-requests": drain_requests,
    });
    fs::write(dir.path().join("scupper.yaml"), configuration.to_string()).unwrap();
    Rig {
        api,
        dir,
        _runtime: runtime,
    }
}

impl Rig {
    fn plan(&self, folder: &Path, more: &[&str]) -> Output {
        self.plan_of(&["worker-1"], folder, more)
    }

    fn plan_of(&self, target: &[&str], folder: &Path, more: &[&str]) -> Output {
        let kubeconfig = self.dir.path().join("kubeconfig");
        let config = self.dir.path().join("scupper.yaml");
        let mut command = Command::new(programs().join("scupper"));
        command
            .arg("plan")
            .args(target)
            .arg("--kubeconfig")
            .arg(kubeconfig);
        command
            .arg("--config")
            .arg(config)
            .arg("--save-scenario")
            .arg(folder);
        command.args(more).output().unwrap()
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("saved")
    }
}

fn replay(folder: &Path) -> (Option<i32>, String) {
    let mut command = Command::new(programs().join("scupper"));
    let ran = command.args(["policy", "test"]).arg(folder).output().unwrap();
    (
        ran.status.code(),
        format!("{}{}", text(&ran.stdout), text(&ran.stderr)),
    )
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_saved_plan_is_replayed_with_all_that_its_policies_learned() {
    let rig = rig();
    let saved = rig.plan(&rig.folder(), &["--force", "--returning-pod-evictions=3"]);
    assert_eq!(saved.status.code(), Some(0), "{saved:?}");
    let scenario = rig.folder().join("worker-1.yaml");
    assert_eq!(text(&saved.stderr), format!("saved {}\n", scenario.display()));
    let written = fs::read_to_string(&scenario).unwrap();
    for learned in [
        "gold",
        "keep-web",
        "web-2",
        "returning-pod-evictions: 3",
        "force: true",
    ] {
        assert!(written.contains(learned), "{learned}: {written}");
    }
    drop(rig.api);
    let (code, output) = replay(&rig.dir.path().join("saved"));
    assert_eq!(code, Some(0), "{output}");
    let snapshot = rig.dir.path().join("saved/cluster.json");
    let objects = fs::read_to_string(&snapshot).unwrap();
    assert!(!objects.contains("very-secret"), "{objects}");
    fs::write(&snapshot, objects.replace("gold", "silver")).unwrap();
    let (code, output) = replay(&rig.dir.path().join("saved"));
    assert_eq!(code, Some(7), "{output}");
    assert!(output.contains("silver"), "{output}");
}

#[test]
fn who_asked_for_the_drain_and_the_pods_volumes_are_replayed_as_well() {
    let rig = rig_with(MORE_QUESTIONS, json!({}));
    let saved = rig.plan(&rig.folder(), &[]);
    assert_eq!(saved.status.code(), Some(0), "{saved:?}");
    let written = fs::read_to_string(rig.folder().join("worker-1.yaml")).unwrap();
    for learned in ["command plan None", "pv-data"] {
        assert!(written.contains(learned), "{learned}: {written}");
    }
    let (code, output) = replay(&rig.folder());
    assert_eq!(code, Some(0), "{output}");
}

fn with_request(rig: &Rig) -> Output {
    let request = json!({
        "apiVersion": "nvsentinel.nvidia.com/v1alpha1", "kind": "DrainRequest",
        "metadata": {"name": "gpu-0", "namespace": "nvsentinel"},
        "spec": {"nodeName": "worker-1", "checkName": "GpuXidError", "podsToDrain": {"shop": ["web-1"]}},
    });
    rig.api.store().apply(request).unwrap();
    let of_request = ["--drain-request", "nvsentinel/gpu-0"];
    rig.plan_of(&of_request, &rig.folder(), &["--force"])
}

#[test]
fn the_plan_for_a_drain_request_is_replayed_with_what_the_request_says() {
    let rig = rig_with(MORE_QUESTIONS, json!({}));
    let saved = with_request(&rig);
    assert_eq!(saved.status.code(), Some(0), "{saved:?}");
    let written = fs::read_to_string(rig.folder().join("worker-1.yaml")).unwrap();
    for learned in ["DrainRequest gpu-0", "GpuXidError"] {
        assert!(written.contains(learned), "{learned}: {written}");
    }
    let (code, output) = replay(&rig.folder());
    assert_eq!(code, Some(0), "{output}");
}

#[test]
fn a_plan_for_the_pods_of_a_drain_request_is_no_scenario() {
    let rig = rig_serving(MORE_QUESTIONS, json!({}), json!({"partial": true}));
    let saved = with_request(&rig);
    assert_eq!(saved.status.code(), Some(3), "{saved:?}");
    assert!(
        text(&saved.stderr).contains("(drain-requests.partial)"),
        "{saved:?}"
    );
    assert!(!rig.folder().exists());
}

/// A scenario runs only the policies, so it must not expect what the host's own check refuses.
#[test]
fn a_plan_that_the_pre_flight_check_refuses_can_be_replayed() {
    let rig = rig_with(QUESTIONS, json!({"local-data": "refuse"}));
    let local = objects::local_volume("pv-data", "worker-1", "shop", "data");
    rig.api.store().apply(local.build()).unwrap();
    let saved = rig.plan(&rig.folder(), &[]);
    assert_eq!(saved.status.code(), Some(5), "{saved:?}");
    assert!(text(&saved.stdout).contains("[pre-flight check]"), "{saved:?}");
    let (code, output) = replay(&rig.folder());
    assert_eq!(code, Some(0), "{output}");
}

#[test]
fn an_existing_scenario_stays_as_it_is_and_nothing_half_done_stays() {
    let rig = rig();
    let folder = rig.folder();
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("worker-1.yaml"), "mine").unwrap();
    let ran = rig.plan(&folder, &[]);
    assert_eq!(ran.status.code(), Some(3), "{ran:?}");
    let error = text(&ran.stderr);
    assert!(
        error.contains("cannot create") && error.contains("worker-1.yaml: File exists"),
        "{error}"
    );
    assert_eq!(fs::read_to_string(folder.join("worker-1.yaml")).unwrap(), "mine");
    assert!(!folder.join("cluster.json").exists());
}

#[test]
fn what_a_scenario_cannot_say_is_refused_before_anything_is_read() {
    let rig = rig();
    for flag in ["--pod-selector=app=web", "--node-is-off", "--local-data=refuse"] {
        let ran = rig.plan(&rig.folder(), &[flag]);
        assert_eq!(ran.status.code(), Some(2), "{ran:?}");
        let named = flag.split('=').next().unwrap();
        assert!(text(&ran.stderr).contains(named), "{ran:?}");
        assert!(!rig.folder().exists());
    }
    assert_eq!(rig.api.requests_since(0).len(), 0);
}

#[test]
fn a_scenario_may_say_when_its_drain_starts() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let scenario = |time: &str| {
        let text = json!({"time": time, "policies": [{"name": "echo", "module": guest("echo")}], "pods": ["shop/web"],
            "ends": {"outcome": "Drained", "within": "1m"}});
        fs::write(dir.path().join("one.yaml"), Value::to_string(&text)).unwrap();
        replay(dir.path())
    };
    let (code, output) = scenario("2026-11-23T10:00:00Z");
    assert_eq!(code, Some(0), "{output}");
    let (code, output) = scenario("yesterday");
    assert_ne!(code, Some(0));
    assert!(output.contains("`yesterday` is not a time"), "{output}");
}
