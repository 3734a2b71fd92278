//! Embeds the SDK and the WIT into the program, so that `scupper policy new` needs no checkout.
#![expect(
    clippy::expect_used,
    reason = "a build that cannot read its sources must stop"
)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for (folder, as_folder) in [("sdk/src", "scupper-sdk/src"), ("wit", "wit")] {
        collect(&root.join(folder), as_folder, &mut files);
    }
    for (file, as_file) in [
        ("sdk/README.md", "scupper-sdk/README.md"),
        ("sdk/Cargo.toml", "scupper-sdk/Cargo.toml"),
    ] {
        files.push((as_file.to_owned(), root.join(file)));
    }
    files.sort();
    let mut code = "[\n".to_owned();
    for (name, path) in files {
        println!("cargo::rerun-if-changed={}", path.display());
        writeln!(
            code,
            "    ({name:?}, include_str!({:?})),",
            path.display().to_string()
        )
        .expect("a String takes all");
    }
    code.push_str("]\n");
    std::fs::write(PathBuf::from(variable("OUT_DIR")).join("sdk_files.rs"), code)
        .expect("write sdk_files.rs");
}

/// All files below a folder, with their names in the program.
fn collect(folder: &Path, as_folder: &str, files: &mut Vec<(String, PathBuf)>) {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in std::fs::read_dir(folder).expect("read a folder of the SDK") {
        let path = entry.expect("read a folder of the SDK").path();
        let name = path.file_name().expect("an entry has a name").to_string_lossy();
        let name = format!("{as_folder}/{name}");
        if path.is_dir() {
            collect(&path, &name, files);
        } else {
            files.push((name, path));
        }
    }
}

fn variable(name: &str) -> String {
    std::env::var(name).expect("cargo sets it")
}
