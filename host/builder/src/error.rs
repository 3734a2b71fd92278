//! Why there is no component.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use thiserror::Error;

use crate::TARGET;

/// Why there is no component.
#[derive(Debug, Error)]
pub enum BuildError {
    /// There is no crate.
    #[error("there is no Cargo.toml in {}; name the folder of a policy's crate", .0.display())]
    NoCrate(PathBuf),
    /// The folder's `Cargo.toml` is of a workspace, not of a package.
    #[error("{} is no package; name the folder of one of its members", .0.display())]
    NoPackage(PathBuf),
    /// The crate makes no module.
    #[error(
        "`{package}` is no cdylib; its Cargo.toml needs `[lib]` with `crate-type = [\"cdylib\", \"rlib\"]`"
    )]
    NoCdylib {
        /// The package.
        package: String,
    },
    /// Cargo is not there.
    #[error("start cargo; is Rust installed?")]
    Start(#[source] io::Error),
    /// Cargo does not understand the manifest. It has told why.
    #[error("cargo cannot read the manifest: {0}")]
    Metadata(ExitStatus),
    /// Cargo answers something else.
    #[error("read the answer of `cargo metadata`")]
    Answer(#[source] serde_json::Error),
    /// rustc cannot make wasm.
    #[error("the standard library for {TARGET} is missing; bring it with `rustup target add {TARGET}`")]
    NoTarget,
    /// It does not compile. Cargo has told why.
    #[error("`cargo build` failed: {0}")]
    Compile(ExitStatus),
    /// The module is not where cargo puts it.
    #[error("read the module {}", path.display())]
    Module {
        /// Where it should be.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The module is none of ours.
    #[error("make a component of the core module: {0}")]
    Encode(String),
    /// It is a component, but no policy.
    #[error("`{0}` is no policy yet: it needs a line like `scupper_sdk::export!(MyPolicy with planner);`")]
    NoPolicy(String),
    /// The component cannot be written.
    #[error("write {}", path.display())]
    Write {
        /// Where to.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
}
