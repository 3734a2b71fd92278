//! The real program: a whole drain on the simulated cluster and the real Slurm.

use crate::programs::programs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::testbed::{LIMIT, SCRIPT, left_out, until};

/// Starts `scupper demo` on a real Slurm, with its files in this folder.
fn demo(folder: &Path) -> Child {
    Command::new(programs().join("scupper"))
        .arg("demo")
        .arg("--slurm")
        .arg(crate::rig::module())
        .args(["--slurm-testbed", SCRIPT])
        .env("TMPDIR", folder)
        .env_remove("SCUPPER_LOG")
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(folder.join("out")).unwrap())
        .stderr(std::fs::File::create(folder.join("err")).unwrap())
        .spawn()
        .unwrap()
}

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// It ends by itself; `true`: with success.
async fn ends(child: &mut Child, folder: &Path) -> bool {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.success();
        }
        if begun.elapsed() > LIMIT {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it does not end: {}{}", read(folder, "out"), read(folder, "err"));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Its folders are gone, and no process uses one.
fn leaves_nothing(folder: &Path) {
    let left = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| name != "out" && name != "err").collect();
    assert!(left.is_empty(), "{left:?}");
    let folder = folder.to_str().unwrap();
    for process in std::fs::read_dir("/proc").unwrap() {
        let command = std::fs::read(process.unwrap().path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).into_owned();
        assert!(!command.contains(folder), "it still runs: {command}");
    }
}

/// A short path: a kubelet's socket lies below it.
fn folder() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("sd-").tempdir_in("/tmp").unwrap()
}

#[tokio::test]
async fn a_whole_drain_through_the_program_and_nothing_is_left() {
    if left_out() {
        return;
    }
    let folder = folder();
    let mut child = demo(folder.path());
    let well = ends(&mut child, folder.path()).await;
    let (out, err) = (read(folder.path(), "out"), read(folder.path(), "err"));
    assert!(well, "{out}{err}");
    let mut rest = out.as_str();
    for line in [
        "cordon   the node is cordoned",
        "slurm before-drain, running: 3 jobs on slurm-worker-0, ",
        "waits for job 1: train of bob: running",
        "slurm finished before-drain",
        "evict    slurm/slurmd-0",
        "Drained in",
        "slurm-worker-0 is drained: scupper:",
        "Uncordoned in",
        "slurm-worker-0 is idle",
    ] {
        let at = rest.find(line);
        let at = at.unwrap_or_else(|| panic!("not in its place: {line}\n{out}{err}"));
        rest = rest.split_at(at).1;
    }
    // Slurm's own clients report their poll, so the order with the driver varies.
    for line in [
        "(Slurm: slurm-worker-0 is draining: scupper: node=slurm-worker-0 cluster=",
        "(Slurm: job 1 of bob (train) has ended)",
    ] {
        assert!(out.contains(line), "{line}: {out}");
    }
    // A token begins like this, for any user.
    assert!(!out.contains("eyJ") && !err.contains("eyJ"), "{out}{err}");
    leaves_nothing(folder.path());
}

#[tokio::test]
async fn an_interrupted_run_leaves_nothing_either() {
    if left_out() {
        return;
    }
    for moment in ["", "A real Slurm", "slurm before-drain, running"] {
        let folder = folder();
        let mut child = demo(folder.path());
        until(&format!("it gets as far as {moment:?}"), async || {
            let ended = child.try_wait().unwrap();
            let [out, err] = ["out", "err"].map(|name| read(folder.path(), name));
            assert!(ended.is_none(), "it ended before {moment:?}: {out}{err}");
            let begun = std::fs::read_dir(folder.path()).unwrap().count() > 2;
            begun && out.contains(moment)
        })
        .await;
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let well = ends(&mut child, folder.path()).await;
        assert!(well, "{moment}: {}", read(folder.path(), "err"));
        leaves_nothing(folder.path());
    }
}
