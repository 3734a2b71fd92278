//! What the compiler's child says when there is no native code: one line of JSON on standard error, of which the driver
//! makes the same errors again.

use serde::{Deserialize, Serialize};

use super::SourceError;

/// Bytes of a complaint that are read; its texts have less.
pub(super) const COMPLAINT_BYTES: u64 = 4096;

/// Why there is no native code.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Complaint {
    /// The component is no policy.
    Source(SourceError),
    /// It became too much code.
    TooLarge,
    /// The compiler refused it, or something of the child failed.
    Other(String),
}

impl Complaint {
    /// As it is written. What cannot be written is a bug, and told as such by the empty line.
    pub(super) fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What was read, if it is one.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_of_a_component_comes_through_as_it_is() {
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
            let told = error.to_string();
            let kind = std::mem::discriminant(&error);
            let line = Complaint::Source(error).line();
            assert!(!line.contains('\n'), "{line}");
            let Some(Complaint::Source(read)) = Complaint::read(line.as_bytes()) else {
                panic!("{line}")
            };
            assert_eq!((read.to_string(), std::mem::discriminant(&read)), (told, kind));
        }
    }

    #[test]
    fn the_longest_complaint_is_read_whole() {
        let names = ["\"\\".repeat(50), "n".repeat(100)].concat();
        let names = vec![names; 9].join(", ");
        let line = Complaint::Source(SourceError::NotAPolicy { exports: names }).line();
        assert!((line.len() as u64) < COMPLAINT_BYTES, "{} bytes", line.len());
    }

    #[test]
    fn anything_else_is_none() {
        for other in ["", "no", "{\"source\":\"read\"}", "{\"source\":{\"read\":null}}"] {
            assert!(Complaint::read(other.as_bytes()).is_none(), "{other}");
        }
    }
}
