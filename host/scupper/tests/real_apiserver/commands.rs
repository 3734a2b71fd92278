//! `scupper drain` and `uncordon` on the real API server, as a plugin of `kubectl` and directly.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::driver::Driver;
use crate::limit::LIMIT;
use crate::testbed::Testbed;
use crate::{ALONE, condition, node, pods_on, skip};

#[test]
fn kubectl_scupper_drains_past_a_budget_and_restores_the_node() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let _alone = ALONE.blocking_lock();
    let testbed = Testbed::bare(&["--nodes", "2"]);
    let plugin = Plugin::install();
    let owned = ["--owner", "deployment", "--pdb", "8", "--takes", "1"];
    testbed.make_pods(&[&["--node", "node-0", "--count", "10"][..], &owned].concat());
    testbed.make_pods(&["--node", "node-0", "--count", "1", "--name", "bare"]);

    let run = plugin.kubectl(&testbed, &["scupper", "drain", "node-0"]);
    assert_eq!(run.status.code(), Some(5), "{run:?}");
    assert!(
        out(&run).contains("declare no controller (use --force to override)"),
        "{run:?}"
    );
    assert!(
        node(&testbed, "node-0")["spec"]["unschedulable"].is_null(),
        "planned before cordoned"
    );

    let run = plugin.kubectl(
        &testbed,
        &["scupper", "drain", "node-0", "--force", "--timeout=100s"],
    );
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    assert!(out(&run).contains("11 pods evicted in 1 wave"), "{run:?}");
    assert_eq!(pods_on(&testbed, "node-0"), 0);
    assert_eq!(node(&testbed, "node-0")["spec"]["unschedulable"], true);
    assert_eq!(condition(&testbed, "node-0", "Drained"), "True");

    let run = plugin.kubectl(&testbed, &["scupper", "uncordon", "node-0"]);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    let given_back = node(&testbed, "node-0");
    assert!(given_back["spec"]["unschedulable"].is_null(), "{given_back}");
    assert!(
        given_back["metadata"]["annotations"]["scupper.dev/drain"].is_null(),
        "{given_back}"
    );
    assert_eq!(condition(&testbed, "node-0", "Drained"), "False");
    others_cordon(&testbed);
    ctrl_c(&testbed);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_driver_does_it_where_it_runs_and_a_lease_says_so() {
    if skip::left_out("real-apiserver") {
        return;
    }
    let _alone = ALONE.lock().await;
    let testbed = Testbed::up();
    testbed.kubectl(&["create", "namespace", "scupper"]);
    let _driver = Driver::start(&testbed, "node-1", None).await;
    let plugin = Plugin::install();
    let ask = |args: &[&str]| {
        let args = [&["scupper"], args, &["--driver-name", "bench"]].concat();
        tokio::task::block_in_place(|| plugin.kubectl(&testbed, &args))
    };
    testbed.pods("node-1", 5, 1);
    let run = ask(&["drain", "node-1"]);
    assert_eq!(run.status.code(), Some(5), "{run:?}");
    assert!(
        out(&run).contains("declare no controller (use --force to override)"),
        "{run:?}"
    );
    assert_eq!(pods_on(&testbed, "node-1"), 5);
    let run = ask(&["drain", "node-1", "--force", "--timeout=100s"]);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    assert!(out(&run).contains("Drained in"), "{run:?}");
    assert_eq!(pods_on(&testbed, "node-1"), 0);
    assert_eq!(node(&testbed, "node-1")["spec"]["unschedulable"], true);
    let run = ask(&["uncordon", "node-1"]);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    assert!(node(&testbed, "node-1")["spec"]["unschedulable"].is_null());

    let stuck = [
        "--node", "node-1", "--count", "1", "--name", "stuck", "--stuck", "true",
    ];
    testbed.make_pods(&stuck);
    let mut drain = scupper(
        &testbed,
        &["drain", "node-1", "--force", "--driver-name", "bench"],
    );
    let mut drain = Killed(drain.stdout(Stdio::null()).spawn().unwrap());
    let leases = || testbed.kubectl(&["get", "leases", "--namespace", "scupper", "-o", "name"]);
    let begun = Instant::now();
    while node(&testbed, "node-1")["spec"]["unschedulable"].is_null() {
        assert!(begun.elapsed() < LIMIT, "it is not begun");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(leases().trim(), "lease.coordination.k8s.io/node-1");
    let run = ask(&["cancel", "node-1"]);
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    assert!(
        out(&run).contains("cancelled: LifecycleEvent drain-node-1-"),
        "{run:?}"
    );
    assert_eq!(
        tokio::task::block_in_place(|| drain.0.wait()).unwrap().code(),
        Some(5)
    );
    assert!(node(&testbed, "node-1")["spec"]["unschedulable"].is_null());
    while !leases().is_empty() {
        assert!(begun.elapsed() < LIMIT, "the lease is not released");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn others_cordon(testbed: &Testbed) {
    testbed.kubectl(&["cordon", "node-1"]);
    let run = scupper(testbed, &["uncordon", "node-1"]).output().unwrap();
    assert_eq!(run.status.code(), Some(5), "{run:?}");
    assert_eq!(node(testbed, "node-1")["spec"]["unschedulable"], true);
    let run = scupper(testbed, &["uncordon", "node-1", "--force"])
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(0), "{run:?}");
    assert!(node(testbed, "node-1")["spec"]["unschedulable"].is_null());
}

/// A pod that does not terminate blocks the drain until the user cancels it.
fn ctrl_c(testbed: &Testbed) {
    testbed.make_pods(&[
        "--node", "node-1", "--count", "1", "--name", "stuck", "--stuck", "true",
    ]);
    let story = tempfile::NamedTempFile::new().unwrap();
    let mut drain = scupper(testbed, &["drain", "node-1", "--force"]);
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
    assert!(node(testbed, "node-1")["spec"]["unschedulable"].is_null());
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
