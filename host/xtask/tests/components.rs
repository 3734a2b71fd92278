//! The policies as shipped: their imports, exports and sizes.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use wit_component::{DecodedWasm, decode};
use xtask::{encode, policies, workspace::Workspace};

/// Kubernetes' limit for a ConfigMap, with room for its other keys.
const CONFIG_MAP_BYTES: usize = 900 << 10;

/// The interfaces that a component imports and exports.
fn interfaces(component: &[u8]) -> (Vec<String>, Vec<String>) {
    let DecodedWasm::Component(resolve, world) = decode(component).unwrap() else {
        panic!("a WIT package, not a component");
    };
    let world = resolve.worlds.get(world).unwrap();
    let name = |key| resolve.name_world_key(key);
    let mut exports: Vec<String> = world.exports.keys().map(name).collect();
    exports.sort();
    (world.imports.keys().map(name).collect(), exports)
}

#[test]
fn policies_import_only_our_package_and_export_their_interfaces() {
    let folder = tempfile::tempdir().unwrap();
    let built = policies::build(&Workspace::read().unwrap(), &[], Some(folder.path())).unwrap();
    let exports: BTreeMap<&str, &[&str]> = [
        ("announce", &["about", "hooks"][..]),
        ("ask-before-drain", &["about", "hooks"]),
        ("keep-labelled", &["about", "planner"]),
        ("gpu", &["about", "planner"]),
        ("gangs", &["about", "hooks", "planner"]),
        ("jobs", &["about", "hooks", "planner"]),
        ("namespace-modes", &["about", "hooks", "planner"]),
        ("priority", &["about", "planner"]),
        ("slurm", &["about", "hooks", "planner", "surroundings"]),
    ]
    .into();
    let names: Vec<&str> = built.iter().map(|policy| policy.name.as_str()).collect();
    for name in exports.keys() {
        assert!(names.contains(name), "{name} was not built");
    }
    for policy in built {
        let bytes = fs::read(&policy.file).unwrap();
        let (imports, exported) = interfaces(&bytes);
        for import in imports {
            assert!(
                import.starts_with("scupper:drain/"),
                "{} imports {import}",
                policy.name
            );
        }
        if let Some(expected) = exports.get(policy.name.as_str()) {
            let expected: Vec<String> = expected
                .iter()
                .map(|name| format!("scupper:drain/{name}@0.1.0"))
                .collect();
            assert_eq!(exported, expected, "{}", policy.name);
        }
        assert_eq!(bytes.len(), policy.size);
        assert!(
            bytes.len() < CONFIG_MAP_BYTES,
            "{}: {} bytes",
            policy.name,
            bytes.len()
        );
        // Without names the backtrace of a trap would contain only numbers.
        let glue = b"scupper_sdk";
        assert!(
            bytes.windows(glue.len()).any(|window| window == glue),
            "{} has lost its names",
            policy.name
        );
    }
}

#[test]
fn the_image_gets_every_policy_of_plugins() {
    let workspace = Workspace::read().unwrap();
    let rootfs = fs::read_to_string(workspace.root.join("deploy/rootfs")).unwrap();
    let (_, copied) = rootfs.split_once("\"$policies\"/{").unwrap();
    let (copied, _) = copied.split_once('}').unwrap();
    let copied: BTreeSet<&str> = copied.split(',').collect();
    let plugins = policies::of_image(&workspace);
    assert_eq!(copied, plugins.iter().map(String::as_str).collect());
}

#[test]
fn the_error_for_an_unknown_policy_lists_the_known_ones() {
    let folder = tempfile::tempdir().unwrap();
    let error = policies::build(
        &Workspace::read().unwrap(),
        &["slrum".to_owned()],
        Some(folder.path()),
    )
    .unwrap_err();
    assert!(
        error.to_string().starts_with("unknown policy `slrum`; known: "),
        "{error}"
    );
    assert!(error.to_string().contains("slurm"), "{error}");
}

#[test]
fn a_file_that_is_not_a_core_module_is_rejected() {
    for bytes in [&b""[..], b"\0asm", b"\0asm\x0d\0\x01\0", b"\x7fELF"] {
        assert!(encode(bytes).is_err(), "{bytes:?}");
    }
}
