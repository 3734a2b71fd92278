//! Errors in a policy's description and in its hooks' answers that their types allow: a name that is a path, an invalid
//! schema, an empty text. The host passes on none of it; the author sees each error.

use std::fmt;

use scupper_common::text::{is_plain, one_line};
use serde_json::Value;

use super::schema;
use crate::wit::bindings::exports::scupper::drain::{about, hooks};

/// Bytes of a name and of a version.
const NAME_BYTES: usize = 63;
/// Bytes of a summary that users see.
const SUMMARY_BYTES: usize = 256;
/// Longest accepted schema, in bytes.
const SCHEMA_BYTES: usize = 64 * 1024;
/// Bytes of a wrong value that an error shows.
const SHOWN_BYTES: usize = 60;

/// One error, with the field of `wit/` that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The field, such as `name` or `waiting-for[2].what`.
    pub field: String,
    /// The error, and how to correct it.
    pub message: String,
}

impl Flaw {
    fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
        }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.field, self.message)
    }
}

/// All errors of a description.
pub(crate) fn of_description(about: &about::Description) -> Vec<Flaw> {
    let wrong = |field: &str, rule: &str, text: &str| {
        let shown = one_line(text, SHOWN_BYTES);
        Flaw::new(field, format!("must be {rule}, not `{shown}`"))
    };
    let mut flaws = Vec::new();
    if !is_name(&about.name) {
        let rule = "1 to 63 letters, digits, '-', '_' and '.', with a letter or a digit first and last";
        flaws.push(wrong("name", rule, &about.name));
    }
    if !is_version(&about.version) {
        let rule = "1 to 63 letters, digits, '-', '_', '.' and '+', such as 1.2.0";
        flaws.push(wrong("version", rule, &about.version));
    }
    let summary = about.summary.as_str();
    if is_blank(summary) || summary.len() > SUMMARY_BYTES || !is_plain(summary) {
        let rule = "one sentence on one line, of at most 256 bytes";
        flaws.push(wrong("summary", rule, summary));
    }
    flaws.extend(schema_flaw(&about.config_schema).map(|message| Flaw::new("config-schema", message)));
    flaws
}

/// All errors of a hook's answer.
pub(crate) fn of_answer(outcome: &hooks::Outcome) -> Vec<Flaw> {
    let mut flaws = Vec::new();
    match outcome {
        hooks::Outcome::Done | hooks::Outcome::Failed(_) => {}
        hooks::Outcome::Pending(pending) => {
            if is_blank(&pending.progress) {
                flaws.push(Flaw::new("pending.progress", "is empty; say where it stands"));
            }
            for (at, on) in pending.waiting_for.iter().enumerate() {
                if is_blank(&on.what) {
                    let field = format!("pending.waiting-for[{at}].what");
                    flaws.push(Flaw::new(field, "is empty; name whom or what it waits for"));
                } else if is_blank(&on.detail) {
                    let field = format!("pending.waiting-for[{at}].detail");
                    flaws.push(Flaw::new(field, "is empty; say what is awaited of it"));
                }
            }
        }
    }
    flaws
}

/// The error of a schema; an empty schema means that there is no configuration.
fn schema_flaw(text: &str) -> Option<String> {
    if text.is_empty() {
        return None;
    }
    if text.len() > SCHEMA_BYTES {
        return Some(format!("has {} bytes, and {SCHEMA_BYTES} are kept", text.len()));
    }
    match serde_json::from_str::<Value>(text) {
        Ok(value) => schema::flaw(&value).map(|flaw| format!("is not a JSON schema: {flaw}")),
        Err(error) => Some(format!("is not JSON: {error}")),
    }
}

/// Whether a policy may have this name.
pub(crate) fn is_name(text: &str) -> bool {
    is_word(text, b"-_.") && !text.contains("..")
}

/// Whether a schema can be passed on.
pub(crate) fn is_schema(text: &str) -> bool {
    schema_flaw(text).is_none()
}

/// Whether it has no readable character.
pub(crate) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn is_version(text: &str) -> bool {
    is_word(text, b"-_.+")
}

fn is_word(text: &str, others: &[u8]) -> bool {
    let edge = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || others.contains(&byte);
    text.len() <= NAME_BYTES
        && edge(text.bytes().next())
        && edge(text.bytes().next_back())
        && text.bytes().all(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(name: &str, version: &str, summary: &str, schema: &str) -> about::Description {
        about::Description {
            name: name.to_owned(),
            version: version.to_owned(),
            summary: summary.to_owned(),
            state_version: 0,
            wants: Vec::new(),
            config_schema: schema.to_owned(),
        }
    }

    fn fields(flaws: &[Flaw]) -> Vec<&str> {
        flaws.iter().map(|flaw| flaw.field.as_str()).collect()
    }

    #[test]
    fn a_valid_description_has_no_flaw() {
        for name in ["slurm", "keep-labelled", "My_policy.2", "x", &"x".repeat(63)] {
            let about = about(name, "1.2.0-rc.1+build", "Keeps größere pods.", "");
            assert_eq!(of_description(&about), [], "{name}");
        }
    }

    #[test]
    fn a_name_cannot_be_a_path_or_move_the_cursor() {
        for name in [
            "",
            " ",
            "../../x",
            "a/b",
            "a..b",
            ".a",
            "a\u{1b}[2J",
            "a\nb",
            "\u{202e}a",
            &"x".repeat(64),
        ] {
            let about = about(name, "1", "s", "");
            assert_eq!(fields(&of_description(&about)), ["name"], "{name:?}");
        }
        let flaws = of_description(&about("\u{1b}[2J", "", " \n", "nonsense"));
        assert_eq!(fields(&flaws), ["name", "version", "summary", "config-schema"]);
        assert!(flaws.iter().all(|flaw| is_plain(&flaw.to_string())), "{flaws:?}");
    }

    #[test]
    fn an_answer_reports_its_progress_and_its_blockers() {
        let on = |what: &str, detail: &str| hooks::WaitingOn {
            what: what.to_owned(),
            detail: detail.to_owned(),
            since: None,
        };
        let pending = |progress: &str, waiting_for| {
            hooks::Outcome::Pending(hooks::Pending {
                state: Vec::new(),
                again_after: 1000,
                progress: progress.to_owned(),
                waiting_for,
            })
        };
        assert_eq!(of_answer(&pending("waits", vec![on("job-1", "to end")])), []);
        let flaws = of_answer(&pending(
            " ",
            vec![on("job-1", "to end"), on("", "x"), on("job-2", "\n")],
        ));
        assert_eq!(
            fields(&flaws),
            [
                "pending.progress",
                "pending.waiting-for[1].what",
                "pending.waiting-for[2].detail"
            ]
        );
    }
}
