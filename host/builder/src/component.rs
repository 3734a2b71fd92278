//! Turns a core module from rustc into a component file.

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use wit_component::{ComponentEncoder, DecodedWasm};

use crate::BuildError;

/// A policy as a file.
#[derive(Debug)]
pub struct Built {
    /// Its package.
    pub name: String,
    /// The component.
    pub file: PathBuf,
    /// Its size in bytes.
    pub size: usize,
    /// Its digest: SHA-256 in hex.
    pub sha256: String,
}

/// Wraps a core module that carries its WIT world, and checks the result.
pub fn encode(module: &[u8]) -> Result<Vec<u8>, BuildError> {
    let encoded = ComponentEncoder::default()
        .validate(true)
        .module(module)
        .and_then(|mut encoder| encoder.encode());
    encoded.map_err(|error| BuildError::Encode(format!("{error:#}")))
}

/// Makes `OUT/NAME.wasm` of a module.
pub fn component(name: &str, module: &Path, out: &Path) -> Result<Built, BuildError> {
    let bytes = fs::read(module).map_err(|source| BuildError::Module {
        path: module.to_owned(),
        source,
    })?;
    let bytes = encode(&bytes)?;
    if !exports_about(&bytes) {
        return Err(BuildError::NoPolicy(name.to_owned()));
    }
    let file = out.join(format!("{name}.wasm"));
    write_in_one(&file, &bytes).map_err(|source| BuildError::Write {
        path: file.clone(),
        source,
    })?;
    let digest = Sha256::digest(&bytes);
    Ok(Built {
        name: name.to_owned(),
        file,
        size: bytes.len(),
        sha256: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
    })
}

/// The names of a component's imports and exports; `None` if it is not a component.
pub fn interfaces(component: &[u8]) -> Option<(Vec<String>, Vec<String>)> {
    let Ok(DecodedWasm::Component(resolve, world)) = wit_component::decode(component) else {
        return None;
    };
    let world = resolve.worlds.get(world)?;
    let imports = world.imports.keys().map(|key| resolve.name_world_key(key));
    let exports = world.exports.keys().map(|key| resolve.name_world_key(key));
    Some((imports.collect(), exports.collect()))
}

fn exports_about(component: &[u8]) -> bool {
    let exports = interfaces(component)
        .map(|(_, exports)| exports)
        .unwrap_or_default();
    exports
        .iter()
        .any(|name| name.starts_with("scupper:drain/about@"))
}

/// Replaces the file atomically, because a driver may be watching it.
fn write_in_one(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(folder)?;
    // Each process uses its own temporary name, as others may write the same file. Readable for all, as far as the umask allows.
    let mode = Permissions::from_mode(0o666);
    let mut beside = tempfile::Builder::new().permissions(mode).tempfile_in(folder)?;
    beside.write_all(bytes)?;
    beside.persist(file)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_write_the_same_at_once_and_nothing_half_done_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("policy.wasm");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        write_in_one(&file, b"component").unwrap();
                    }
                });
            }
        });
        let left: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert_eq!(
            (left, fs::read(&file).unwrap()),
            (vec![file.clone()], b"component".to_vec())
        );
    }

    #[test]
    fn a_module_without_the_export_macro_is_not_a_policy() {
        let component = encode(b"\0asm\x01\0\0\0").unwrap();
        assert!(!exports_about(&component));
    }
}
