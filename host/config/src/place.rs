//! The place of a value: in the file, and in the tree of fields.

use std::fmt::{self, Write};

use scupper_common::text::one_line;

/// Bytes of a key that are shown.
const KEY_BYTES: usize = 80;

/// A place in the file. Both count from one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub(super) line: usize,
    pub(super) column: usize,
}

/// The path from the root to a field: `policies[0].grants.http`.
#[derive(Clone, Debug, Default)]
pub(super) struct FieldPath(String);

impl FieldPath {
    /// The field below this one.
    pub(super) fn key(&self, key: &str) -> Self {
        let mut path = self.0.clone();
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if !key.is_empty() && key.len() <= KEY_BYTES && key.chars().all(plain) {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(key);
        } else {
            // Writing to a string cannot fail.
            let _written = write!(path, "[\"{}\"]", one_line(key, KEY_BYTES)).is_ok();
        }
        Self(path)
    }

    /// The element of the list.
    pub(super) fn item(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
