//! The rows of [`semantics`], run against a real API server: etcd, kube-apiserver and controllers of `host/testbeds/kubernetes`.
//! It needs bash, Go or a warm build cache, and a few hundred megabytes. `SCUPPER_SKIP=real-apiserver` leaves it out.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on says where"
)]

mod semantics;
#[path = "../../scupper/tests/support/skip.rs"]
mod skip;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use semantics::Needs;
use semantics::subject::{Control, Subject};
use serde_json::json;

/// The test bed. It is taken down when this is dropped, whatever the result.
struct Testbed {
    directory: tempfile::TempDir,
}

impl Testbed {
    fn up() -> Result<Self, String> {
        let directory = tempfile::Builder::new()
            .prefix("scupper-semantics-")
            .tempdir()
            .map_err(|it| it.to_string())?;
        let testbed = Self { directory };
        testbed.command(&["up"], &["--nodes", "1"]).map(|_| testbed)
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    /// `kubernetes-testbed COMMAND DIR ARGS`
    fn command(&self, command: &[&str], arguments: &[&str]) -> Result<Output, String> {
        let script = manifest().join("../testbeds/kubernetes/kubernetes-testbed");
        let output = Command::new(&script)
            .args(command)
            .arg(self.path())
            .args(arguments)
            .output();
        let output = output.map_err(|error| format!("running {}: {error}", script.display()))?;
        let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if output.status.success() {
            Ok(output)
        } else {
            Err(words)
        }
    }

    fn daemon(&self, name: &str, what: &str) {
        self.command(&["daemon"], &[name, what]).unwrap();
    }

    async fn client(&self, kubeconfig: &Path) -> Client {
        let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .unwrap();
        config.default_retry = false;
        Client::try_from(config).unwrap()
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        let down = self.command(&["down"], &["--purge"]);
        assert!(
            down.is_ok() || std::thread::panicking(),
            "the test bed stays up: {down:?}"
        );
    }
}

impl Control for Testbed {
    fn pause_server(&self) {
        self.daemon("kube-apiserver", "pause");
    }
    fn resume_server(&self) {
        self.daemon("kube-apiserver", "resume");
    }
    fn pause_controllers(&self) {
        self.daemon("kube-controller-manager", "pause");
    }
    fn resume_controllers(&self) {
        self.daemon("kube-controller-manager", "resume");
    }
}

fn manifest() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Applies the CRDs and waits until they are served.
async fn make_lifecycle_kinds(testbed: &Testbed, subject: &Subject) {
    let file = manifest().join("../../deploy/crds/lifecycle.yaml");
    testbed
        .command(&["kubectl"], &["--", "apply", "-f", file.to_str().unwrap()])
        .unwrap();
    for kind in ["lifecycleevents", "lifecycletransitions"] {
        subject
            .becomes(&format!("/apis/lifecycle.k8s.io/v1alpha1/{kind}"), |it| {
                it.code == 200
            })
            .await;
    }
}

/// Creates a service account without permissions, and its kubeconfig.
fn account_without_rights(testbed: &Testbed) -> PathBuf {
    let output = testbed
        .command(
            &["token"],
            &["--serviceaccount", "default/nobody", "--kubeconfig"],
        )
        .unwrap();
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_row_holds() {
    if skip::left_out("real-apiserver") {
        println!("left out by SCUPPER_SKIP=real-apiserver: no row was run against a real API server");
        return;
    }
    let testbed = Arc::new(Testbed::up().unwrap_or_else(|words| {
        panic!("no real API server on this machine: {words}\nset SCUPPER_SKIP=real-apiserver to leave it out")
    }));
    let client = testbed.client(&testbed.path().join("kubeconfig")).await;
    let nobody = testbed.client(&account_without_rights(&testbed)).await;
    let control: Arc<dyn Control> = Arc::clone(&testbed) as Arc<dyn Control>;
    let subject = Subject {
        client,
        nobody,
        control,
        crds: true,
        namespace: "default".to_owned(),
    };
    make_lifecycle_kinds(&testbed, &subject).await;
    let cases = semantics::all();
    let mut failed = semantics::run(&cases, &[Needs::Nothing, Needs::Lifecycle], &subject).await;
    for alone in cases.iter().filter(|it| it.needs == Needs::Alone) {
        failed.extend(semantics::run(std::slice::from_ref(alone), &[Needs::Alone], &subject).await);
    }
    let native: Vec<&str> = cases
        .iter()
        .filter(|it| it.needs == Needs::NativeLifecycle)
        .map(|it| it.name)
        .collect();
    println!(
        "{} rows ran against a real API server; {} of the simulator only, as no server is native: {native:?}; {} left out: {:?}",
        cases.len() - native.len(),
        native.len(),
        semantics::LEFT_OUT.len(),
        semantics::LEFT_OUT
    );
    assert!(
        failed.is_empty(),
        "{} of {} rows failed: {failed:#?}",
        failed.len(),
        cases.len()
    );
    assert_ne!(subject.get("/version").await.at("/gitVersion"), json!(null));
}
