//! The real API server, through the testbed's own command.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{LazyLock, OnceLock, mpsc};

use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;
use tokio::runtime::Runtime;

/// A running control plane, ended when dropped.
pub(crate) struct Testbed {
    command: PathBuf,
    dir: tempfile::TempDir,
    client: OnceLock<kube::Client>,
    /// Of one that is never dropped: ends it with this process.
    _guard: Option<Child>,
}

/// Carries out the requests of tests that are not asynchronous.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

/// Waits until its input is closed, that is, until this process has ended, however it did.
const GUARD: &str = r#"trap "" INT TERM; cat; exec "$@" >/dev/null 2>&1"#;

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
            client: OnceLock::new(),
            _guard: None,
        };
        testbed.run(&["up"], options);
        testbed
    }

    /// Leaves it running until this process ends.
    pub(crate) fn leak(mut self) -> &'static Self {
        let mut guard = Command::new("/bin/sh");
        guard
            .args(["-c", GUARD, "guard"])
            .arg(&self.command)
            .arg("down")
            .arg(self.dir.path())
            .arg("--purge")
            .stdin(Stdio::piped())
            .stdout(Stdio::null());
        self._guard = Some(guard.spawn().unwrap());
        Box::leak(Box::new(self))
    }

    /// A read of the API server, in a fraction of the time that `kubectl` takes to start.
    pub(crate) fn get(&self, path: &str) -> Value {
        let request = Request::get(path).body(Vec::new()).unwrap();
        self.send(request)
    }

    /// A merge patch.
    pub(crate) fn patch(&self, path: &str, patch: &Value) -> Value {
        let request = Request::patch(path).header("content-type", "application/merge-patch+json");
        self.send(request.body(patch.to_string().into_bytes()).unwrap())
    }

    /// Creates an object at the path of its collection.
    pub(crate) fn post(&self, path: &str, object: &Value) -> Value {
        let request = Request::post(path).header("content-type", "application/json");
        self.send(request.body(object.to_string().into_bytes()).unwrap())
    }

    fn send(&self, request: Request<Vec<u8>>) -> Value {
        let what = format!("{} {}", request.method(), request.uri());
        let client = self
            .client
            .get_or_init(|| wait(client(self.kubeconfig())))
            .clone();
        let answer = wait(async move { client.request::<Value>(request).await });
        answer.map_err(|error| format!("{what}: {error}")).unwrap()
    }

    /// Installs a file of `deploy/crds`.
    pub(crate) fn install(&self, file: &str) {
        let crds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
        self.kubectl(&["apply", "-f", crds.join(file).to_str().unwrap()]);
        self.kubectl(&["wait", "--for=condition=Established", "crd", "--all"]);
    }

    pub(crate) fn version(&self) -> String {
        let facts = std::fs::read_to_string(self.dir.path().join("testbed.json")).unwrap();
        let facts: Value = serde_json::from_str(&facts).unwrap();
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

    /// Requests since a mark, by the audit log. `of`: whose, `--user U` or `--user-agent A`. A watch counts once, when it
    /// begins.
    pub(crate) fn requests(&self, of: &[&str], mark: &str) -> usize {
        let counted = self.run(&["requests"], &[of, &["--since", mark, "--json"]].concat());
        let counted: Value = serde_json::from_str(&counted).unwrap();
        usize::try_from(counted["total"].as_u64().unwrap()).unwrap()
    }

    /// The same, by verb, resource and answer.
    pub(crate) fn list_requests(&self, of: &[&str], mark: &str) -> String {
        self.run(&["requests"], &[of, &["--since", mark]].concat())
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

async fn client(kubeconfig: PathBuf) -> kube::Client {
    let config = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await;
    kube::Client::try_from(config.unwrap()).unwrap()
}

/// Also from inside another runtime, whose thread it blocks.
fn wait<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    let (send, receive) = mpsc::channel();
    RUNTIME.spawn(async move { send.send(work.await) });
    receive.recv().unwrap()
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
