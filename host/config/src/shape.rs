//! The shapes of fields. Both the check and the published JSON Schema are made of them, so they agree.

use super::drain;
use super::rules::Rule;

/// The shape of a value.
#[derive(Debug)]
pub(super) enum Shape {
    /// Text that follows a rule.
    Text(&'static Rule),
    /// A whole number.
    Whole { least: i64, most: i64 },
    /// `true` or `false`.
    Bool,
    /// Bytes, such as `64Mi`.
    Quantity { least: u64, most: u64 },
    /// A time, such as `1m30s`.
    Duration { least_ms: u64, most_ms: u64 },
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A list of values of one shape.
    List { of: &'static Self, most: usize },
    /// Labels of a node: each text to text.
    Labels,
    /// Free configuration of a policy: keys of any name, values of any shape except nothing.
    Anything,
    /// A map with known keys.
    Object(&'static Object),
    /// The settings of drains.
    Drain,
}

/// The keys of a map.
pub(super) struct Keys {
    pub(super) fields: Vec<&'static Field>,
    /// Exactly one of these keys is required.
    pub(super) one_of: &'static [&'static str],
}

/// A map with known keys.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) fields: &'static [Field],
    /// Exactly one of these keys is required.
    pub(super) one_of: &'static [&'static str],
}

/// A key of a map.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    pub(super) required: bool,
    /// Its description, in the schema and in errors.
    pub(super) doc: &'static str,
}

impl Shape {
    /// The known keys of a map; `None`: it is no such map.
    pub(super) fn keys(&self) -> Option<Keys> {
        match self {
            Self::Object(object) => Some(Keys {
                fields: object.fields.iter().collect(),
                one_of: object.one_of,
            }),
            Self::Drain => Some(Keys {
                fields: drain::fields().collect(),
                one_of: &[],
            }),
            _ => None,
        }
    }
}

impl Keys {
    pub(super) fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().copied().find(|field| field.name == name)
    }
}

impl Field {
    pub(super) const fn new(name: &'static str, shape: Shape, doc: &'static str) -> Self {
        Self {
            name,
            shape,
            required: false,
            doc,
        }
    }

    pub(super) const fn required(name: &'static str, shape: Shape, doc: &'static str) -> Self {
        Self {
            name,
            shape,
            required: true,
            doc,
        }
    }
}
