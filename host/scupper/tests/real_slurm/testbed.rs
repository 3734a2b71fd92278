//! A real Slurm: up for a test, and down after the test, however it ends.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

pub(crate) use crate::limit::LIMIT;
use crate::skip;

/// The drained Slurm node.
pub(crate) const NODE: &str = "slurm-worker-0";
pub(crate) const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testbeds/slurm/slurm-testbed");

pub(crate) struct Testbed {
    folder: PathBuf,
    facts: Value,
}

/// These tests are skipped.
pub(crate) fn left_out() -> bool {
    let left_out = skip::left_out("real-slurm");
    if left_out {
        eprintln!("left out, as SCUPPER_SKIP says: real-slurm");
    }
    left_out
}

impl Testbed {
    /// Starts it. `None`: the test is skipped.
    pub(crate) fn up(name: &str, options: &[&str]) -> Option<Self> {
        if left_out() {
            return None;
        }
        // Not the tests' own temporary folder: paths of Unix sockets are limited to 108 bytes.
        let folder = PathBuf::from(format!("/tmp/scupper-slurm-{}-{name}", std::process::id()));
        let mut testbed = Self {
            folder,
            facts: Value::Null,
        };
        let up = testbed.run("up", options);
        assert!(
            up.status.success(),
            "this machine cannot run a real Slurm: {}\n(SCUPPER_SKIP=real-slurm leaves this test out)",
            String::from_utf8_lossy(&up.stderr)
        );
        testbed.facts = serde_json::from_slice(&up.stdout).unwrap();
        Some(testbed)
    }

    /// The address of slurmrestd.
    pub(crate) fn url(&self) -> String {
        self.facts["url"].as_str().unwrap().to_owned()
    }

    /// The token of an account that may change nodes.
    pub(crate) fn token_file(&self) -> PathBuf {
        self.folder.join("token")
    }

    /// A token of this user.
    pub(crate) fn token(&self, user: &str, seconds: u32) -> String {
        let seconds = seconds.to_string();
        self.ask("token", &["--user", user, "--lifespan", &seconds])
    }

    /// Submits a job that sleeps on the node, and waits until it runs.
    pub(crate) fn submit(&self, seconds: u32, more: &[&str]) -> u64 {
        let seconds = seconds.to_string();
        let options = ["--node", NODE, "--seconds", &seconds, "--wait"];
        let job = self.ask("submit", &[&options[..], more].concat());
        job.parse().unwrap()
    }

    /// Runs one of Slurm's own clients; it must succeed.
    pub(crate) fn client(&self, command: &[&str]) -> String {
        self.ask("exec", &[&["--"], command].concat())
    }

    /// A requeued job waits for two minutes; this one, if they are not over yet, starts now.
    pub(crate) fn start_now(&self, job: &str) {
        let job = format!("JobId={job}");
        let out = self.run("exec", &["--", "scontrol", "update", &job, "StartTime=now"]);
        let said = String::from_utf8_lossy(&out.stderr);
        let has_begun = said.contains("Job is no longer pending execution");
        assert!(out.status.success() || has_begun, "{job}: {said}");
    }

    /// `state reason` as Slurm's own client has them, such as `drained ask ops`.
    pub(crate) fn node(&self) -> String {
        self.client(&["sinfo", "-h", "-N", "-n", NODE, "-o", "%T %E"])
    }

    /// The state of a job, in capitals; empty: Slurm has forgotten it.
    pub(crate) fn job(&self, job: u64) -> String {
        self.client(&["squeue", "-h", "-t", "all", "-j", &job.to_string(), "-o", "%T"])
    }

    /// Jobs that have not ended in Slurm.
    pub(crate) fn jobs(&self) -> usize {
        self.client(&["squeue", "-h", "-o", "%i"]).lines().count()
    }

    /// Starts, stops, kills, pauses or resumes a daemon.
    pub(crate) fn daemon(&self, name: &str, what: &str) {
        self.ask("daemon", &[name, what]);
    }

    /// Keeps a copy of the state that the controller has saved so far.
    pub(crate) async fn keep_state(&self) {
        // A controller that ends in order saves everything.
        self.daemon("slurmctld", "stop");
        self.copy("state", "state-kept");
        self.daemon("slurmctld", "start");
        until("the controller knows its nodes again", async || {
            let known = self.client(&["sinfo", "-h", "-N", "-o", "%T"]);
            !known.contains("unk") && !known.contains('*')
        })
        .await;
    }

    /// The controller dies before it has saved the changes since `keep_state`, and is restarted.
    pub(crate) fn crash_and_forget(&self) {
        self.daemon("slurmctld", "kill");
        std::fs::remove_dir_all(self.folder.join("state")).unwrap();
        self.copy("state-kept", "state");
        self.daemon("slurmctld", "start");
    }

    fn copy(&self, from: &str, to: &str) {
        let (from, to) = (self.folder.join(from), self.folder.join(to));
        let copied = Command::new("cp").arg("-a").args([from, to]).status().unwrap();
        assert!(copied.success());
    }

    /// An operator drains the node by REST and gives no reason.
    pub(crate) fn drain_without_a_reason(&self) {
        let url = format!("{}/slurm/v0.0.42/node/{NODE}", self.url());
        let token = std::fs::read_to_string(self.token_file()).unwrap();
        let headers = [
            ("X-SLURM-USER-TOKEN", token.trim()),
            ("Content-Type", "application/json"),
        ];
        let answer = crate::http::send("POST", &url, &headers, br#"{"state":["DRAIN"]}"#).unwrap();
        assert_eq!(answer.status, 200);
    }

    /// The files of jobs and daemons.
    pub(crate) fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.join("log").join(name)).unwrap_or_default()
    }

    /// A folder that is `/testbed` for jobs.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn ask(&self, command: &str, options: &[&str]) -> String {
        let out = self.run(command, options);
        assert!(
            out.status.success(),
            "{command} {options:?}: {}",
            String::from_utf8_lossy(&out.stderr)
        );
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    }

    fn run(&self, command: &str, options: &[&str]) -> Output {
        run(command, &self.folder, options)
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let status = self.run("status", &[]);
            eprintln!("{}", String::from_utf8_lossy(&status.stdout));
        }
        let down = self.run("down", &["--purge"]);
        if !down.status.success() && !std::thread::panicking() {
            panic!(
                "the cluster did not go down: {}",
                String::from_utf8_lossy(&down.stderr)
            );
        }
    }
}

fn run(command: &str, folder: &Path, options: &[&str]) -> Output {
    Command::new(SCRIPT)
        .arg(command)
        .arg(folder)
        .args(options)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Repeats the check until it holds.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < LIMIT, "not within {LIMIT:?}: {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
