//! The engine needs nothing from its host: no dependencies, and no imports as a bare wasm module.
#![expect(clippy::unwrap_used, reason = "helpers of a test fail by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;

fn engine() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// But the one that recordings switch on: to write and read what goes in and out. Nothing can be decided there, because
/// it only adds derives.
#[test]
fn it_has_no_dependencies() {
    let manifest = std::fs::read_to_string(engine().join("Cargo.toml")).unwrap();
    let optional = "\n[dependencies]\nserde = { workspace = true, optional = true }\n";
    assert!(manifest.contains(optional), "{manifest}");
    let rest = manifest.replace(optional, "");
    let forbidden = ["[dependencies", "[build-dependencies", "[target", "default ="];
    for section in forbidden {
        assert!(!rest.contains(section), "host/engine/Cargo.toml has {section}");
    }
    for file in sources(&engine().join("src")) {
        let text = std::fs::read_to_string(&file).unwrap();
        let lines = text.lines().filter(|line| line.contains("serde"));
        let derives = "#[cfg_attr(feature = \"serde\", derive(serde::Serialize, serde::Deserialize))]";
        let as_text = "#[cfg_attr(feature = \"serde\", serde(from = \"String\", into = \"String\"))]";
        // Still a derived implementation: a field that is empty is not written.
        let empty = |line: &str| {
            let of =
                line.strip_prefix("#[cfg_attr(feature = \"serde\", serde(default, skip_serializing_if = \"");
            let of = of.and_then(|of| of.strip_suffix("\"))]"));
            let of_core = [
                "BTreeMap::is_empty",
                "BTreeSet::is_empty",
                "Option::is_none",
                "String::is_empty",
                "Vec::is_empty",
            ];
            of.is_some_and(|of| of_core.contains(&of))
        };
        for line in lines.map(str::trim) {
            assert!(
                [derives, as_text].contains(&line) || empty(line),
                "{}: {line}",
                file.display()
            );
        }
    }
    let lib = std::fs::read_to_string(engine().join("src/lib.rs")).unwrap();
    assert!(lib.contains("#![no_std]") && lib.contains("#![forbid(unsafe_code)]"));
}

fn sources(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let of_entry = |path: PathBuf| match path.is_dir() {
        true => sources(&path),
        false => vec![path],
    };
    entries.flat_map(of_entry).collect()
}

#[test]
fn as_bare_wasm_it_imports_nothing() {
    let module = std::fs::read(build_probe()).unwrap();
    let sections = sections(&module);
    assert!(
        sections.iter().any(|(id, _)| *id == EXPORTS),
        "the probe exports nothing: it was not built right"
    );
    let code = sections.iter().find(|(id, _)| *id == CODE).unwrap();
    assert!(
        code.1.len() > 50_000,
        "the engine was stripped from the probe: {} bytes of code",
        code.1.len()
    );
    let imports = sections.iter().find(|(id, _)| *id == IMPORTS);
    let count = imports.map_or(0, |(_, content)| number(content).0);
    assert_eq!(
        count,
        0,
        "imports: {:?}",
        imports.map(|(_, content)| String::from_utf8_lossy(content))
    );
}

/// Builds `probe/` for bare wasm, beside this test's own build.
fn build_probe() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("engine-probe");
    let status = Command::new(env!("CARGO"))
        .args([
            "build",
            "--quiet",
            "--offline",
            "--locked",
            "--target",
            "wasm32-unknown-unknown",
        ])
        .arg("--manifest-path")
        .arg(engine().join("probe/Cargo.toml"))
        .env("CARGO_TARGET_DIR", &target)
        .env_remove("CARGO_BUILD_BUILD_DIR")
        .env_remove("RUSTFLAGS")
        .status()
        .unwrap();
    assert!(
        status.success(),
        "the engine does not build for wasm32-unknown-unknown"
    );
    target.join("wasm32-unknown-unknown/debug/scupper_engine_probe.wasm")
}

const IMPORTS: u8 = 2;
const EXPORTS: u8 = 7;
const CODE: u8 = 10;

/// The sections of a wasm module: after eight bytes of header each is an id, a length and that many bytes.
fn sections(module: &[u8]) -> Vec<(u8, &[u8])> {
    let (header, mut rest) = module.split_at(8);
    assert_eq!(header, b"\0asm\x01\0\0\0");
    let mut sections = Vec::new();
    while let Some((id, after)) = rest.split_first() {
        let (length, digits) = number(after);
        let (content, next) = after.split_at(digits).1.split_at(length);
        sections.push((*id, content));
        rest = next;
    }
    sections
}

/// An unsigned LEB128 number and how many bytes it takes.
fn number(bytes: &[u8]) -> (usize, usize) {
    let mut value = 0;
    for (place, byte) in bytes.iter().enumerate() {
        value |= usize::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return (value, place + 1);
        }
    }
    (value, bytes.len())
}
