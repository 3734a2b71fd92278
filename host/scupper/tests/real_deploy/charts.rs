//! The parts of `deploy/` that can be tested without a cluster: Helm and kustomize give the same objects,
//! configurations are valid, alerts fire when they should.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::installed::{deploy, kustomization};
use crate::skip;

/// The mark of a `scupper.yaml`.
const KIND: &str = "kind: Configuration";

/// An overlay, the components beside it, and the equivalent values for Helm.
const SAME: [(&str, &[&str], &[&str]); 11] = [
    (
        "self-claim",
        &["monitoring"],
        &["--include-crds", "--set=monitoring=true"],
    ),
    ("slm", &[], &["--set=claim=kubelet"]),
    ("own-group", &[], &["--set=lifecycleGroup=lifecycle.scupper.dev"]),
    (
        "non-root",
        &[],
        &["--include-crds", "--set=claim=self,kubeletDirectories=false"],
    ),
    (
        "self-claim",
        &["evict-as-node"],
        &["--include-crds", "--set=evictions=node"],
    ),
    (
        "self-claim",
        &["own-pods"],
        &["--include-crds", "--set=evictions=own-pods"],
    ),
    (
        "slm",
        &[
            "facts/cluster",
            "facts/request",
            "facts/namespaces",
            "facts/owners",
            "facts/resources",
            "facts/volumes",
            "pods/delete",
            "pods/patch",
            "wait-for-volumes",
            "local-data",
            "surge",
        ],
        &[
            "--set=claim=kubelet,waitForVolumes=true,localData=true,surge=restart",
            "--set=facts={cluster,request,namespaces,budgets,owners,resources,volumes,peers}",
            "--set=pods={delete,patch}",
        ],
    ),
    ("slm", &["surge-scale"], &["--set=claim=kubelet,surge=scale"]),
    (
        "nvsentinel",
        &[],
        &["--include-crds", "--set=drainRequests={nvsentinel}"],
    ),
    ("slurm", &[], &["--include-crds"]),
    (
        "openstack",
        &[],
        &["--include-crds", "--set=secrets={openstack},facts={cluster}"],
    ),
];

#[test]
fn the_chart_gives_the_objects_of_the_overlays() {
    if skip::left_out("real-apiserver") {
        return;
    }
    for (overlay, components, set) in SAME {
        let kustomized = kustomized(overlay, components);
        let mut command = Command::new(tool("helm"));
        command.args([
            "template",
            "scupper",
            "--namespace=scupper",
            "--set=createNamespace=true",
        ]);
        let own = deploy().join("overlays").join(overlay).join("scupper.yaml");
        if own.exists() {
            command.arg(format!("--set-file=config={}", own.display()));
        }
        let templated = objects(&out(command.args(set).arg(deploy().join("helm/scupper"))));
        let names = |objects: &BTreeMap<String, Value>| objects.keys().cloned().collect::<BTreeSet<_>>();
        assert_eq!(names(&templated), names(&kustomized), "{overlay}");
        let mounted = &templated[r#""ConfigMap" "scupper"/"scupper""#]["data"]["scupper.yaml"];
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, mounted.as_str().unwrap()).unwrap();
        check(file.path());
        for (name, object) in templated {
            assert_eq!(object, kustomized[&name], "{overlay}: {name}");
        }
    }
}

/// Clusters may admit critical pods only in namespaces with a quota for them.
#[test]
fn a_critical_priority_has_its_quota() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let quota = r#""ResourceQuota" "scupper"/"scupper""#;
    for class in ["system-node-critical", "system-cluster-critical", "mine"] {
        let value = format!("--set=priorityClassName={class}");
        let templated = templated(&["--namespace=scupper", &value]);
        let set = &templated[r#""DaemonSet" "scupper"/"scupper""#]["spec"]["template"]["spec"];
        assert_eq!(set["priorityClassName"], class);
        let counted = templated.get(quota).map(|quota| {
            let scope = &quota["spec"]["scopeSelector"]["matchExpressions"][0];
            assert_eq!(scope["scopeName"], "PriorityClass", "{quota}");
            scope["values"].clone()
        });
        let expected = (class != "mine").then(|| serde_json::json!([class]));
        assert_eq!(counted, expected, "{class}");
    }
}

