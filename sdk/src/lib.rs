//! Write drain policies for Scupper.
pub mod bindings;
