//! What several tests of this folder need: objects on the API server, configuration files, waiting.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::limit::LIMIT;
use super::testbed::Testbed;

pub(super) fn apply(testbed: &Testbed, object: &Value) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), object.to_string()).unwrap();
    testbed.kubectl(&["apply", "-f", file.path().to_str().unwrap()]);
}

pub(super) fn merge(testbed: &Testbed, of: &[&str], patch: &Value) {
    let patch = patch.to_string();
    testbed.kubectl(&[&["patch"], of, &["--type=merge", "-p", &patch]].concat());
}

#[track_caller]
pub(super) fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LIMIT, "{what}: in vain");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Runs `scupper`, and returns its exit code and what it prints.
pub(super) fn scupper(testbed: &Testbed, args: &[&str]) -> (Option<i32>, String) {
    let (code, text, _) = scupper_with_errors(testbed, args);
    (code, text)
}

/// The same, and its errors.
#[expect(clippy::print_stdout, reason = "the output of a failed test shows it")]
pub(super) fn scupper_with_errors(testbed: &Testbed, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scupper"));
    let command = command.args(args).env("KUBECONFIG", testbed.kubeconfig());
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    println!("$ scupper {}\n{text}{errors}", args.join(" "));
    (output.status.code(), text, errors)
}

/// A configuration file without policies.
pub(super) struct Config(tempfile::NamedTempFile);

impl Config {
    /// `drain`: the settings of that key, in one line.
    pub(super) fn with(drain: &str) -> Self {
        let file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
        let head = "apiVersion: scupper.dev/v1alpha1\nkind: Configuration\npolicies: []\n";
        std::fs::write(file.path(), format!("{head}drain: {drain}\n")).unwrap();
        Self(file)
    }

    pub(super) fn path(&self) -> &str {
        self.0.path().to_str().unwrap()
    }
}
