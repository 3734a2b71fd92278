//! `scupper policy ...` and `scupper demo` run `scupper-dev`, from the same folder or the PATH.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A program that prints its arguments, and ends with an unusual code.
const PRINTS: &str = "#!/bin/sh\nprintf '<%s>' \"$@\"\nexit 42\n";

/// `scupper` alone in a folder.
fn alone() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let program = folder.path().join("scupper");
    std::fs::hard_link(env!("CARGO_BIN_EXE_scupper"), &program).unwrap();
    (folder, program)
}

fn put(folder: &Path) {
    let program = folder.join("scupper-dev");
    std::fs::write(&program, PRINTS).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
}

fn run(program: &Path, path: &Path, args: &[&str]) -> Output {
    Command::new(program)
        .args(args)
        .env("PATH", path)
        .output()
        .unwrap()
}

#[test]
fn the_command_line_reaches_it_unchanged_and_its_exit_code_is_ours() {
    let (folder, program) = alone();
    put(folder.path());
    let elsewhere = tempfile::tempdir().unwrap();
    for args in [
        &["policy", "new", "mine", "--hooks"][..],
        &["--output", "json", "policy", "test", ".", "--story", "--", "-x"],
        &["policy", "build", "--help"],
        &["demo", "--slurm", "slurm.wasm", "-o", "json"],
        &["replay", "drain.gz", "--policy", "slurm=slurm.wasm"],
        &["-o", "json", "replay", "drain.gz", "--config", "scupper.yaml"],
        &["__complete", "policy", "new", "--"],
    ] {
        let ran = run(&program, elsewhere.path(), args);
        let wanted: String = args.iter().map(|arg| format!("<{arg}>")).collect();
        assert_eq!(String::from_utf8_lossy(&ran.stdout), wanted, "{ran:?}");
        assert_eq!(ran.status.code(), Some(42), "{ran:?}");
    }
}

#[test]
fn it_may_be_anywhere_in_the_path() {
    let (_folder, program) = alone();
    let elsewhere = tempfile::tempdir().unwrap();
    put(elsewhere.path());
    let ran = run(&program, elsewhere.path(), &["demo"]);
    assert_eq!(ran.status.code(), Some(42), "{ran:?}");
}

#[test]
fn without_it_the_error_says_where_to_get_it() {
    let (folder, program) = alone();
    let ran = run(&program, folder.path(), &["policy", "new", "mine"]);
    let error = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(3), "{ran:?}");
    assert!(
        error.starts_with("error: this command is part of scupper-dev"),
        "{error}"
    );
    for words in [
        "the archive of a release has both programs",
        "cargo install",
        "compile policies in Python",
    ] {
        assert!(error.contains(words), "{words}: {error}");
    }
    // Operators' commands need no other program.
    let ran = run(
        &program,
        folder.path(),
        &["policy", "list", "--state-dir", "/nowhere"],
    );
    assert!(
        !String::from_utf8_lossy(&ran.stderr).contains("scupper-dev"),
        "{ran:?}"
    );
    // Shells complete the commands that exist.
    let ran = run(&program, folder.path(), &["__complete", "policy", "new", "--"]);
    assert!(ran.status.success(), "{ran:?}");
}
