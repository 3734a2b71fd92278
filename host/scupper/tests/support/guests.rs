//! Small real guests, well-behaved and hostile, built once for all tests of a process.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, OnceLock};

/// All guests, as core modules: the name, and rustc's file.
fn modules() -> &'static BTreeMap<String, PathBuf> {
    static MODULES: OnceLock<BTreeMap<String, PathBuf>> = OnceLock::new();
    MODULES.get_or_init(|| build("wasm", "wasm32-unknown-unknown"))
}

fn build(feature: &str, target: &str) -> BTreeMap<String, PathBuf> {
    let output = Command::new(env!("CARGO"))
        .args([
            "build",
            "--package",
            "guests",
            "--examples",
            "--features",
            feature,
        ])
        .args(["--target", target, "--profile", "policy"])
        .args(["--message-format", "json-render-diagnostics"])
        // Small enough without it, and built in a third of the time.
        .env("CARGO_PROFILE_POLICY_LTO", "false")
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "the guests do not build; is the target {target} there?"
    );
    output
        .stdout
        .split(|byte| *byte == b'\n')
        .filter_map(module)
        .collect()
}

/// A guest with a plain standard library, as the component that rustc makes of it.
pub(crate) fn wasi_guest(name: &str) -> PathBuf {
    static COMPONENTS: OnceLock<BTreeMap<String, PathBuf>> = OnceLock::new();
    let known = COMPONENTS.get_or_init(|| build("wasi", "wasm32-wasip2"));
    assert!(known.contains_key(name), "there is no guest `{name}`");
    known.get(name).unwrap().clone()
}

/// The module that one of cargo's messages is about.
fn module(message: &[u8]) -> Option<(String, PathBuf)> {
    let message: serde_json::Value = serde_json::from_slice(message).ok()?;
    let target = message.get("target")?;
    let is_guest = target
        .get("kind")?
        .as_array()?
        .iter()
        .any(|kind| kind == "example");
    let files = message.get("filenames")?.as_array()?;
    let wasm = files
        .iter()
        .filter_map(|file| file.as_str())
        .find(|file| file.ends_with(".wasm"))?;
    is_guest.then(|| {
        (
            target.get("name").unwrap().as_str().unwrap().to_owned(),
            PathBuf::from(wasm),
        )
    })
}

/// The names of all guests.
pub(crate) fn guests() -> Vec<String> {
    modules().keys().cloned().collect()
}

/// A guest as a core module.
pub(crate) fn core_module(name: &str) -> PathBuf {
    let known = modules();
    assert!(known.contains_key(name), "there is no guest `{name}`");
    known.get(name).unwrap().clone()
}

/// A guest as a component.
pub(crate) fn guest(name: &str) -> PathBuf {
    static MADE: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let make = || {
        let folder = scratch().join("guests");
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join(format!("{name}.wasm"));
        let component = xtask::encode(&std::fs::read(core_module(name)).unwrap()).unwrap();
        std::fs::write(&file, component).unwrap();
        file
    };
    made.entry(name.to_owned()).or_insert_with(make).clone()
}

/// This process's folder for all files of its tests.
pub(crate) fn scratch() -> &'static Path {
    static SCRATCH: OnceLock<tempfile::TempDir> = OnceLock::new();
    SCRATCH.get_or_init(|| tempfile::tempdir().unwrap()).path()
}
