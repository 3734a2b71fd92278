//! Completion in a shell and for `kubectl scupper`, and `scupper version`.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use crate::limit::LIMIT;
use crate::rig::Rig;

/// The completions of `kubectl scupper WORDS<TAB>`.
fn offered(rig: &Rig, words: &[&str]) -> Vec<String> {
    let run = rig.run(&[&["__complete"], words].concat());
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:#?}");
    let mut lines: Vec<_> = run.stdout.lines().map(ToOwned::to_owned).collect();
    assert_eq!(lines.pop().as_deref(), Some(":4"), "{run:#?}");
    lines
}

#[test]
fn kubectl_is_offered_commands_flags_and_the_nodes_that_are_not_typed_yet() {
    let rig = Rig::new();
    let commands = offered(&rig, &["unc"]);
    assert_eq!(commands.len(), 1);
    assert!(
        commands[0].starts_with("uncordon\tReturn nodes to service"),
        "{commands:?}"
    );
    assert!(offered(&rig, &["drain", "--ignore"])[0].starts_with("--ignore-daemonsets"));
    assert_eq!(
        offered(&rig, &["drain", "--force", "wor"]),
        ["worker-1", "worker-2", "worker-3"]
    );
    assert_eq!(
        offered(&rig, &["status", "worker-2", "worker-"]),
        ["worker-1", "worker-3"]
    );
    assert!(offered(&rig, &["cancel", "other"]).is_empty());
}

#[test]
fn nodes_are_those_of_the_cluster_that_the_flags_name() {
    let rig = Rig::new();
    let file = rig.dir.path().join("kubeconfig");
    let elsewhere = ["--kubeconfig", file.to_str().unwrap(), "drain", "worker-1"];
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    let server = rig.api.url().trim_end_matches('/').to_owned();
    let other = rig.dir.path().join("other");
    let there = format!("http://{}", silent.local_addr().unwrap());
    std::fs::write(&other, text.replace(&server, &there)).unwrap();
    assert_eq!(
        offered(&rig, &["drain", elsewhere[0], elsewhere[1], "worker-1"]),
        ["worker-1"]
    );
    // A server that does not answer costs two seconds, and prints nothing.
    let begun = Instant::now();
    let other = format!("--kubeconfig={}", other.display());
    assert!(offered(&rig, &["drain", &other, "wor"]).is_empty());
    assert!(begun.elapsed() < LIMIT / 10, "{:?}", begun.elapsed());
    assert!(offered(&rig, &["drain", "--context=nowhere", "wor"]).is_empty());
}

#[test]
fn bash_completes_nodes_with_the_script_that_is_printed() {
    let rig = Rig::new();
    let program = Path::new(env!("CARGO_BIN_EXE_scupper"));
    let path = format!(
        "{}:{}",
        program.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let run = Command::new("bash")
        .args(["--noprofile", "--norc", "-c"])
        .arg(
            "source <(scupper completion bash); COMP_WORDS=(scupper drain worker-2 wor); COMP_CWORD=3; \
             _clap_complete_scupper scupper wor worker-2; printf '%s\\n' \"${COMPREPLY[@]}\"",
        )
        .env("PATH", path)
        .env("KUBECONFIG", rig.dir.path().join("kubeconfig"))
        .output()
        .unwrap();
    let reported = String::from_utf8(run.stdout.clone()).unwrap();
    let mut names: Vec<_> = reported.split_whitespace().collect();
    names.sort_unstable();
    assert_eq!(names, ["worker-1", "worker-3"], "{run:?}");
}

#[test]
fn each_shell_has_its_script() {
    let rig = Rig::new();
    for (shell, has) in [
        ("bash", "complete -o nospace"),
        ("zsh", "#compdef scupper"),
        ("fish", "complete --keep-order"),
        ("powershell", "Register-ArgumentCompleter"),
        ("kubectl", "exec kubectl scupper __complete \"$@\""),
    ] {
        let run = rig.run(&["completion", shell]);
        assert_eq!(run.code, Some(0), "{run:#?}");
        assert!(run.stdout.contains(has), "{shell}: {run:#?}");
    }
    assert_eq!(rig.run(&["completion", "tcsh"]).code, Some(2));
}

#[test]
fn version_names_the_program_and_the_interfaces_that_it_speaks() {
    let rig = Rig::new();
    let mark = rig.api.mark();
    let image = [("SCUPPER_IMAGE", "registry/scupper:1")];
    let run = rig.start_in(&["version", "-o", "json"], &image).ended();
    let reported: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(reported["client"], env!("CARGO_PKG_VERSION"));
    assert_eq!(reported["image"], "registry/scupper:1");
    // Cargo alone built it for this test. Sources outside of a repository have no commit.
    let commit = reported["commit"].as_str().unwrap_or_default();
    assert_eq!(commit, env!("SCUPPER_COMMIT"));
    assert!(
        std::env::var("SCUPPER_COMMIT").is_ok() || !is_repository() || is_commit(commit),
        "{commit}"
    );
    assert_eq!(reported["lifecycleApi"], "lifecycle.k8s.io/v1alpha1");
    assert_eq!(reported["kubeletPlugin"], "v1alpha1.SLMPlugin");
    let wit = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../wit/types.wit")).unwrap();
    let package = format!("package {}.", reported["wit"].as_str().unwrap());
    assert!(wit.starts_with(&package), "{package}");
    let run = rig.run(&["version", "--output=yaml"]);
    assert!(run.stdout.contains("\nwit: scupper:drain@"), "{run:#?}");
    let run = rig.run(&["version"]);
    assert!(run.stdout.starts_with("Client:          "), "{run:#?}");
    assert!(rig.api.requests_since(mark).is_empty());
}

fn git(args: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    let git = git.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let output = git.args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).unwrap();
    output.status.success().then_some(text)
}

/// Not only unpacked into one.
fn is_repository() -> bool {
    git(&["rev-parse", "--show-prefix"]).is_some_and(|prefix| prefix.trim().is_empty())
}

/// Whether this repository has it.
fn is_commit(named: &str) -> bool {
    let commit = named.strip_suffix("-dirty").unwrap_or(named);
    git(&["cat-file", "-e", &format!("{commit}^{{commit}}")]).is_some()
}

#[test]
fn each_command_has_a_man_page_with_the_texts_of_its_help() {
    let rig = Rig::new();
    let pages = rig.dir.path().join("pages/man1");
    let run = rig.run(&["man", pages.to_str().unwrap()]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), ""), "{run:#?}");
    let page = |name: &str| std::fs::read_to_string(pages.join(name)).unwrap();
    assert!(page("scupper-drain.1").contains("Continue a drain whose process is gone"));
    assert!(page("scupper.1").contains("API server unreachable"));
    for hidden in ["scupper-compile-policy.1", "scupper-man.1"] {
        assert!(!pages.join(hidden).exists(), "{hidden}");
    }
}
