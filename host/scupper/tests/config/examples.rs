//! The files that users copy are valid, and the policies in them load.

use std::path::{Path, PathBuf};

use scupper_config::read;

use crate::HEAD;
use crate::limit::LIMIT;
use crate::support::{policies, scupper};

fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/config");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    files
}

#[test]
fn there_are_those_that_the_readme_names() {
    let names: Vec<_> = examples()
        .iter()
        .map(|file| file.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        names,
        ["minimal.yaml", "openstack.yaml", "slurm.yaml", "slurmrestd.yaml"]
    );
    let readme = include_str!("../../../../examples/README.md");
    for name in names {
        assert!(readme.contains(&format!("`config/{name}`")), "{name}");
    }
}

#[test]
fn they_are_read_without_a_problem() {
    for file in examples() {
        let configuration = read(&file).unwrap_or_else(|error| panic!("{error}"));
        assert!(!configuration.policies.is_empty(), "{}", file.display());
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(
            text.starts_with("# yaml-language-server: $schema=../../deploy/scupper.schema.json\n"),
            "{} names no schema for editors",
            file.display()
        );
    }
}

/// Where the image has the policies.
const IN_IMAGE: &str = "/usr/share/scupper/policies/";

/// YAML that is not a configuration of the driver: its page, and how it begins. Other tests cover it: the kustomizations
/// in `real_deploy`, an admission policy in `real_apiserver`, scenarios in `scupper-dev/tests/author`; Cluster API's
/// objects are not ours.
const OTHERS: [(&str, &str); 6] = [
    ("deploy/README.md", "apiVersion: kustomize.config.k8s.io/"),
    ("deploy/README.md", "patches:\n"),
    ("deploy/NEIGHBOURS.md", "kind: MachineDeployment\n"),
    ("deploy/FIRST-HOUR.md", "about: "),
    (
        "plugins/gpu/README.md",
        "apiVersion: admissionregistration.k8s.io/",
    ),
    ("sdk/README.md", "about: "),
];

/// A policy that the reader of a page builds, which any other stands for here.
const OWN: &str = "databases-last.wasm";

/// All pages of the repository.
fn pages(root: &Path) -> Vec<PathBuf> {
    let listed = std::process::Command::new("git")
        .args(["ls-files", "-z", "*.md"])
        .current_dir(root)
        .output()
        .unwrap();
    assert!(listed.status.success(), "{listed:?}");
    let listed = String::from_utf8(listed.stdout).unwrap();
    let pages = listed
        .split_terminator('\0')
        .filter(|page| !page.contains("/template/"));
    pages.map(|page| root.join(page)).collect()
}

/// Blocks of YAML. Every other block is output, or not YAML.
fn yaml_blocks(page: &str) -> Vec<&str> {
    let blocks = page.split("```yaml\n").skip(1);
    blocks.filter_map(|rest| rest.split("```").next()).collect()
}

/// A reader copies it as well where its block is not marked as YAML.
#[test]
fn every_block_of_yaml_is_marked_as_such() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut unmarked = Vec::new();
    for page in pages(&root) {
        let text = std::fs::read_to_string(&page).unwrap();
        // Before, inside and behind a block, in turn; the first line of a block is its language.
        for block in text.split("```").skip(1).step_by(2) {
            let is_yaml = [
                "apiVersion: ",
                "kind: ",
                "about: ",
                "policies:",
                "drain:",
                "patches:",
            ];
            if let Some(block) = block.strip_prefix('\n')
                && is_yaml.iter().any(|begin| block.starts_with(begin))
            {
                unmarked.push((page.clone(), block.to_owned()));
            }
        }
    }
    assert!(unmarked.is_empty(), "{unmarked:#?}");
}

/// The YAML in the pages is what people copy first: into the `scupper.yaml` of the image, which has the policies in a
/// folder of its own.
#[test]
fn the_yaml_of_every_page_works_in_the_image() {
    let built = policies();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut failed, mut loaded) = (Vec::new(), 0);
    for page in pages(&root) {
        let text = std::fs::read_to_string(&page).unwrap();
        let name = page.strip_prefix(&root).unwrap().display().to_string();
        for (number, block) in yaml_blocks(&text).into_iter().enumerate() {
            let is_other = |(page, begin): &(&str, &str)| *page == name && block.starts_with(begin);
            if OTHERS.iter().any(is_other) || block.contains("module: target/") {
                continue;
            }
            let is_there = !block.contains("module: ") || block.contains(&format!("module: {IN_IMAGE}"));
            assert!(
                is_there,
                "{name}: the image has its policies in {IN_IMAGE}: {block}"
            );
            let head = if block.starts_with("apiVersion: ") {
                ""
            } else {
                HEAD
            };
            let none = if block.contains("policies:") {
                ""
            } else {
                "policies: []\n"
            };
            let block = block.replace(IN_IMAGE, "").replace(OWN, "priority.wasm");
            // Modules are beside the file.
            let file = built.join(format!("{}-{number}.yaml", name.replace('/', "-")));
            std::fs::write(&file, format!("{head}{none}{block}")).unwrap();
            let run = scupper(&["config", "check", "--policies", file.to_str().unwrap()], LIMIT);
            loaded += 1;
            if run.code != Some(0) {
                failed.push((name.clone(), run));
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(loaded >= 15, "{loaded} blocks");
}

/// As the driver would load them: compiled, described, granted their requests, with a valid configuration.
#[test]
fn their_policies_load() {
    let built = policies();
    let mut failed = Vec::new();
    for file in examples() {
        // Modules are beside the file.
        let copy = built.join(file.file_name().unwrap());
        std::fs::copy(&file, &copy).unwrap();
        let run = scupper(&["config", "check", "--policies", copy.to_str().unwrap()], LIMIT);
        if run.code != Some(0) {
            failed.push(run);
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