/// They find each other by the kubelet's directory. Without it, both would answer the same requests.
#[test]
fn two_drivers_of_a_node_run_at_once_only_where_they_find_each_other() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let mut seen = BTreeSet::new();
    for entry in std::fs::read_dir(deploy().join("overlays")).unwrap() {
        let overlay = entry.unwrap().file_name().into_string().unwrap();
        let kustomized = kustomized(&overlay, &[]);
        let set = &kustomized[r#""DaemonSet" "scupper"/"scupper""#]["spec"];
        let volumes = set["template"]["spec"]["volumes"].as_array().unwrap();
        let of_kubelet = volumes.iter().find(|it| it["name"] == "plugins-registry");
        let is_shared = of_kubelet.unwrap()["hostPath"].is_object();
        let update = &set["updateStrategy"]["rollingUpdate"];
        assert_eq!(update["maxSurge"] != 0, is_shared, "{overlay}: {update}");
        seen.insert(is_shared);
    }
    assert_eq!(seen.len(), 2, "overlays of both kinds");
}

/// An eviction of a drain that asks for no grace at all would be refused, without end.
#[test]
fn the_policies_of_the_chart_allow_the_grace_period_of_its_drivers() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scupper.yaml");
    let config = format!("--set-file=config={}", file.display());
    for (drain, args, shortest) in [
        ("{}", "--set=monitoring=false", "1"),
        ("{grace-period: 0}", "--set=monitoring=false", "0"),
        ("{}", "--set=args={--grace-period=0}", "0"),
        ("{grace-period: 5}", "--set=args={--scope=node}", "1"),
    ] {
        let head = format!("apiVersion: scupper.dev/v1alpha1\n{KIND}\npolicies: []\n");
        std::fs::write(&file, format!("{head}drain: {drain}\n")).unwrap();
        let templated = templated(&["--namespace=scupper", &config, args]);
        let policy = &templated[r#""ValidatingAdmissionPolicy" null/"scupper-evictions""#];
        let mut variables = policy["spec"]["variables"].as_array().unwrap().iter();
        let variable = variables.find(|it| it["name"] == "shortest").unwrap();
        assert_eq!(variable["expression"], shortest, "{drain} {args}");
    }
}

/// Each of their admission policies refuses what the other one is for.
#[test]
fn a_driver_restarts_deployments_or_raises_them() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let folder = kustomization("slm", &["surge", "surge-scale"]);
    let both = kubectl().arg("kustomize").arg(folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&both.stderr);
    assert!(!both.status.success() && said.contains("scupper-surge"), "{said}");
}

/// A value that the chart does not know would leave a limit or a right out, silently.
#[test]
fn the_chart_refuses_values_that_it_does_not_know() {
    if skip::left_out("real-apiserver") {
        return;
    }
    for (value, words) in [
        ("surge=true", "surge: true is none of restart, scale"),
        ("surge=scal", "surge: scal is none of restart, scale"),
        (
            "evictions=evict-as-node",
            "evictions: evict-as-node is none of node, own-pods",
        ),
        ("evictions=Node", "evictions: Node is none of node, own-pods"),
        (
            "facts={namespace}",
            "facts: namespace is none of cluster, request",
        ),
        ("pods={deletes}", "pods: deletes is none of delete, patch"),
    ] {
        let mut command = Command::new(tool("helm"));
        command.args(["template", "scupper", &format!("--set={value}")]);
        let refused = command.arg(deploy().join("helm/scupper")).output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(
            !refused.status.success() && said.contains(words),
            "{value}: {said}"
        );
    }
}

#[test]
fn variables_of_the_operator_stand_behind_those_of_the_chart() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let own = serde_json::json!([
        {"name": "HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}},
        {"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://$(HOST_IP):4318"},
    ]);
    let mut command = Command::new(tool("helm"));
    command.args(["template", "scupper", "--namespace=scupper"]);
    command.arg(format!("--set-json=env={own}"));
    let text = out(command.arg(deploy().join("helm/scupper")));
    let all: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let driver = all.iter().find(|object| object["kind"] == "DaemonSet").unwrap();
    let env = &driver["spec"]["template"]["spec"]["containers"][0]["env"];
    let env = env.as_array().unwrap();
    assert_eq!(env[env.len() - 2..], own.as_array().unwrap()[..], "{env:?}");
    assert!(env.iter().any(|it| it["name"] == "NODE_NAME"), "{env:?}");
}

