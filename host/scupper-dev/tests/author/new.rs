//! New policies build, and their tests and scenarios pass, without a change.

use std::path::Path;
use std::process::Command;

use crate::program::{policy, run, scratch};

#[test]
fn a_new_policy_of_every_kind_passes_its_tests_and_scenarios() {
    let dir = scratch("new");
    for (kind, name) in [
        ("--planner", "plans"),
        ("--hooks", "acts"),
        ("--both", "does-both"),
    ] {
        let made = policy(&dir, &["new", name, kind]);
        assert!(
            made.good()
                .ends_with(&format!("next: cd {name} && scupper policy test\n")),
            "{made:#?}"
        );
        let folder = dir.join(name);
        // A user who has only the programs has neither the checkout nor our paths.
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        assert!(
            manifest.contains("scupper-sdk = { path = \"sdk/scupper-sdk\" }"),
            "{manifest}"
        );
        // In a build directory where the dependencies are compiled, and offline: a test downloads nothing.
        let target = env!("CARGO_TARGET_TMPDIR");
        let mut test = Command::new(env!("CARGO"));
        test.args(["test", "--quiet", "--offline"])
            .env("CARGO_TARGET_DIR", target)
            .env_remove("CARGO_BUILD_BUILD_DIR");
        assert!(run(&folder, test).good().contains("test result: ok"));
        let offline = |args: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_scupper-dev"));
            command.arg("policy").args(args);
            command.env("CARGO_TARGET_DIR", target);
            command.env("CARGO_NET_OFFLINE", "true");
            run(&folder, command)
        };
        let played = offline(&["test"]);
        assert!(played.good().ends_with(" 0 failed\n"), "{played:#?}");
        offline(&["build", "--out", "target/policies"]).good();
        loads_as_its_page_says(&folder, name);
    }
}

/// A driver would load the component with the configuration on the page of the new policy.
fn loads_as_its_page_says(folder: &Path, name: &str) {
    let page = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let (_, block) = page.split_once("```yaml\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    std::fs::write(folder.join("scupper.yaml"), block).unwrap();
    let component = format!("target/policies/{name}.wasm");
    let checked = policy(folder, &["check", &component, "--config", "scupper.yaml"]);
    let said = checked.good();
    assert!(said.contains("a driver would load it"), "{said}");
    assert_eq!(checked.stderr, "");
}

#[test]
fn nothing_is_overwritten_and_names_must_fit() {
    let dir = tempfile::tempdir().unwrap();
    policy(dir.path(), &["new", "mine"]).good();
    let reported = policy(dir.path(), &["new", "mine"]).ends(3);
    assert!(reported.contains("mine exists already"), "{reported}");
    let reported = policy(dir.path(), &["new", "My_Policy"]).ends(3);
    assert!(
        reported.contains("`My_Policy` cannot be the name of a new policy"),
        "{reported}"
    );
}

#[test]
fn a_directory_without_a_crate_cannot_be_built() {
    let dir = tempfile::tempdir().unwrap();
    let reported = policy(dir.path(), &["build"]).ends(3);
    assert!(reported.contains("there is no Cargo.toml in ."), "{reported}");
}
