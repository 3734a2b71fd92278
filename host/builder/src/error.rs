//! Why a build fails.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use thiserror::Error;

use crate::TARGET;

/// Why a build fails.
#[derive(Debug, Error)]
pub enum BuildError {
    /// The folder has no `Cargo.toml`.
    #[error("there is no Cargo.toml in {}; name the folder of a policy's crate", .0.display())]
    NoCrate(PathBuf),
    /// The folder's `Cargo.toml` is of a workspace, not of a package.
    #[error("{} is a workspace without a package; name the folder of one of its members", .0.display())]
    NoPackage(PathBuf),
    /// The crate does not build a module.
    #[error(
        "`{package}` is not a cdylib; its Cargo.toml needs `[lib]` with `crate-type = [\"cdylib\", \"rlib\"]`"
    )]
    NoCdylib {
        /// The package.
        package: String,
    },
    /// Cargo cannot be started.
    #[error("cannot start cargo; install Rust with rustup")]
    Start(#[source] io::Error),
    /// Cargo rejects the manifest and has printed why.
    #[error("cargo cannot read the manifest: {0}")]
    Metadata(ExitStatus),
    /// The output of cargo is invalid.
    #[error("cannot read the output of `cargo metadata`")]
    Answer(#[source] serde_json::Error),
    /// rustc cannot compile to wasm.
    #[error("the standard library for {TARGET} is missing; install it with `rustup target add {TARGET}`")]
    NoTarget,
    /// The crate does not compile. Cargo has printed why.
    #[error("`cargo build` failed: {0}")]
    Compile(ExitStatus),
    /// The module cannot be read.
    #[error("cannot read the module {}", path.display())]
    Module {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The module cannot be encoded as a component.
    #[error("cannot make a component of the core module: {0}")]
    Encode(String),
    /// It is a component, but not a policy.
    #[error("`{0}` is not a policy yet: it needs a line like `scupper_sdk::export!(MyPolicy with planner);`")]
    NoPolicy(String),
    /// The component cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The path.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}
