//! How the crates of the host depend on each other, as Cargo sees it. `host/ARCHITECTURE.md` draws the same arrows.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Each crate of the host, and all crates of this workspace that it may use. The four edges (cluster, policy, report,
/// triggers) never use each other; the driver brings them together.
const ARROWS: [(&str, &[&str]); 33] = [
    ("scupper-engine", &[]),
    ("scupper-pre-flight", &["scupper-engine"]),
    ("scupper-api", &["scupper-engine"]),
    ("scupper-contract", &[]),
    ("scupper-common", &["scupper-engine"]),
    ("scupper-checkpoint", &["scupper-common", "scupper-engine"]),
    (
        "scupper-cluster",
        &[
            "scupper-api",
            "scupper-checkpoint",
            "scupper-common",
            "scupper-engine",
            "scupper-placement",
            "scupper-pre-flight",
        ],
    ),
    ("scupper-cluster-model", &["scupper-engine"]),
    ("scupper-placement", &["scupper-common", "scupper-engine"]),
    (
        "scupper-drain-report",
        &[
            "scupper-common",
            "scupper-engine",
            "scupper-forecast",
            "scupper-recording",
            "scupper-report",
        ],
    ),
    ("scupper-policy-spec", &["scupper-common"]),
    ("scupper-policy-compile", &["scupper-common"]),
    (
        "scupper-policy",
        &[
            "scupper-api",
            "scupper-common",
            "scupper-engine",
            "scupper-policy-compile",
            "scupper-policy-spec",
        ],
    ),
    (
        "scupper-policy-reload",
        &[
            "scupper-common",
            "scupper-engine",
            "scupper-policy",
            "scupper-policy-spec",
        ],
    ),
    (
        "scupper-recorder",
        &["scupper-api", "scupper-common", "scupper-engine"],
    ),
    (
        "scupper-recording",
        &["scupper-common", "scupper-engine", "scupper-recorder"],
    ),
    (
        "scupper-report",
        &[
            "scupper-api",
            "scupper-checkpoint",
            "scupper-common",
            "scupper-engine",
            "scupper-pre-flight",
            "scupper-screen",
        ],
    ),
    (
        "scupper-forecast",
        &["scupper-cluster-model", "scupper-engine", "scupper-recording"],
    ),
    (
        "scupper-metrics",
        &["scupper-common", "scupper-engine", "scupper-pre-flight"],
    ),
    (
        "scupper-saved-cluster",
        &["scupper-cluster", "scupper-common", "scupper-engine"],
    ),
    ("scupper-screen", &["scupper-common", "scupper-engine"]),
    ("scupper-traces", &["scupper-common", "scupper-engine"]),
    (
        "scupper-triggers",
        &[
            "scupper-api",
            "scupper-common",
            "scupper-contract",
            "scupper-engine",
        ],
    ),
    (
        "scupper-config",
        &["scupper-common", "scupper-engine", "scupper-policy-spec"],
    ),
    (
        "scupper-lease",
        &[
            "scupper-cluster",
            "scupper-common",
            "scupper-engine",
            "scupper-report",
        ],
    ),
    (
        "scupper-runner",
        &[
            "scupper-api",
            "scupper-cluster",
            "scupper-common",
            "scupper-engine",
            "scupper-forecast",
            "scupper-lease",
            "scupper-metrics",
            "scupper-policy",
            "scupper-policy-reload",
            "scupper-pre-flight",
            "scupper-recording",
            "scupper-report",
            "scupper-traces",
            "scupper-triggers",
        ],
    ),
    (
        "scupper-driver",
        &[
            "scupper-api",
            "scupper-cluster",
            "scupper-common",
            "scupper-config",
            "scupper-engine",
            "scupper-lease",
            "scupper-metrics",
            "scupper-policy",
            "scupper-policy-reload",
            "scupper-policy-spec",
            "scupper-recording",
            "scupper-report",
            "scupper-runner",
            "scupper-screen",
            "scupper-traces",
            "scupper-triggers",
        ],
    ),
    (
        "scupper-use-cases",
        &[
            "scupper-api",
            "scupper-cluster",
            "scupper-common",
            "scupper-config",
            "scupper-driver",
            "scupper-engine",
            "scupper-lease",
            "scupper-policy",
            "scupper-policy-reload",
            "scupper-policy-spec",
            "scupper-pre-flight",
            "scupper-recording",
            "scupper-report",
            "scupper-runner",
            "scupper-saved-cluster",
            "scupper-triggers",
        ],
    ),
    (
        "scupper",
        &[
            "scupper-cluster",
            "scupper-common",
            "scupper-config",
            "scupper-drain-report",
            "scupper-driver",
            "scupper-engine",
            "scupper-forecast",
            "scupper-placement",
            "scupper-policy",
            "scupper-policy-reload",
            "scupper-policy-spec",
            "scupper-pre-flight",
            "scupper-recording",
            "scupper-report",
            "scupper-runner",
            "scupper-saved-cluster",
            "scupper-screen",
            "scupper-traces",
            "scupper-triggers",
            "scupper-use-cases",
        ],
    ),
    (
        "scupper-dev",
        &[
            "scupper",
            "scupper-api",
            "scupper-builder",
            "scupper-cluster",
            "scupper-cluster-model",
            "scupper-common",
            "scupper-config",
            "scupper-driver",
            "scupper-engine",
            "scupper-forecast",
            "scupper-policy",
            "scupper-policy-reload",
            "scupper-policy-spec",
            "scupper-recording",
            "scupper-report",
            "scupper-runner",
            "scupper-screen",
            "scupper-simulator",
        ],
    ),
    ("scupper-builder", &[]),
    ("scupper-engine-simulation", &["scupper-engine"]),
    ("scupper-simulator", &["scupper-contract"]),
];

