//! The files that users copy are valid, and the policies in them load.

use std::path::{Path, PathBuf};
use std::time::Duration;

use scupper_config::read;

use crate::HEAD;
use crate::support::{policies, scupper};

const LIMIT: Duration = Duration::from_secs(300);

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

/// The YAML in the policies' readmes is what people copy first.
#[test]
fn the_yaml_in_the_readmes_of_policies_loads() {
    let built = policies();
    let mut failed = Vec::new();
    for (policy, readme, least) in [
        (
            "openstack",
            include_str!("../../../../plugins/openstack/README.md"),
            2,
        ),
        ("slurm", include_str!("../../../../plugins/slurm/README.md"), 3),
        (
            "namespace-modes",
            include_str!("../../../../plugins/namespace-modes/README.md"),
            1,
        ),
        ("jobs", include_str!("../../../../plugins/jobs/README.md"), 1),
        ("gpu", include_str!("../../../../plugins/gpu/README.md"), 1),
        ("gangs", include_str!("../../../../plugins/gangs/README.md"), 1),
    ] {
        let blocks: Vec<&str> = readme
            .split("```yaml\n")
            .skip(1)
            .filter_map(|rest| rest.split("```").next())
            .collect();
        assert!(blocks.len() >= least, "{policy}: {blocks:#?}");
        for (number, block) in blocks.into_iter().enumerate() {
            // Modules are beside the file.
            let file = built.join(format!("readme-{policy}-{number}.yaml"));
            std::fs::write(&file, format!("{HEAD}{block}")).unwrap();
            let run = scupper(&["config", "check", "--policies", file.to_str().unwrap()], LIMIT);
            if run.code != Some(0) {
                failed.push(run);
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
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
