//! Native code whose origin is known, and the one place where it is trusted.

use wasmtime::Engine;
use wasmtime::component::Component;

use crate::files::sealed::Sealed;

/// Native code that our own compiler made, in memory that is sealed. There are two ways to have some: our child wrote
/// it, or it was kept in our private directory and still has the digest it had then.
pub(crate) struct Native(Sealed);

impl Native {
    /// What the compiler's child wrote, sealed when the child had ended.
    pub(crate) const fn from_child(code: Sealed) -> Self {
        Self(code)
    }

    /// A copy of what was kept, if it is still what was written.
    pub(crate) fn kept(code: Sealed, digest: &str) -> Option<Self> {
        (code.digest() == digest).then_some(Self(code))
    }

    /// The code.
    pub(crate) const fn code(&self) -> &Sealed {
        &self.0
    }
}

/// Makes a component of native code. Fails when the code was made for another engine, configuration or processor.
///
/// The code is mapped, not copied: pages of it come into memory when they are touched, and stay shared with the sealed
/// file. The file on disk is never mapped: whoever changed it after the check would change the running code.
#[expect(
    unsafe_code,
    reason = "wasmtime cannot check native code; its origin is checked here instead"
)]
pub(crate) fn load(engine: &Engine, native: &Native) -> wasmtime::Result<Component> {
    // SAFETY: `deserialize_file` wants a file that `Engine::precompile_component` made and that nobody changes from now
    // on. A `Native` is only made of what our own child process wrote, or of a copy whose SHA-256 is the one taken of
    // such output; both digests were taken behind the seal. The kernel refuses every write to a sealed file, every
    // mapping of it that could be written through, and every change of its length, to everybody and for ever; and it
    // refuses the seal where somebody still holds such a mapping. Wasmtime maps the file privately, writes to none of
    // its pages and makes them read-only before the code can be called. The path names our own descriptor, which is
    // open while `native` is borrowed, so it leads to no other file. Version, configuration and processor features
    // are checked by `deserialize_file` itself.
    unsafe { Component::deserialize_file(engine, native.0.path()) }
}
