//! `scupper drain` and `uncordon` on the real API server, as a plugin of `kubectl` and directly.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::area::Area;
use crate::driver::Driver;
use crate::limit::LIMIT;
use crate::testbed::Testbed;
use crate::{condition, node, pods_on, skip};

#[test]
fn kubectl_scupper_drains_past_a_budget_and_restores_the_node() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let area = Area::with(2);
    let (name, other, namespace) = (area.node(0), area.node(1), area.namespace("shop"));
    let plugin = Plugin::install();
    let there = ["--node", name, "--namespace", &namespace];
    let owned = [
        "--count",
        "10",
        "--owner",
        "deployment",
        "--pdb",
        "8",
        "--takes",
        "1",
    ];
    area.make_pods(&[&there[..], &owned].concat());
    area.make_pods(&[&there[..], &["--count", "1", "--name", "bare"]].concat());

    let run = plugin.kubectl(&area, &["scupper", "drain", name]);
    assert_eq!(run.status.code(), Some(5), "{run:?}");
    assert!(
        out(&run).contains("declare no controller (use --force to override)"),
        "{run:?}"
    );
    assert!(
        node(&area, name)["spec"]["unschedulable"].is_null(),
        "planned before cordoned"
    );

    let run = plugin.kubectl(&area, &["scupper", "drain", name, "--force", "--timeout=100s"]);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    assert!(out(&run).contains("11 pods evicted in 1 wave"), "{run:?}");
    assert_eq!(pods_on(&area, name), 0);
    assert_eq!(node(&area, name)["spec"]["unschedulable"], true);
    assert_eq!(condition(&area, name, "Drained"), "True");

    let run = plugin.kubectl(&area, &["scupper", "uncordon", name]);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    let given_back = node(&area, name);
    assert!(given_back["spec"]["unschedulable"].is_null(), "{given_back}");
    assert!(
        given_back["metadata"]["annotations"]["scupper.dev/drain"].is_null(),
        "{given_back}"
    );
    assert_eq!(condition(&area, name, "Drained"), "False");
    others_cordon(&area, other);
    ctrl_c(&area, other);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_driver_does_it_where_it_runs_and_a_lease_says_so() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let area = Area::with(1);
    let (name, driver, leases) = (area.node(0), area.driver(), area.namespace("leases"));
    let of = ["--driver-name", &driver, "--lease-namespace", &leases];
    let mut with_leases = Driver::start(&area, &driver, name, None).await;
    with_leases.restart_with(&of[2..]).await;
    let plugin = Plugin::install();
    let ask = |args: &[&str]| {
        let args = [&["scupper"], args, &of].concat();
        tokio::task::block_in_place(|| plugin.kubectl(&area, &args))
    };
    area.pods(name, 5, 1);
    let run = ask(&["drain", name]);
    assert_eq!(run.status.code(), Some(5), "{run:?}");
    assert!(
        out(&run).contains("declare no controller (use --force to override)"),
        "{run:?}"
    );
    assert_eq!(pods_on(&area, name), 5);
    let run = ask(&["drain", name, "--force", "--timeout=100s"]);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    assert!(out(&run).contains("Drained in"), "{run:?}");
    assert_eq!(pods_on(&area, name), 0);
    assert_eq!(node(&area, name)["spec"]["unschedulable"], true);
    let run = ask(&["uncordon", name]);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    assert!(node(&area, name)["spec"]["unschedulable"].is_null());

    is_stuck(&area, name);
    let mut drain = scupper(&area, &[&["drain", name, "--force"][..], &of].concat());
    let mut drain = Killed(drain.stdout(Stdio::null()).spawn().unwrap());
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{leases}/leases");
    let leases = || {
        let leases = area.get(&path)["items"].as_array().unwrap().clone();
        let names = leases.into_iter().map(|lease| lease["metadata"]["name"].clone());
        names.collect::<Vec<_>>()
    };
    let begun = Instant::now();
    while node(&area, name)["spec"]["unschedulable"].is_null() {
        assert!(begun.elapsed() < LIMIT, "it is not begun");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(leases(), [name]);
    let run = ask(&["cancel", name]);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    assert!(
        out(&run).contains(&format!("cancelled: LifecycleEvent drain-{name}-")),
        "{run:?}"
    );
    assert_eq!(
        tokio::task::block_in_place(|| drain.0.wait()).unwrap().code(),
        Some(5)
    );
    assert!(node(&area, name)["spec"]["unschedulable"].is_null());
    while !leases().is_empty() {
        assert!(begun.elapsed() < LIMIT, "the lease is not released");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn others_cordon(testbed: &Testbed, name: &str) {
    testbed.kubectl(&["cordon", name]);
    let run = scupper(testbed, &["uncordon", name]).output().unwrap();
    assert_eq!(run.status.code(), Some(5), "{run:?}");
    assert_eq!(node(testbed, name)["spec"]["unschedulable"], true);
    let run = scupper(testbed, &["uncordon", name, "--force"]).output().unwrap();
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    assert!(node(testbed, name)["spec"]["unschedulable"].is_null());
}

/// A pod that does not terminate.
fn is_stuck(area: &Area, node: &str) {
    let namespace = area.namespace("stuck");
    let there = ["--node", node, "--namespace", &namespace, "--count", "1"];
    area.make_pods(&[&there[..], &["--name", "stuck", "--stuck", "true"]].concat());
}

/// A pod that does not terminate blocks the drain until the user cancels it.
fn ctrl_c(testbed: &Area, name: &str) {
    is_stuck(testbed, name);
    let story = tempfile::NamedTempFile::new().unwrap();
    let mut drain = scupper(testbed, &["drain", name, "--force"]);
    let mut drain = Killed(drain.stdout(story.reopen().unwrap()).spawn().unwrap());
    let reported = || std::fs::read_to_string(story.path()).unwrap();
    let begun = Instant::now();
    while !reported().contains("evict ") {
        assert!(begun.elapsed() < LIMIT, "{}", reported());
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&drain.0), Signal::INT).unwrap();
    assert_eq!(drain.0.wait().unwrap().code(), Some(5), "{}", reported());
    assert!(reported().contains("Cancelled"), "{}", reported());
    assert!(node(testbed, name)["spec"]["unschedulable"].is_null());
}

fn scupper(testbed: &Testbed, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scupper"));
    command.args(args).env("KUBECONFIG", testbed.kubeconfig());
    command
}

/// `kubectl-scupper` in a folder where `kubectl` finds it.
struct Plugin(tempfile::TempDir);

impl Plugin {
    fn install() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(
            env!("CARGO_BIN_EXE_scupper"),
            folder.path().join("kubectl-scupper"),
        )
        .unwrap();
        Self(folder)
    }

    fn kubectl(&self, testbed: &Testbed, args: &[&str]) -> Output {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(PathBuf::from(self.0.path())).chain(std::env::split_paths(&path));
        testbed
            .kubectl_command(args)
            .env("PATH", std::env::join_paths(folders).unwrap())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }
}

fn out(run: &Output) -> String {
    String::from_utf8_lossy(&run.stdout).into_owned()
}

/// A process that does not outlive its test.
pub(crate) struct Killed(pub(crate) Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to do.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
