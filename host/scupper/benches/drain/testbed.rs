//! The real API server, through the testbed's own command.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A running control plane, ended when dropped.
pub(crate) struct Testbed {
    command: PathBuf,
    dir: tempfile::TempDir,
}

impl Testbed {
    /// With the CRDs of SLM as users install them.
    pub(crate) fn up() -> Self {
        let testbed = Self::bare(&[]);
        testbed.install("lifecycle.yaml");
        testbed
    }

    /// Without them, and with these options of `kubernetes-testbed up`.
    pub(crate) fn bare(options: &[&str]) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let dir = tempfile::Builder::new()
            .prefix("scupper-bench-")
            .tempdir()
            .unwrap();
        let testbed = Self {
            command: root.join("../testbeds/kubernetes/kubernetes-testbed"),
            dir,
        };
        testbed.run(&["up"], options);
        testbed
    }

    /// Installs a file of `deploy/crds`.
    pub(crate) fn install(&self, file: &str) {
        let crds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
        self.kubectl(&["apply", "-f", crds.join(file).to_str().unwrap()]);
        self.kubectl(&["wait", "--for=condition=Established", "crd", "--all"]);
    }

    pub(crate) fn version(&self) -> String {
        let facts = std::fs::read_to_string(self.dir.path().join("testbed.json")).unwrap();
        let facts: serde_json::Value = serde_json::from_str(&facts).unwrap();
        facts["version"].as_str().unwrap().to_owned()
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.dir.path().join("kubeconfig")
    }

    pub(crate) fn kubectl(&self, args: &[&str]) -> String {
        let mut all = vec!["--"];
        all.extend(args);
        self.run(&["kubectl"], &all)
    }

    /// The testbed's `kubectl` as a command, for a caller that also needs its exit status.
    pub(crate) fn kubectl_command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.command);
        command.arg("kubectl").arg(self.dir.path()).arg("--").args(args);
        command
    }

    /// Running pods on a node, once the node has none.
    pub(crate) fn pods(&self, node: &str, count: usize, takes: u64) {
        let (count, takes) = (count.to_string(), takes.to_string());
        let args = [
            "--node", node, "--count", &count, "--takes", &takes, "--grace", "30",
        ];
        self.run(&["pods"], &args);
    }

    /// Pods by these options of the testbed.
    pub(crate) fn make_pods(&self, options: &[&str]) {
        self.run(&["pods"], options);
    }

    /// A mark in the audit log.
    pub(crate) fn mark(&self) -> String {
        self.run(&["requests"], &["--mark"]).trim().to_owned()
    }

    /// Requests of a client since a mark, by the audit log. A watch counts once, when it begins.
    pub(crate) fn requests(&self, agent: &str, mark: &str) -> usize {
        let counted = self.run(&["requests"], &["--user-agent", agent, "--since", mark, "--json"]);
        let counted: serde_json::Value = serde_json::from_str(&counted).unwrap();
        usize::try_from(counted["total"].as_u64().unwrap()).unwrap()
    }

    /// The same, by verb, resource and answer.
    pub(crate) fn list_requests(&self, agent: &str, mark: &str) -> String {
        self.run(&["requests"], &["--user-agent", agent, "--since", mark])
    }

    /// How many watches of pods the server has ended because their clients were too slow, by its own count.
    pub(crate) fn watches_cut(&self) -> usize {
        let metrics = self.kubectl(&["get", "--raw", "/metrics"]);
        let cut = metrics.lines().filter_map(|line| {
            let labels = line.strip_prefix("apiserver_terminated_watchers_total{")?;
            let (labels, count) = labels.rsplit_once("} ")?;
            labels
                .contains("resource=\"pods\"")
                .then(|| count.parse::<usize>().unwrap())
        });
        cut.sum()
    }

    /// A command of the testbed on this cluster.
    pub(crate) fn run(&self, command: &[&str], args: &[&str]) -> String {
        let output = Command::new(&self.command)
            .args(command)
            .arg(self.dir.path())
            .args(args)
            .stderr(Stdio::inherit())
            .env("QUIET", "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "{command:?} {args:?}: {}", output.status);
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        let down = Command::new(&self.command)
            .arg("down")
            .arg(self.dir.path())
            .arg("--purge")
            .status();
        assert!(
            down.is_ok_and(|status| status.success()),
            "the control plane was not ended"
        );
    }
}
