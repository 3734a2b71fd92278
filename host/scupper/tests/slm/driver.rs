//! The real driver binary, started, killed and stopped by its process id.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::program::program;

/// A running driver. Dropped, it is killed.
pub(crate) struct Driver {
    child: Child,
    output: PathBuf,
    log: PathBuf,
}

impl Driver {
    /// Starts `scupper kubelet-plugin` with these arguments; its output goes to files in `folder`.
    pub(crate) fn spawn(folder: &Path, number: usize, arguments: &[String]) -> Self {
        let output = folder.join(format!("driver-{number}.out"));
        let log = folder.join(format!("driver-{number}.log"));
        let child = Command::new(program())
            .arg("kubelet-plugin")
            .args(arguments)
            .env("SCUPPER_LOG", "debug,hyper=info,h2=info,tower=info,rustls=info")
            .env_remove("POD_NAME")
            .stdin(Stdio::null())
            .stdout(File::create(&output).unwrap())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        Self { child, output, log }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its output so far.
    pub(crate) fn output(&self) -> String {
        fs::read_to_string(&self.output).unwrap()
    }

    /// Its log so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// `kill -9`, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        if self.is_running() {
            self.child.kill().unwrap();
        }
        let status = self.child.wait().unwrap();
        assert_eq!(
            status.signal(),
            Some(9),
            "it had ended by itself:\n{}",
            self.log()
        );
    }

    /// Asks it to stop, as a node agent's pod is.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Suspends it: it holds its connections and answers nothing.
    pub(crate) fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until it ends by itself.
    pub(crate) async fn ended(&mut self, limit: Duration) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begun.elapsed() < limit, "it did not end in time:\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to do.
        self.child.kill().ok();
        self.child.wait().ok();
        if std::thread::panicking() {
            for (what, file) in [("printed", &self.output), ("logged", &self.log)] {
                let text = fs::read_to_string(file).unwrap_or_default();
                eprintln!("--- the driver {what}:\n{text}");
            }
        }
    }
}
