//! The compiler's report on standard error. If there is no native code it is one line of JSON, from which the driver
//! rebuilds the same error; before it comes one line about the rights that the child could not drop.

use scupper_common::text::one_line;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{CacheError, CompileError, SourceError};

/// Why there is no native code.
#[derive(Debug, Error)]
pub enum CompileFault {
    /// The file is not a policy.
    #[error(transparent)]
    Source(SourceError),
    /// It cannot be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The attempt cannot be marked.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The task died.
    #[error("compiling it was interrupted")]
    BrokenOff,
}

/// Longest description of the kernel's missing mechanisms, in bytes.
const LACKING_BYTES: usize = 512;

/// Bytes of the report that the driver reads; valid reports are shorter.
pub(crate) const REPORT_BYTES: u64 = 8192;

/// The confinement mechanisms that the kernel lacks.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Notice {
    /// The mechanisms, with reasons.
    Unconfined(Vec<String>),
}

/// Formats the line about missing mechanisms.
pub(crate) fn unconfined_line(lacking: Vec<String>) -> String {
    serde_json::to_string(&Notice::Unconfined(lacking)).unwrap_or_default()
}

/// Splits the line about missing mechanisms, if there is one, from the rest.
pub(crate) fn split_unconfined(said: &[u8]) -> (Option<String>, &[u8]) {
    let end = said.iter().position(|byte| *byte == b'\n').unwrap_or(said.len());
    let (first, rest) = said.split_at(end);
    match serde_json::from_slice(first) {
        Ok(Notice::Unconfined(lacking)) => (
            Some(one_line(&lacking.join(" and "), LACKING_BYTES)),
            rest.get(1..).unwrap_or_default(),
        ),
        Err(_) => (None, said),
    }
}

/// Why there is no native code.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ChildReport {
    /// The component is not a policy.
    Source(SourceError),
    /// Its native code is too large.
    TooLarge,
    /// The compiler refused it, or the child itself failed.
    Other(String),
}

impl ChildReport {
    /// The report as one line. A report that cannot be serialized is a bug, and becomes an empty line.
    pub(crate) fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Parses a report.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_of_a_component_arrives_unchanged() {
        let words = "größer \"x\" \\n".to_owned();
        let all = [
            SourceError::NotWasm,
            SourceError::Native,
            SourceError::CoreModule,
            SourceError::Idle,
            SourceError::TooLarge,
            SourceError::Invalid(words.clone()),
            SourceError::NotAPolicy {
                exports: words.clone(),
            },
            SourceError::Version {
                theirs: words.clone(),
            },
            SourceError::Wasi {
                imports: words.clone(),
            },
            SourceError::System {
                imports: words.clone(),
            },
            SourceError::Imports { imports: words },
        ];
        for error in all {
            let reported = error.to_string();
            let kind = std::mem::discriminant(&error);
            let line = ChildReport::Source(error).line();
            assert!(!line.contains('\n'), "{line}");
            let Some(ChildReport::Source(read)) = ChildReport::read(line.as_bytes()) else {
                panic!("{line}")
            };
            assert_eq!(
                (read.to_string(), std::mem::discriminant(&read)),
                (reported, kind)
            );
        }
    }

    #[test]
    fn the_longest_report_is_read_completely() {
        let names = ["\"\\".repeat(50), "n".repeat(100)].concat();
        let names = vec![names; 9].join(", ");
        let line = ChildReport::Source(SourceError::NotAPolicy { exports: names }).line();
        assert!((line.len() as u64) < REPORT_BYTES, "{} bytes", line.len());
    }

    #[test]
    fn missing_confinement_is_separated_from_the_report() {
        let report = ChildReport::TooLarge.line();
        let line = unconfined_line(vec![
            "Landlock (none)".to_owned(),
            "seccomp (\u{1b}no)".to_owned(),
        ]);
        let both = format!("{line}\n{report}\n");
        let (lacking, rest) = split_unconfined(both.as_bytes());
        assert_eq!(
            lacking.as_deref(),
            Some(r"Landlock (none) and seccomp (\u{1b}no)")
        );
        assert!(matches!(ChildReport::read(rest), Some(ChildReport::TooLarge)));
        assert_eq!(split_unconfined(line.as_bytes()).1, b"");
        for other in [report.as_str(), "", "\n", "memory allocation of 1 bytes failed\n"] {
            assert_eq!(split_unconfined(other.as_bytes()), (None, other.as_bytes()));
        }
    }

    #[test]
    fn anything_else_is_none() {
        for other in ["", "no", "{\"source\":\"read\"}", "{\"source\":{\"read\":null}}"] {
            assert!(ChildReport::read(other.as_bytes()).is_none(), "{other}");
        }
    }
}
