//! The types of `wit/`, and conversions between them and those of the engine.

pub(crate) mod bindings;
pub(crate) mod from_wit;
pub(crate) mod to_wit;
pub(crate) mod to_wit_owned;
