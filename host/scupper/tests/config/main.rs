//! The configuration file: its settings reach the policies, and all its problems are reported at once, each with its
//! line, its column and its field.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    dead_code,
    reason = "helpers of tests, which fail by panicking, and of which each file uses its part"
)]

mod examples;
mod grants;
#[path = "../support/guests.rs"]
mod guests;
mod hostile;
#[path = "../support/limit.rs"]
mod limit;
mod program;
#[path = "../support/programs.rs"]
mod programs;
#[path = "../support/mod.rs"]
mod support;
mod valid;
mod wrong;

use std::path::Path;

use scupper_config::{ConfigError, Configuration, Problem, read_text};

/// The head of every configuration. The text after it begins with the third line.
pub(crate) const HEAD: &str = "apiVersion: scupper.dev/v1alpha1\nkind: Configuration\n";

/// The configuration with this text after the head.
#[track_caller]
pub(crate) fn good(rest: &str) -> Configuration {
    match read_text(Path::new("/etc/scupper/scupper.yaml"), &format!("{HEAD}{rest}")) {
        Ok(configuration) => configuration,
        Err(error) => panic!("{error}"),
    }
}

/// The problems of this text after the head.
#[track_caller]
pub(crate) fn problems(rest: &str) -> Vec<Problem> {
    problems_of(&format!("{HEAD}{rest}"))
}

/// The problems of this text alone.
#[track_caller]
pub(crate) fn problems_of(text: &str) -> Vec<Problem> {
    match read_text(Path::new("/etc/scupper/scupper.yaml"), text) {
        Ok(configuration) => panic!("nothing is wrong with it: {configuration:#?}"),
        Err(ConfigError::Wrong { problems, .. }) => {
            assert!(!problems.is_empty());
            problems
        }
        Err(error) => panic!("{error}"),
    }
}
