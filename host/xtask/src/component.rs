//! From a core module, as rustc leaves it, to a component.

use anyhow::{Context, Result};
use wit_component::ComponentEncoder;

/// Wraps a core module that carries its WIT world, and checks the result.
pub fn encode(module: &[u8]) -> Result<Vec<u8>> {
    ComponentEncoder::default()
        .validate(true)
        .module(module)
        .context("read the core module; is it one that `scupper_sdk::export!` made?")?
        .encode()
        .context("make a component of the core module")
}
