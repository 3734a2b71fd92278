//! A driver as a process of its own with a simulated API server, ended when dropped.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use scupper_simulator::api::ApiServer;

/// The node that it serves.
pub(crate) const NODE: &str = "worker-1";

/// The process and its files.
pub(crate) struct Process {
    child: Child,
    dir: tempfile::TempDir,
}

impl Process {
    /// Starts it with these files, and with what `more` adds to its command line.
    pub(crate) fn start(
        api: &ApiServer,
        driver: &str,
        dir: tempfile::TempDir,
        more: impl FnOnce(&mut Command, &Path),
    ) -> Self {
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("kubeconfig"), api.kubeconfig()).unwrap();
        for folder in ["plugins", "plugins_registry"] {
            std::fs::create_dir_all(path("kubelet").join(folder)).unwrap();
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_scupper"));
        command
            .args(["kubelet-plugin", "--driver-name", driver, "--node-name", NODE])
            .arg("--kubelet-root")
            .arg(path("kubelet"))
            .arg("--kubeconfig")
            .arg(path("kubeconfig"))
            .arg("--policy-cache")
            .arg(path("compiled"))
            .arg("--state-dir")
            .arg(path("state"))
            .env("SCUPPER_LOG", "error")
            // As in the image.
            .env("MALLOC_ARENA_MAX", "2")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        more(&mut command, dir.path());
        let child = command.spawn().unwrap();
        Self { child, dir }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// One of its files.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

/// A directory for its files.
pub(crate) fn files() -> tempfile::TempDir {
    let mut files = tempfile::Builder::new();
    files.prefix("scupper-bench-").tempdir().unwrap()
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
