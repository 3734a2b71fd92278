//! Native code whose origin is known, and the one place where it is trusted.

use std::fmt::Write;

use sha2::{Digest, Sha256};
use wasmtime::Engine;
use wasmtime::component::Component;

/// Native code that our own compiler made. There are two ways to have some: it came out of our child's pipe, or it was
/// kept in our private directory and still has the digest it had then.
pub(super) struct Native(Vec<u8>);

impl Native {
    /// What the compiler's child wrote, before anybody else could touch it.
    pub(super) const fn from_child(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// What was kept, if it is still what was written.
    pub(super) fn kept(bytes: Vec<u8>, digest: &str) -> Option<Self> {
        (sha256(&bytes) == digest).then_some(Self(bytes))
    }

    /// The code.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// SHA-256 in lowercase hex.
pub(super) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Lowercase hex.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(64), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _written = write!(hex, "{byte:02x}").is_ok();
        hex
    })
}

/// Makes a component of native code. Fails when the code was made for another engine, configuration or processor.
///
/// The bytes are copied into memory that nobody else can write to. Mapping the file instead would save its size in
/// anonymous memory, but then whoever changes the file after the check changes the running code.
#[expect(
    unsafe_code,
    reason = "wasmtime cannot check native code; its origin is checked here instead"
)]
pub(super) fn load(engine: &Engine, native: &Native) -> wasmtime::Result<Component> {
    // SAFETY: `deserialize` wants bytes that `Engine::precompile_component` made and that nobody changed since. A
    // `Native` is only made of what our own child process wrote into a pipe that nobody else holds, or of bytes read
    // once into this vector whose SHA-256 is the one taken of such output. Version, configuration and processor
    // features are checked by `deserialize` itself.
    unsafe { Component::deserialize(engine, native.bytes()) }
}
