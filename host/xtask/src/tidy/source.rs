//! The checked files, and the findings.

use std::{fmt, fs, path::Path, process::Command};

use anyhow::{Context, Result, bail};

use super::code::code_only;

/// A text file of the repository.
#[derive(Debug)]
pub struct Source {
    /// Its path from the repository's root.
    pub path: String,
    /// Its content.
    pub text: String,
    /// For Rust files the same without comments and contents of strings, with the same lines.
    pub(super) code: String,
}

/// A place where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule's name.
    pub rule: &'static str,
    /// The file's path.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong and what would be right.
    pub message: String,
}

impl Source {
    /// A file of this path and text.
    pub fn new(path: &str, text: &str) -> Self {
        let code = if path.ends_with(".rs") {
            code_only(text)
        } else {
            String::new()
        };
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            code,
        }
    }

    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether a program generated it, by its first lines.
    pub(super) fn is_generated(&self) -> bool {
        self.text.lines().take(3).any(|line| line.contains("@generated"))
    }

    /// Whether only tests use it.
    pub(super) fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs")
            || self
                .path
                .split('/')
                .any(|part| part == "tests" || part == "benches")
    }

    pub(super) fn finding(&self, rule: &'static str, line: usize, message: impl Into<String>) -> Finding {
        Finding {
            rule,
            path: self.path.clone(),
            line,
            message: message.into(),
        }
    }

    /// A finding for each line for which the check returns a message.
    pub(super) fn lines(
        &self,
        rule: &'static str,
        text: &str,
        mut check: impl FnMut(&str) -> Option<String>,
    ) -> Vec<Finding> {
        let found = text.lines().enumerate();
        let found = found.filter_map(|(at, line)| Some(self.finding(rule, at + 1, check(line)?)));
        found.collect()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {} [{}]", self.path, self.line, self.message, self.rule)
    }
}

/// Reads tracked and new files, but not those that git ignores. Skips files that are not text.
pub fn read(root: &Path) -> Result<Vec<Source>> {
    let listed = Command::new("git")
        .current_dir(root)
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .context("start `git ls-files`")?;
    if !listed.status.success() {
        bail!(
            "`git ls-files` failed in {}: {}",
            root.display(),
            String::from_utf8_lossy(&listed.stderr)
        );
    }
    let paths = String::from_utf8(listed.stdout).context("read the answer of `git ls-files`")?;
    let paths = paths.split('\0').filter(|path| !path.is_empty());
    // A deleted file is still listed until the commit.
    let files = paths.filter(|path| root.join(path).is_file());
    files
        .map(|path| {
            let bytes = fs::read(root.join(path)).with_context(|| format!("read {path}"))?;
            Ok(String::from_utf8(bytes).ok().map(|text| Source::new(path, &text)))
        })
        .filter_map(Result::transpose)
        .collect()
}