/// Libraries restricted to a few crates: `kube` writes to API servers, `wasmtime` runs foreign code.
const AT_HOME: [(&str, &[&str]); 3] = [
    ("kube", &["scupper-cluster", "scupper-dev", "scupper-simulator"]),
    ("wasmtime", &["scupper-policy", "scupper-policy-compile"]),
    ("clap", &["scupper", "scupper-dev", "xtask"]),
];

/// The limit for lines of Rust in `src`, so that one reader can still know a crate.
const LINES: usize = 13_000;

struct Package {
    folder: String,
    /// Its dependencies, without those of tests.
    uses: BTreeSet<String>,
}

fn packages() -> BTreeMap<String, Package> {
    let asked = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--no-deps", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(
        asked.status.success(),
        "{}",
        String::from_utf8_lossy(&asked.stderr)
    );
    let metadata: Value = serde_json::from_slice(&asked.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages
        .map(|package| {
            let all = package["dependencies"].as_array().unwrap().iter();
            let usual = all.filter(|dependency| dependency["kind"].is_null());
            let folder = text(&package["manifest_path"]).replace("/Cargo.toml", "");
            let uses = usual.map(|dependency| text(&dependency["name"])).collect();
            (text(&package["name"]), Package { folder, uses })
        })
        .collect()
}

#[test]
fn crates_use_only_those_below_them() {
    let packages = packages();
    let of_host: BTreeSet<&str> = packages
        .iter()
        .filter(|(_, package)| package.folder.contains("/host/") && !package.folder.contains("/tests/"))
        .map(|(name, _)| name.as_str())
        .collect();
    let drawn: BTreeSet<&str> = ARROWS.iter().map(|(name, _)| *name).chain(["xtask"]).collect();
    assert_eq!(of_host, drawn, "crates in host/, and crates with arrows");
    for (name, may_use) in ARROWS {
        let uses = packages.get(name).unwrap().uses.iter();
        let ours: Vec<_> = uses.filter(|used| packages.contains_key(*used)).collect();
        assert_eq!(ours, may_use, "{name}");
    }
}

#[test]
fn libraries_with_power_are_used_where_they_belong() {
    let packages = packages();
    for (library, homes) in AT_HOME {
        let users = packages
            .iter()
            .filter(|(_, package)| package.uses.contains(library));
        let users: Vec<_> = users.map(|(name, _)| name.as_str()).collect();
        assert_eq!(users, homes, "crates that use {library}");
    }
}

/// The image's binary has neither a toolchain nor a simulated cluster.
#[test]
fn the_driver_is_built_without_dependencies_that_only_authors_need() {
    let tree = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--locked",
            "--package",
            "scupper",
            "--edges",
            "normal,build",
            "--prefix",
            "none",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8(tree.stdout).unwrap();
    let built: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(
        built.contains("scupper-driver") && built.contains("wasmtime"),
        "{built:?}"
    );
    for authors in ["scupper-dev", "scupper-simulator", "scupper-builder"] {
        assert!(!built.contains(authors), "{authors} is part of the driver");
    }
}

#[test]
fn no_crate_is_too_large_to_know() {
    for (name, package) in packages() {
        let lines = lines_below(&Path::new(&package.folder).join("src"));
        assert!(lines <= LINES, "{name}: {lines} lines");
    }
}

fn lines_below(folder: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return 0;
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .map(|path| match path.extension() {
            _ if path.is_dir() => lines_below(&path),
            Some(rs) if rs == "rs" => std::fs::read_to_string(&path).unwrap().lines().count(),
            _ => 0,
        })
        .sum()
}