#[test]
fn a_release_in_another_namespace_binds_the_account_there() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let mut command = Command::new(tool("helm"));
    command.args([
        "template",
        "scupper",
        "--namespace=drains",
        "--set=monitoring=true",
    ]);
    let text = out(command.arg(deploy().join("helm/scupper")));
    assert!(text.contains("system:serviceaccount:drains:scupper"), "{text}");
    for left in ["namespace: scupper", "serviceaccount:scupper", "job=\"scupper/"] {
        assert!(!text.contains(left), "{left}: {text}");
    }
}

#[test]
fn every_configuration_in_these_folders_is_valid() {
    for (folder, at_least) in [("../../deploy", 3), ("../../examples", 4)] {
        let mut found = Vec::new();
        configurations(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut found);
        assert!(found.len() >= at_least, "{found:?}");
        for file in found {
            check(&file);
        }
    }
}

/// The blocks that a reader copies from the operator's guide.
#[test]
fn every_configuration_in_the_guide_is_valid() {
    let guide = std::fs::read_to_string(deploy().join("README.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scupper.yaml");
    let mut blocks = blocks(&guide);
    blocks.retain(|block| block.lines().any(|line| line == KIND));
    assert!(!blocks.is_empty(), "{guide}");
    for block in blocks {
        std::fs::write(&file, block).unwrap();
        check(&file);
    }
}

/// The YAML in a page.
fn blocks(page: &str) -> Vec<&str> {
    let blocks = page.split("```yaml\n").skip(1);
    blocks.filter_map(|rest| rest.split("```").next()).collect()
}

/// The guide has one to write beside a checkout, and lines to add to it.
#[test]
fn the_kustomization_in_the_guide_works_and_takes_the_patches_in_it() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let guide = std::fs::read_to_string(deploy().join("README.md")).unwrap();
    let of = |begin: &str| {
        let mut blocks = blocks(&guide);
        blocks.retain(|block| block.starts_with(begin));
        blocks
    };
    let [kustomization, patches] = ["apiVersion: kustomize.config.k8s.io/", "patches:\n"].map(of);
    assert_eq!((kustomization.len(), patches.len()), (1, 1), "{guide}");
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("own");
    std::fs::create_dir(&own).unwrap();
    let checkout = deploy().join("..").canonicalize().unwrap();
    std::os::unix::fs::symlink(checkout, folder.path().join("scupper")).unwrap();
    let text = [kustomization, patches].concat().concat();
    std::fs::write(own.join("kustomization.yaml"), text).unwrap();
    let objects = objects(&out(kubectl().arg("kustomize").arg(&own)));
    assert!(
        objects.values().any(|object| object["kind"] == "PodMonitor"),
        "{objects:?}"
    );
    let driver = &objects[r#""DaemonSet" "scupper"/"scupper""#]["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(driver["image"], "registry.example.com/scupper:0.1.0");
    let variable = |name: &str| {
        let all = driver["env"].as_array().unwrap();
        all.iter().find(|it| it["name"] == name).unwrap().clone()
    };
    assert_eq!(
        variable("HOST_IP")["valueFrom"]["fieldRef"]["fieldPath"],
        "status.hostIP"
    );
    assert_eq!(
        variable("OTEL_EXPORTER_OTLP_ENDPOINT")["value"],
        "http://$(HOST_IP):4318"
    );
}

/// Files of this kind, recognized by their content and not by their names. Links lead to files that are found anyway.
fn configurations(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            configurations(&entry.path(), found);
        } else if entry.path().extension().is_some_and(|it| it == "md") {
            // Pages contain it in blocks: see the test of the guide.
        } else if entry.file_type().unwrap().is_file() {
            let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
            if text.lines().any(|line| line == KIND) {
                found.push(entry.path());
            }
        }
    }
}

fn check(file: &Path) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scupper"));
    out(command.args(["config", "check"]).arg(file));
}

