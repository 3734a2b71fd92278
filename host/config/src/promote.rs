//! `scupper policy promote`: the lines of a configuration file that change when a shadow becomes active. Nothing is written.
//!
//! The text is edited and not printed anew, so that comments and the order of keys stay. The edited text is read again: if
//! it does not say what it should, the change is left to the operator.

use std::path::{Path, PathBuf};

use scupper_common::text::{nearest, one_line};
use scupper_policy_spec::{PolicyMode, PolicySpec};
use thiserror::Error;

use super::diff::unified;
use super::document::{self, Entry, Node};
use super::problem::Problems;
use super::{ConfigError, read, read_text};

/// Bytes of a name that are shown.
const NAME_BYTES: usize = 80;

/// The change that makes a shadow active.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promotion {
    /// The policy that goes; `None`: the shadow comes in addition.
    pub replaces: Option<String>,
    /// The change of the file, as a unified diff.
    pub diff: String,
}

/// Why a policy cannot be promoted.
#[derive(Debug, Error)]
pub enum PromoteError {
    /// The file is wrong as it is.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// It has no policy of this name.
    #[error("{}: policies: there is no policy `{name}`; {hint}", file.display())]
    Unknown {
        /// The file.
        file: PathBuf,
        /// The name.
        name: String,
        /// What to do.
        hint: String,
    },
    /// The policy is active.
    #[error("{}:{line}: {field}: policy `{name}` is active already; only one with `mode: shadow` can be promoted", file.display())]
    Active {
        /// The file.
        file: PathBuf,
        /// The line of the policy, from one.
        line: usize,
        /// The field, such as `policies[0].mode`.
        field: String,
        /// The policy.
        name: String,
    },
    /// The lines of the policy hold more than one key each, so that none of them can be removed.
    #[error("{}:{line}: {field}: cannot edit this policy: several keys share a line. By hand: {steps}", file.display())]
    ByHand {
        /// The file.
        file: PathBuf,
        /// The line of the policy, from one.
        line: usize,
        /// The field, such as `policies[0]`.
        field: String,
        /// What to do.
        steps: String,
    },
}

/// The change of a configuration file that makes a shadow active. With `instead-of` the policy that it stands for goes, and
/// the shadow takes its name, because nodes name policies that must still undo something. Blocks.
pub fn promote(file: &Path, name: &str) -> Result<Promotion, PromoteError> {
    let configuration = read(file)?;
    let specs = &configuration.policies;
    let Some(index) = specs.iter().position(|spec| spec.name == name) else {
        return Err(unknown(file, name, specs));
    };
    let root = document::read(&configuration.text, &mut Problems::default());
    let policies = root.as_ref().and_then(|root| root.get("policies"));
    let nodes = policies.map(Node::items).unwrap_or_default();
    let line = nodes.get(index).map_or(1, |node| node.at.line);
    let mode = specs.get(index).map(|spec| &spec.mode);
    let Some(PolicyMode::Shadow { instead_of }) = mode else {
        return Err(PromoteError::Active {
            file: file.to_owned(),
            line,
            field: format!("policies[{index}].mode"),
            name: one_line(name, NAME_BYTES),
        });
    };
    let mut edit = Edit::of(&configuration.text);
    if let Some(node) = nodes.get(index) {
        edit.promote(node, instead_of.as_deref());
    }
    let replaced = instead_of.as_ref();
    let replaced = replaced.and_then(|name| specs.iter().position(|spec| spec.name == *name));
    if let Some(replaced) = replaced {
        edit.remove_item(nodes, replaced, root.as_ref());
    }
    let expected = promoted(specs, index, instead_of.as_ref());
    if is_what_it_should_be(file, &edit.text(), &expected) {
        let diff = unified(&file.display().to_string(), &configuration.text, &edit.lines);
        return Ok(Promotion {
            replaces: instead_of.clone(),
            diff,
        });
    }
    Err(PromoteError::ByHand {
        file: file.to_owned(),
        line,
        field: format!("policies[{index}]"),
        steps: steps(instead_of.as_deref()),
    })
}

fn unknown(file: &Path, name: &str, specs: &[PolicySpec]) -> PromoteError {
    let shadows = specs.iter().filter(|spec| spec.mode.is_shadow());
    let shadows: Vec<_> = shadows.map(|spec| spec.name.as_str()).collect();
    let hint = match (nearest(name, shadows.iter().copied()), &shadows[..]) {
        (Some(near), _) => format!("did you mean {near}?"),
        (None, []) => "no policy has `mode: shadow`".to_owned(),
        (None, shadows) => format!("name one of the shadows: {}", shadows.join(", ")),
    };
    PromoteError::Unknown {
        file: file.to_owned(),
        name: one_line(name, NAME_BYTES),
        hint,
    }
}

