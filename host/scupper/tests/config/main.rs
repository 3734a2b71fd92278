//! The configuration file: what it says reaches the policies, and everything that is wrong in it is told at once, each
//! with its line, its column and its field.
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

/// What stands at the beginning of every configuration. The lines after it begin with the third.
pub(crate) const HEAD: &str = "apiVersion: scupper.dev/v1alpha1\nkind: Configuration\n";

/// The configuration that this text is, after the head.
#[track_caller]
pub(crate) fn good(rest: &str) -> Configuration {
    match read_text(Path::new("/etc/scupper/scupper.yaml"), &format!("{HEAD}{rest}")) {
        Ok(configuration) => configuration,
        Err(error) => panic!("{error}"),
    }
}

/// The problems of this text, after the head.
#[track_caller]
pub(crate) fn problems(rest: &str) -> Vec<Problem> {
    problems_of(&format!("{HEAD}{rest}"))
}

/// The problems of this text as it is.
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
