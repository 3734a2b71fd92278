//! Native code whose origin is known, and the one place where it is trusted.

use wasmtime::Engine;
use wasmtime::component::Component;

use crate::files::sealed::Sealed;

/// Native code that our own compiler made, in sealed memory. It has two sources: our child process, or our private
/// directory, where it still has the digest it had when stored.
pub struct Native(Sealed);

impl Native {
    /// The compiler child's output, sealed after the child's end.
    pub(crate) const fn from_child(code: Sealed) -> Self {
        Self(code)
    }

    /// A copy of stored code, if it is unchanged.
    pub(crate) fn kept(code: Sealed, digest: &str) -> Option<Self> {
        (code.digest() == digest).then_some(Self(code))
    }

    /// Its bytes.
    pub fn length(&self) -> u64 {
        self.0.length()
    }

    /// The code.
    pub(crate) const fn code(&self) -> &Sealed {
        &self.0
    }
}

/// Loads native code as a component. Fails if the code was made for another engine, configuration or processor.
///
/// The code is mapped, not copied: the kernel loads its pages on first use and shares them with the sealed file. The
/// file on disk is never mapped, because a change after the check would change the running code.
#[expect(
    unsafe_code,
    reason = "wasmtime cannot check native code; its origin is checked here instead"
)]
pub fn load_native(engine: &Engine, native: &Native) -> wasmtime::Result<Component> {
    // SAFETY: `deserialize_file` requires a file that `Engine::precompile_component` made and that does not change any
    // more. A `Native` is only made of the output of our own child process, or of a copy whose SHA-256 equals that of
    // such output; both digests were taken after sealing. The kernel refuses every write to a sealed file, every
    // writable mapping of it and every change of its length, permanently and for all processes; and it refuses the seal
    // while any process holds such a mapping. Wasmtime maps the file privately, writes to none of its pages and makes
    // them read-only before the code can be called. The path names our own descriptor, which is open while `native` is
    // borrowed, so it leads to no other file. Version, configuration and processor features are checked by
    // `deserialize_file` itself.
    unsafe { Component::deserialize_file(engine, native.0.path()) }
}