fn steps(instead_of: Option<&str>) -> String {
    match instead_of {
        None => "remove `mode: shadow` from it".to_owned(),
        Some(replaced) => format!(
            "remove the policy {replaced}, remove `mode: shadow` and `instead-of: {replaced}` from this one, and name it \
             {replaced}"
        ),
    }
}

/// The policies after the change.
fn promoted(specs: &[PolicySpec], index: usize, instead_of: Option<&String>) -> Vec<PolicySpec> {
    let changed = specs
        .iter()
        .enumerate()
        .filter_map(|(place, spec)| match place == index {
            true => Some(PolicySpec {
                name: instead_of.unwrap_or(&spec.name).clone(),
                mode: PolicyMode::Active,
                ..spec.clone()
            }),
            false => (Some(&spec.name) != instead_of).then(|| spec.clone()),
        });
    changed.collect()
}

/// Other shadows may stand for the same policy, and still do: it keeps its name.
fn is_what_it_should_be(file: &Path, text: &str, expected: &[PolicySpec]) -> bool {
    // Every field counts, including future ones.
    read_text(file, text).is_ok_and(|read| format!("{:?}", read.policies) == format!("{expected:?}"))
}

/// The lines of a text, of which some go and some change.
struct Edit {
    /// `None`: the line goes.
    lines: Vec<Option<String>>,
}

impl Edit {
    fn of(text: &str) -> Self {
        Self {
            lines: text.split('\n').map(|line| Some(line.to_owned())).collect(),
        }
    }

    fn text(&self) -> String {
        let lines: Vec<_> = self.lines.iter().flatten().map(String::as_str).collect();
        lines.join("\n")
    }

    fn line(&mut self, number: usize) -> Option<&mut Option<String>> {
        self.lines.get_mut(number.checked_sub(1)?)
    }

    /// Makes a policy active: under the name of the one that it stands for.
    fn promote(&mut self, node: &Node, instead_of: Option<&str>) {
        let named = |key: &str| node.entries().iter().find(move |entry| entry.key == key);
        if let (Some(name), Some(new)) = (named("name"), instead_of) {
            self.rename(name, new);
        }
        for entry in [named("mode"), named("instead-of")].into_iter().flatten() {
            self.remove_entry(node, entry);
        }
    }

    /// A name has no character that needs an escape.
    fn rename(&mut self, entry: &Entry, new: &str) {
        let (Some(old), value) = (entry.value.text(), &entry.value) else {
            return;
        };
        if let Some(Some(line)) = self.line(value.at.line) {
            let before: String = line.chars().take(value.at.column - 1).collect();
            let after: String = line.chars().skip(value.at.column - 1).collect();
            *line = before + &after.replacen(old, new, 1);
        }
    }

    /// Removes the line of a key. If the dash of the list stands there, it moves to the next key.
    fn remove_entry(&mut self, node: &Node, entry: &Entry) {
        let Some(gone) = self.line(entry.at.line).and_then(Option::take) else {
            return;
        };
        let before: String = gone.chars().take(entry.at.column - 1).collect();
        let later = |other: &&Entry| other.at.line > entry.at.line;
        if !before.contains('-') {
            return;
        }
        for next in node.entries().iter().filter(later) {
            if let Some(Some(line)) = self.line(next.at.line) {
                *line = before + line.trim_start();
                return;
            }
        }
    }

    /// Removes a policy from the list: its lines up to the next one, without comments and blank lines before that.
    fn remove_item(&mut self, nodes: &[Node], index: usize, root: Option<&Node>) {
        let Some(first) = nodes.get(index).map(|node| node.at.line) else {
            return;
        };
        let next = nodes.get(index + 1).map(|node| node.at.line);
        let below = root.map(Node::entries).unwrap_or_default().iter();
        let below = below.map(|entry| entry.at.line).find(|line| *line > first);
        let end = next.or(below).unwrap_or(self.lines.len() + 1);
        let is_empty = |line: &Option<String>| {
            line.as_ref()
                .is_none_or(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
        };
        let own = self.lines.get(first - 1..end - 1).unwrap_or_default();
        let count = own
            .iter()
            .rposition(|line| !is_empty(line))
            .map_or(0, |last| last + 1);
        for line in self.lines.iter_mut().skip(first - 1).take(count) {
            *line = None;
        }
    }
}

#[cfg(test)]
#[path = "promote/tests.rs"]
mod tests;
