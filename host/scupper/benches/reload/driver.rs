//! The driver as a separate process, with one policy, on a simulated API server.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use scupper_policy_reload::ask_list;
use scupper_simulator::api::{ApiServer, Options, objects};
use serde_json::Value;

use crate::process::{NODE, Process, files};

const LIMIT: Duration = Duration::from_secs(180);
const POLICY: &str = "policy.wasm";

/// A running driver, ended when dropped.
pub(crate) struct Driver {
    process: Process,
    _api: ApiServer,
}

impl Driver {
    /// Starts one, and waits until the policy with these bytes is active.
    pub(crate) async fn start(wasm: &[u8]) -> Self {
        let api = ApiServer::start(Options::default()).await.unwrap();
        api.store().apply(objects::node(NODE).into()).unwrap();
        let dir = files();
        std::fs::write(dir.path().join(POLICY), wasm).unwrap();
        let process = Process::start(&api, "bench", dir, |command, dir| {
            command
                .arg("--policy")
                .arg(format!("p={}", dir.join(POLICY).display()))
                .args(["--grant", "p=node-annotations:nodeset.slinky.slurm.net/"])
                .args(["--grant", "p=node-annotations:example.com/"]);
        });
        let driver = Self { process, _api: api };
        driver.until(|_| true).await;
        driver
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Replaces the policy's file by one rename, and returns the time until the new content was active.
    pub(crate) async fn replace(&self, wasm: &[u8], digest: &str) -> Duration {
        let file = self.file();
        let part = file.with_extension("part");
        std::fs::write(&part, wasm).unwrap();
        let begin = Instant::now();
        std::fs::rename(&part, &file).unwrap();
        self.until(|active| active == digest).await;
        begin.elapsed()
    }

    /// The path of its policy.
    pub(crate) fn file(&self) -> PathBuf {
        self.process.file(POLICY)
    }

    /// Waits for the active digest; reads it as `scupper policy list` does.
    async fn until(&self, wanted: impl Fn(&str) -> bool) {
        let begin = Instant::now();
        loop {
            let list = ask_list(&self.process.file("state")).await.unwrap_or_default();
            let slot = list.pointer("/policies/0").cloned().unwrap_or_default();
            if slot["digest"].as_str().is_some_and(&wanted) {
                return;
            }
            assert_eq!(slot["problem"], Value::Null, "{slot}");
            assert!(begin.elapsed() < LIMIT, "{slot}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// The time of the compiler's child alone, and the bytes of native code that it produces.
pub(crate) fn compile(wasm: &Path) -> (Duration, u64) {
    let native = tempfile::NamedTempFile::new().unwrap();
    let begin = Instant::now();
    let status = Command::new(env!("CARGO_BIN_EXE_scupper"))
        .arg("compile-policy")
        .stdin(std::fs::File::open(wasm).unwrap())
        .stdout(native.reopen().unwrap())
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
    (begin.elapsed(), native.as_file().metadata().unwrap().len())
}
