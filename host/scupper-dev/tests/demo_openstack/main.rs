//! `make demo-openstack`, with the real Nova. Its own program, because it runs after the other tests of OpenStack: two
//! testbeds at a time are too much for a small machine.

#[path = "../demo/narration.rs"]
mod narration;
#[path = "../../../scupper/tests/support/skip.rs"]
mod skip;

use std::path::PathBuf;
use std::process::Command;

use xtask::policies;
use xtask::workspace::Workspace;

#[test]
fn servers_migrate_off_a_host_of_a_real_nova_and_the_host_returns_to_service() {
    if skip::left_out("real-openstack") {
        return;
    }
    let built = policies::build(&Workspace::read().unwrap(), &["openstack".to_owned()], None).unwrap();
    let cache = std::env::var_os("SCUPPER_CACHE")
        .filter(|cache| !cache.is_empty())
        .map_or_else(|| PathBuf::from("/var/cache/scupper"), PathBuf::from);
    let demo = Command::new(env!("CARGO_BIN_EXE_scupper-dev"))
        .arg("demo")
        .arg("--openstack")
        .arg(&built.first().unwrap().file)
        .arg("--openstack-testbed")
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../testbeds/openstack/openstack-testbed"
        ))
        .arg("--openstack-state")
        .arg(cache.join("testbeds/openstack/state/demo-tests"))
        .output()
        .unwrap();
    let text = String::from_utf8(demo.stdout).unwrap();
    let log = String::from_utf8(demo.stderr).unwrap();
    assert!(demo.status.success(), "{text}\n{log}");
    for ended in ["Drained in ", "Uncordoned in "] {
        assert_eq!(text.matches(ended).count(), 1, "{text}");
    }
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("demo-openstack", narration::of(&without_chance(&text)));
    });
}

/// Leaves out what depends on the machine: which poll of Nova sees a server moved, and the UID of the drain's LifecycleEvent,
/// which counts what the simulated cluster created before.
fn without_chance(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.contains("(Nova: "));
    let lines = lines.map(|line| match line.split_once(" drain=") {
        Some((before, _)) => format!("{before} drain=…\n"),
        None => format!("{line}\n"),
    });
    lines.collect()
}
