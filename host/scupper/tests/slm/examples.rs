//! The files of `examples/lifecycle` do what their comments state; and every file of `examples/` has a test that reads
//! it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::driver::Driver;
use crate::objects::pod;
use crate::rig::{NODE, Rig, name};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The objects of a file.
fn objects(file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(Path::new(ROOT).join(file)).unwrap();
    let parts = text.split("\n---\n");
    parts
        .map(|part| serde_saphyr::from_str(part).unwrap_or_else(|error| panic!("{file}: {error}")))
        .collect()
}

#[tokio::test]
async fn the_lifecycle_examples_drain_a_node_and_give_it_back() {
    let rig = Rig::start().await;
    rig.apply(pod("web-1"));
    // With only the required fields of a node.
    let folder = rig.kubeconfig().parent().unwrap().to_owned();
    let arguments = [
        "--node-name".to_owned(),
        NODE.to_owned(),
        "--kubelet-root".to_owned(),
        rig.kubelet.root().display().to_string(),
        "--kubeconfig".to_owned(),
        rig.kubeconfig().display().to_string(),
    ];
    let _driver = Driver::spawn(&folder, 100, &arguments);
    let transitions = objects("examples/lifecycle/transitions.yaml");
    assert_eq!(transitions.len(), 2);
    for written in &transitions {
        let name = name(written);
        rig.until("it publishes what stands there", || {
            rig.get_transition(name)
                .is_some_and(|published| published["spec"] == written["spec"])
        })
        .await;
    }
    for (file, cordoned) in [("drain", true), ("maintenance-complete", false)] {
        let mut objects = objects(&format!("examples/lifecycle/{file}.yaml"));
        let object = objects.pop().unwrap();
        assert!(objects.is_empty(), "{file}");
        assert_eq!(object["spec"]["bindingNode"], NODE, "{file}");
        let event = name(&object).to_owned();
        rig.apply(object);
        assert_eq!(rig.end_of(&event).await, "Succeeded", "{file}");
        assert_eq!(rig.is_cordoned(), cordoned, "{file}");
        assert_eq!(rig.pod_names(), [] as [String; 0], "{file}");
    }
}

/// An API server silently drops unknown fields.
#[test]
fn the_lifecycle_examples_have_no_field_that_the_api_does_not_have() {
    let kinds = objects("deploy/crds/lifecycle.yaml");
    for file in ["drain", "maintenance-complete", "transitions"] {
        for object in objects(&format!("examples/lifecycle/{file}.yaml")) {
            let kind = kinds
                .iter()
                .find(|kind| kind["spec"]["names"]["kind"] == object["kind"])
                .unwrap_or_else(|| panic!("{file}: there is no kind {}", object["kind"]));
            let version = &kind["spec"]["versions"][0];
            let group = kind["spec"]["group"].as_str().unwrap();
            let served = format!("{group}/{}", version["name"].as_str().unwrap());
            assert_eq!(object["apiVersion"], served.as_str(), "{file}");
            let spec = &version["schema"]["openAPIV3Schema"]["properties"]["spec"];
            for field in object["spec"].as_object().unwrap().keys() {
                assert!(spec["properties"][field].is_object(), "{file}: {field}");
            }
            for field in spec["required"].as_array().unwrap() {
                let field = field.as_str().unwrap();
                assert!(!object["spec"][field].is_null(), "{file}: {field}");
            }
        }
    }
}

/// The tests that read them: this file those of `lifecycle`, `config` those of `config`, `real_apiserver` those of
/// `neighbours`, `author` the cluster and the policies with their scenarios, whatever their names.
#[test]
fn each_example_is_read_by_a_test_and_named_in_the_readme() {
    let examples = Path::new(ROOT).join("examples");
    let mut found = BTreeSet::new();
    files(&examples, &mut found);
    let known = [
        "README.md",
        "clusters/small.yaml",
        "config/minimal.yaml",
        "config/openstack.yaml",
        "config/slurm.yaml",
        "config/slurmrestd.yaml",
        "lifecycle/drain.yaml",
        "lifecycle/maintenance-complete.yaml",
        "lifecycle/transitions.yaml",
        "neighbours/cluster-api.sh",
        "neighbours/karpenter.sh",
        "neighbours/only-scupper-evicts.yaml",
    ];
    let readme = std::fs::read_to_string(examples.join("README.md")).unwrap();
    let mut seen = BTreeSet::new();
    for file in found {
        let file = file.strip_prefix(&examples).unwrap().to_str().unwrap().to_owned();
        let parts: Vec<&str> = file.split('/').collect();
        match parts.as_slice() {
            ["policies", policy, "Cargo.toml" | "README.md"] => {
                assert!(readme.contains(&format!("`policies/{policy}`")), "{policy}");
            }
            // Cargo builds the crate, and the scenarios of all crates run.
            ["policies", _, "src", "lib.rs"] | ["policies", _, "scenarios", _] => {}
            // The author's tests build them by the commands of their README.
            [
                "policies",
                "keep-labelled-python",
                "policy.py" | "requirements.txt",
            ]
            | [
                "policies",
                "by-priority-javascript",
                "policy.js" | "package.json" | "package-lock.json" | ".npmrc",
            ] => {}
            _ => {
                assert!(known.contains(&file.as_str()), "no test reads examples/{file}");
                assert!(
                    file == "README.md" || readme.contains(&format!("`{file}`")),
                    "{file}"
                );
                seen.insert(file);
            }
        }
    }
    assert_eq!(seen.len(), known.len(), "{seen:?}");
}

fn files(folder: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            // The results of a build there are not examples.
            if path.file_name().unwrap() != "target" {
                files(&path, found);
            }
        } else {
            found.insert(path);
        }
    }
}
