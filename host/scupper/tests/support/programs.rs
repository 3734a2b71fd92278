//! Both programs, `scupper` and `scupper-dev`. Cargo builds only those of the package whose tests it runs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The folder with both programs, built from the present sources.
pub(crate) fn programs() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        // A test program with the same name in both packages: so cargo builds the programs of both, and with the features
        // that tests have.
        let mut cargo = Command::new(env!("CARGO"));
        // What the cargo that runs this test set for it. The build script of a dependency reads such variables: with them
        // this call would build the dependency anew, and the programs that other tests run just now.
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
                cargo.env_remove(&*name);
            }
        }
        let built = cargo
            .args([
                "test",
                "--locked",
                "--quiet",
                "--workspace",
                "--no-run",
                "--test",
                "help",
            ])
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(built.success(), "scupper and scupper-dev do not build");
        let own = std::env::current_exe().unwrap();
        own.ancestors().nth(2).unwrap().to_owned()
    })
}
