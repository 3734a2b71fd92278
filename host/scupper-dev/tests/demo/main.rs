//! The output of the demos: what each shows at its end, and their narration.
#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests")]

mod forecast;
mod narration;
mod nvsentinel;
#[path = "../../../scupper/tests/support/skip.rs"]
mod skip;
mod slurm;
mod stuck;

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use xtask::policies;
use xtask::workspace::Workspace;

/// Runs `scupper demo` with these arguments, which must succeed; returns what it prints.
fn play(arguments: &[&str]) -> String {
    let begun = Instant::now();
    let demo = Command::new(env!("CARGO_BIN_EXE_scupper-dev"))
        .arg("demo")
        .args(arguments)
        .output()
        .unwrap();
    let took = begun.elapsed();
    let text = String::from_utf8(demo.stdout).unwrap();
    let log = String::from_utf8(demo.stderr).unwrap();
    assert!(demo.status.success(), "{text}\n{log}");
    assert!(
        took < Duration::from_secs(300),
        "a demo takes seconds, and on a busy machine not {took:?}"
    );
    text
}

/// Builds these policies; returns the file of the first.
fn built(names: &[&str]) -> PathBuf {
    let names: Vec<_> = names.iter().map(ToString::to_string).collect();
    let built = policies::build(&Workspace::read().unwrap(), &names, None).unwrap();
    built.first().unwrap().file.clone()
}

/// Compares the demo's own narration with the accepted one.
#[track_caller]
fn narrated(name: &str, text: &str) {
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, narration::of(text));
    });
}