#[test]
fn alerts_fire_when_they_should_and_not_before() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let rules = std::fs::read_to_string(monitoring("rules.yaml")).unwrap();
    let rules: Value = serde_saphyr::from_str(&rules).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rules.yml"), rules["spec"].to_string()).unwrap();
    let tests = folder.path().join("rules.test.yaml");
    std::fs::copy(monitoring("rules.test.yaml"), &tests).unwrap();
    out(Command::new(tool("promtool")).args(["test", "rules"]).arg(&tests));
    let tested = std::fs::read_to_string(&tests).unwrap();
    for rule in rules["spec"]["groups"][0]["rules"].as_array().unwrap() {
        let fires = format!(
            "alertname: {}\n        exp_alerts:",
            rule["alert"].as_str().unwrap()
        );
        assert!(tested.contains(&fires), "no test sees it fire: {rule}");
    }
}

#[test]
fn alerts_and_dashboard_name_metrics_that_the_driver_has() {
    let has = metrics();
    for file in ["rules.yaml", "scupper.json"] {
        let text = std::fs::read_to_string(monitoring(file)).unwrap();
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let named: BTreeSet<_> = words.filter(|word| word.starts_with("scupper_")).collect();
        assert!(named.len() > 5, "{file}: {named:?}");
        for name in named {
            assert!(has.contains(name), "{file}: the driver has no {name}: {has:?}");
        }
    }
}

/// Every name under which a metric may be scraped. Read where they are registered: a driver shows no metric that has
/// never been counted.
fn metrics() -> BTreeSet<String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../metrics/src/registry.rs");
    let source = std::fs::read_to_string(source).unwrap();
    let source: String = source.split_whitespace().collect();
    let registered = source.split("all.register").filter_map(|text| {
        let (with_unit, text) = match text.strip_prefix("_with_unit(\"") {
            Some(text) => (true, text),
            None => (false, text.strip_prefix("(\"")?),
        };
        let (name, rest) = text.split_once('"').unwrap();
        let unit = match rest.split(';').next().unwrap() {
            _ if !with_unit => "",
            rest if rest.contains("Unit::Bytes") => "_bytes",
            _ => "_seconds",
        };
        Some(format!("scupper_{name}{unit}"))
    });
    let endings = ["", "_total", "_bucket", "_sum", "_count"];
    registered
        .flat_map(|name| endings.map(|ending| format!("{name}{ending}")))
        .collect()
}

fn monitoring(file: &str) -> PathBuf {
    deploy().join("components/monitoring").join(file)
}

fn templated(set: &[&str]) -> BTreeMap<String, Value> {
    let mut command = Command::new(tool("helm"));
    command.args(["template", "scupper"]).args(set);
    objects(&out(command.arg(deploy().join("helm/scupper"))))
}

fn kustomized(overlay: &str, components: &[&str]) -> BTreeMap<String, Value> {
    let folder = kustomization(overlay, components);
    objects(&out(kubectl().arg("kustomize").arg(folder.path())))
}

/// The testbed's own command, which needs no cluster for this.
fn kubectl() -> Command {
    let testbed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testbeds/kubernetes/kubernetes-testbed");
    let built = out(Command::new(testbed).arg("build"));
    let mut command = Command::new(Path::new(built.trim()).join("controlplane"));
    command.arg("kubectl");
    command
}

pub(crate) fn tool(name: &str) -> PathBuf {
    let cache = std::env::var_os("SCUPPER_CACHE").unwrap_or_else(|| "/var/cache/scupper".into());
    let tool = Path::new(&cache).join("tools/bin").join(name);
    assert!(
        tool.exists(),
        "{} is missing: host/testbeds/tools {name}",
        tool.display()
    );
    tool
}

fn out(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Kind, namespace and name, and the object with its lists of named things in the order of their names.
fn objects(yaml: &str) -> BTreeMap<String, Value> {
    let all: Vec<Value> = serde_saphyr::from_multiple(yaml).unwrap();
    let named = all
        .into_iter()
        .filter(|object| !object.is_null())
        .map(|mut object| {
            ordered(&mut object);
            let meta = &object["metadata"];
            let name = format!("{} {}/{}", object["kind"], meta["namespace"], meta["name"]);
            (name, object)
        });
    named.collect()
}

fn ordered(value: &mut Value) {
    match value {
        Value::Array(items) => {
            items.iter_mut().for_each(ordered);
            if items.iter().all(|item| item["name"].is_string()) {
                items.sort_by_key(|item| item["name"].to_string());
            }
        }
        Value::Object(fields) => fields.values_mut().for_each(ordered),
        _ => {}
    }
}
