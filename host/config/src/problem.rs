//! The errors of a configuration file.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use scupper_policy_spec::PolicySpec;
use thiserror::Error;

use super::Configuration;
use super::place::{FieldPath, Position};
use super::read::MOST_BYTES;

/// The most problems reported at once; a user with more fixes these first.
const TOLD: usize = 100;

/// The fields of a policy that loading it needs.
const LOADED_BY: [&str; 5] = ["name", "module", "sha256", "grants", "config"];

/// Why a configuration file cannot be used.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("the configuration {} cannot be read", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// It is a directory, a pipe or a device.
    #[error("the configuration {} is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// It is longer than any valid configuration.
    #[error("the configuration {} has more than {} KiB, the most it may have", .0.display(), MOST_BYTES >> 10)]
    TooLarge(PathBuf),
    /// It contains errors.
    #[error("{}", reported(file, problems))]
    Wrong {
        /// The file.
        file: PathBuf,
        /// The errors, in the order of the file. Never empty.
        problems: Vec<Problem>,
        /// The policies that can be loaded all the same, to see what else is wrong.
        readable: Vec<PolicySpec>,
    },
}

/// One error and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Its line, from one.
    pub line: usize,
    /// Its column, in characters, from one.
    pub column: usize,
    /// Its field, such as `policies[0].grants.http`; empty: all of the file.
    pub field: String,
    /// The error and the remedy.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.line, self.column)?;
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)
    }
}

fn reported(file: &Path, problems: &[Problem]) -> String {
    let mut lines: Vec<String> = problems
        .iter()
        .take(TOLD)
        .map(|problem| format!("{}:{problem}", file.display()))
        .collect();
    if let Some(more) = problems.len().checked_sub(TOLD).filter(|more| *more > 0) {
        lines.push(format!("{}: and {more} problems more", file.display()));
    }
    lines.join("\n")
}

/// Collects problems, to report all of them at once.
#[derive(Default)]
pub(super) struct Problems(Vec<Problem>);

impl Problems {
    pub(super) fn add(&mut self, at: Position, path: &FieldPath, message: impl Into<String>) {
        self.0.push(Problem {
            line: at.line,
            column: at.column,
            field: path.to_string(),
            message: message.into(),
        });
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The configuration, unless there is a problem.
    pub(super) fn end(
        mut self,
        file: &Path,
        configuration: Configuration,
    ) -> Result<Configuration, ConfigError> {
        if self.0.is_empty() {
            return Ok(configuration);
        }
        let unreadable = self.unreadable();
        let policies = configuration.policies.into_iter().enumerate();
        let readable = policies
            .filter(|(place, policy)| !policy.name.is_empty() && !unreadable.contains(place))
            .map(|(_, policy)| policy)
            .collect();
        self.0.sort_by_key(|problem| (problem.line, problem.column));
        Err(ConfigError::Wrong {
            file: file.to_owned(),
            problems: self.0,
            readable,
        })
    }

    /// The positions of policies with a problem in a field that loading them needs.
    fn unreadable(&self) -> BTreeSet<usize> {
        let places = self.0.iter().filter_map(|problem| {
            let (place, field) = problem.field.strip_prefix("policies[")?.split_once(']')?;
            let field = field.strip_prefix('.')?.split(['.', '[']).next()?;
            LOADED_BY.contains(&field).then(|| place.parse().ok()).flatten()
        });
        places.collect()
    }
}
