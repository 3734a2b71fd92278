//! A policy looked over, asked once, and measured.

use std::path::Path;

use serde_json::Value;

use crate::guests::guest;
use crate::program::{policy, repository};

const SNAPSHOT: &str = "examples/clusters/small.yaml";

/// A policy of the repository as a component.
fn component(crate_folder: &str) -> String {
    let built = policy(&repository(), &["--output", "json", "build", crate_folder]);
    let built: Value = serde_json::from_str(built.good()).unwrap();
    built.get("file").unwrap().as_str().unwrap().to_owned()
}

fn path(file: &Path) -> &str {
    file.to_str().unwrap()
}

#[test]
fn check_tells_everything_that_is_wrong_at_once() {
    let slurm = component("plugins/slurm");
    let told = policy(
        &repository(),
        &["check", &slurm, "--set", "hold=never", "--set", "colour=red"],
    )
    .ends(3);
    for words in [
        "add under its `grants` in scupper.yaml: node-annotations: [nodeset.slinky.slurm.net/]",
        "its configuration: `hold`",
        "its configuration: `colour`",
    ] {
        assert!(told.contains(words), "no `{words}` in {told}");
    }
    let grant = "node-annotations:nodeset.slinky.slurm.net/";
    let told = policy(&repository(), &["check", &slurm, "--grant", grant]);
    assert!(
        told.good().contains("a driver would load it: slurm "),
        "{told:#?}"
    );
}

#[test]
fn check_reads_what_the_operator_says() {
    let slurm = component("plugins/slurm");
    let dir = tempfile::tempdir().unwrap();
    let text = format!(
        "apiVersion: scupper.dev/v1alpha1\nkind: Configuration\npolicies:\n- name: jobs\n  module: {slurm}\n  \
         grants: {{node-annotations: [nodeset.slinky.slurm.net/]}}\n"
    );
    std::fs::write(dir.path().join("scupper.yaml"), text).unwrap();
    policy(dir.path(), &["check", &slurm, "--config", "scupper.yaml"]).good();
    let told = policy(
        dir.path(),
        &["check", &slurm, "--config", "scupper.yaml", "--name", "other"],
    )
    .ends(3);
    assert!(told.contains("it has jobs"), "{told}");
}

#[test]
fn what_is_no_policy_is_told_with_what_to_do() {
    for (name, words) in [
        ("other_world", "it is no policy"),
        ("spins_in_describe", "it used more than its"),
        ("wants_unknown", "there is no capability"),
    ] {
        let told = policy(&repository(), &["check", path(&guest(name))]).ends(3);
        assert!(told.contains(words), "{name}: {told}");
    }
    let told = policy(&repository(), &["check", "README.md"]).ends(3);
    assert!(told.contains("it is no WebAssembly file"), "{told}");
    let told = policy(&repository(), &["inspect", "nowhere.wasm"]).ends(3);
    assert!(told.contains("it cannot be read"), "{told}");
}

#[test]
fn inspect_shows_what_a_policy_wants_although_nobody_has_granted_it() {
    let slurm = component("plugins/slurm");
    let told = policy(&repository(), &["inspect", &slurm]);
    let told = told.good();
    for line in [
        "  does     plans; hooks before-cordon, before-drain",
        "  grants:\n    node-annotations: [nodeset.slinky.slurm.net/]\n",
        "scupper:drain/planner@0.1.0",
        "\"poll-seconds\"",
        "of 65536 KiB",
    ] {
        assert!(told.contains(line), "no `{line}` in {told}");
    }
    let json = policy(&repository(), &["--output", "json", "inspect", &slurm]);
    let json: Value = serde_json::from_str(json.good()).unwrap();
    assert_eq!(json.pointer("/name").unwrap(), "slurm");
    assert_eq!(
        json.pointer("/wants/0").unwrap(),
        "node-annotations:nodeset.slinky.slurm.net/"
    );
    assert_eq!(json.pointer("/configSchema/type").unwrap(), "object");
    assert_eq!(json.pointer("/sha256").unwrap().as_str().unwrap().len(), 64);
}

#[test]
fn run_shows_a_plan_the_steps_of_a_hook_and_a_whole_drain_on_a_snapshot() {
    let keep = component("examples/policies/keep-labelled");
    let told = policy(&repository(), &["run", &keep, "--on", SNAPSHOT]);
    assert!(
        told.good()
            .contains("stays            shop/db-0  it has the label example.com/keep [keep-labelled]")
    );
    let told = policy(&repository(), &["run", &keep, "--on", SNAPSHOT, "--drain"]);
    assert!(told.good().contains("Drained in 1s"), "{told:#?}");
    let announce = component("examples/policies/announce");
    let told = policy(
        &repository(),
        &["run", &announce, "--on", SNAPSHOT, "--phase", "before-drain"],
    );
    assert_eq!(told.good(), "      0s  before-drain  done\n");
    assert!(
        told.stderr.contains("BeforeDrain: the mark is right"),
        "{told:#?}"
    );
    let told = policy(
        &repository(),
        &["run", &announce, "--on", SNAPSHOT, "--phase", "during-drain"],
    )
    .ends(2);
    assert!(told.contains("there are before-cordon, before-drain"), "{told}");
}

#[test]
fn a_policy_that_panics_is_told_by_its_own_functions() {
    let guest = guest("panics");
    let run = |args: &[&str]| {
        let args: Vec<&str> = ["run", path(&guest), "--on", SNAPSHOT]
            .into_iter()
            .chain(args.iter().copied())
            .collect();
        policy(&repository(), &args).ends(7)
    };
    for told in [run(&[]), run(&["--phase", "before-drain"])] {
        assert!(
            told.contains("in panics::look_up_the_impossible, called by "),
            "{told}"
        );
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("it.yaml"),
        "pods: [shop/cart]\nplan: {evict: [shop/cart]}\n",
    )
    .unwrap();
    let told = policy(dir.path(), &["test", "it.yaml", "--policy", path(&guest)]).ends(7);
    assert!(
        told.contains("in panics::look_up_the_impossible, called by "),
        "{told}"
    );
}

#[test]
fn bench_measures_and_tells_the_limits() {
    let announce = component("examples/policies/announce");
    let told = policy(
        &repository(),
        &[
            "--output", "json", "bench", &announce, "--pods", "20", "--rounds", "5",
        ],
    );
    let told: Value = serde_json::from_str(told.good()).unwrap();
    let compiled = |what: &str| told["compiled"][what].as_u64().unwrap();
    assert!(
        compiled("nativeBytes") > compiled("bytes") && compiled("tookUs") > 0,
        "{told}"
    );
    assert_eq!(told.pointer("/figures/0/function").unwrap(), "step");
    assert!(told.pointer("/figures/0/medianUs").unwrap().as_u64().unwrap() > 0);
    assert!(told.pointer("/most/memoryBytes").unwrap().as_u64().unwrap() > 0);
}
