//! The cluster with the real kubelet: up for a test, and down after the test, however it ends.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::skip::left_out;

/// The node.
pub(crate) const NODE: &str = "real-0";
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testbeds/kubelet/real-kubelet");
const CRDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/crds/lifecycle.yaml");

pub(crate) struct Testbed {
    folder: PathBuf,
}

impl Testbed {
    /// Starts it, with the lifecycle kinds. `None`: the test is skipped.
    pub(crate) fn up(name: &str) -> Option<Self> {
        if left_out("real-kubelet") {
            eprintln!("left out, as SCUPPER_SKIP says: real-kubelet");
            return None;
        }
        // Not the tests' own temporary folder: paths of Unix sockets are limited to 108 bytes.
        let testbed = Self {
            folder: PathBuf::from(format!("/tmp/rk-{}-{name}", std::process::id())),
        };
        let up = testbed.script("up", &[]);
        assert!(
            up.status.success(),
            "this machine cannot run a real kubelet: {}\n(SCUPPER_SKIP=real-kubelet leaves this test out)",
            String::from_utf8_lossy(&up.stderr)
        );
        testbed.kubectl(&["apply", "-f", CRDS]);
        let kinds = [
            "crd/lifecycleevents.lifecycle.k8s.io",
            "crd/lifecycletransitions.lifecycle.k8s.io",
        ];
        for kind in kinds {
            testbed.kubectl(&["wait", "--for=condition=Established", "--timeout=30s", kind]);
        }
        Some(testbed)
    }

    /// The folder of its whole state; deleted with it.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Loads an image into the node.
    pub(crate) fn import(&self, image: &Path) {
        let asked = ["--", "images", "import", image.to_str().unwrap()];
        let out = self.script("ctr", &asked);
        assert!(
            out.status.success(),
            "ctr {asked:?}: {}",
            String::from_utf8_lossy(&out.stderr)
        );
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    pub(crate) fn kubelet_root(&self) -> PathBuf {
        self.folder.join("kubelet")
    }

    /// The folder for manifests of static pods, and a place on the same file system to write them in.
    pub(crate) fn manifests(&self) -> (PathBuf, PathBuf) {
        (self.folder.join("manifests"), self.folder.clone())
    }

    pub(crate) async fn client(&self) -> Client {
        let kubeconfig = Kubeconfig::read_from(self.kubeconfig()).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .unwrap();
        Client::try_from(config).unwrap()
    }

    /// Runs kubectl as the cluster's admin; it must succeed.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        let out = self.script("kubectl", &[&["--"], arguments].concat());
        assert!(
            out.status.success(),
            "kubectl {arguments:?}: {}",
            String::from_utf8_lossy(&out.stderr)
        );
        String::from_utf8(out.stdout).unwrap()
    }

    pub(crate) fn has_transition(&self, name: &str) -> bool {
        let asked = ["--", "get", "lifecycletransition", name];
        self.script("kubectl", &asked).status.success()
    }

    pub(crate) fn apply(&self, name: &str, manifest: &str) {
        let file = self.folder.join(format!("{name}.yaml"));
        std::fs::write(&file, manifest).unwrap();
        self.kubectl(&["apply", "-f", file.to_str().unwrap()]);
    }

    fn script(&self, command: &str, arguments: &[&str]) -> Output {
        run(command, &self.folder, arguments)
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        let down = run("down", &self.folder, &["--purge"]);
        // On a machine that lacks a tool there is no cluster, only an empty folder.
        std::fs::remove_dir(&self.folder).ok();
        if !down.status.success() && !std::thread::panicking() {
            panic!(
                "the cluster did not go down: {}",
                String::from_utf8_lossy(&down.stderr)
            );
        }
    }
}

fn run(command: &str, folder: &Path, arguments: &[&str]) -> Output {
    Command::new(SCRIPT)
        .arg(command)
        .arg(folder)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Repeats the check until it holds.
pub(crate) async fn until(limit: Duration, what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < limit, "not within {limit:?}: {what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
