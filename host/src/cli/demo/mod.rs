//! `scupper demo`: the real driver, the real policy, a simulated cluster and a simulated kubelet.

mod scene;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use scupper_simulator::api::{self, ApiServer, objects};
use scupper_simulator::kubelet::{self, Kubelet, KubeletHandle, Timing};
use scupper_simulator::slinky::{self, Happening};

use super::args::DemoArgs;
use super::commands::{fail, print};
use super::exit::Exit;
use crate::app::{AppError, Plugin, PluginOptions, PoliciesOptions};
use crate::policy::PolicySpec;
use crate::report::Format;
use scene::NODE;

const DRIVER: &str = "drain.slm.k8s.io";
const GRANT: &str = "node-annotations:nodeset.slinky.slurm.net/";
/// The demo is over in half a minute; whatever takes longer is stuck.
const LIMIT: Duration = Duration::from_secs(120);

/// Why there is no demo.
#[derive(Debug, thiserror::Error)]
enum DemoError {
    #[error("could not start the simulated API server")]
    Server(#[source] api::StartError),
    #[error("could not fill the simulated cluster")]
    Scene(#[source] api::StoreError),
    #[error("could not reach the simulated API server")]
    Client(#[source] kube::Error),
    #[error("could not start the simulated kubelet")]
    Kubelet(#[source] kubelet::StartError),
    #[error("could not make a folder for the demo")]
    Folder(#[source] std::io::Error),
    #[error("could not start the driver")]
    Driver(#[source] AppError),
    #[error("{event} did not end: {message}")]
    Stuck { event: &'static str, message: String },
}

/// Plays the demo.
pub(super) async fn run(args: &DemoArgs, format: Format) -> ExitCode {
    match play(args, format).await {
        Ok(()) => Exit::Done.into(),
        Err(DemoError::Driver(error)) => super::commands::failed(&error),
        Err(error) => fail(&error, Exit::Bug),
    }
}

async fn play(args: &DemoArgs, format: Format) -> Result<(), DemoError> {
    let folder = tempfile::Builder::new()
        .prefix("scupper-")
        .tempdir()
        .map_err(DemoError::Folder)?;
    let cluster = ApiServer::start(scene::options())
        .await
        .map_err(DemoError::Server)?;
    scene::build(&cluster.store()).map_err(DemoError::Scene)?;
    let people = format == Format::Human;
    let say = move |text: &str| {
        if people {
            print(text);
        }
    };
    let _operator = AbortOnDrop(tokio::spawn(slinky::run(cluster.store(), move |happening| {
        say(&told(&happening));
    })));
    let client = kube::Client::try_from(cluster.client_config()).map_err(DemoError::Client)?;
    // A real kubelet looks every 10 s; this one every second.
    let options = kubelet::Options {
        timing: Timing::faster(10),
        ..kubelet::Options::new(client, NODE, folder.path())
    };
    let kubelet = Kubelet::start(options).map_err(DemoError::Kubelet)?;
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, cluster.kubeconfig()).map_err(DemoError::Folder)?;
    let options = PluginOptions {
        kubeconfig: Some(kubeconfig),
        driver_name: DRIVER.to_owned(),
        node_name: NODE.to_owned(),
        kubelet_root: folder.path().to_owned(),
        policies: policies(args),
        format,
        stop_grace: Duration::ZERO,
        ..PluginOptions::default()
    };
    let output = Arc::new(|| Box::new(std::io::stdout()) as Box<dyn std::io::Write + Send>);
    say(
        "A simulated cluster: node worker-1 with three Slurm workers that have jobs, a shop behind a disruption budget,",
    );
    say(
        "plain pods, a DaemonSet pod and a static pod; node worker-2 is empty. The driver and slurm.wasm are the real ones.",
    );
    let plugin = Plugin::start_with_output(options, output)
        .await
        .map_err(DemoError::Driver)?;

    offered(&cluster).await?;
    say("\n$ kubectl create -f drain.yaml    # a LifecycleEvent: transition drain.slm.k8s.io, node worker-1");
    let mark = cluster.mark();
    transition(&cluster, &kubelet, "drain-worker-1", DRIVER).await?;
    say(&requests(&cluster, mark));

    say("\n$ kubectl create -f maintenance-complete.yaml    # transition drain.slm.k8s.io-uncordon");
    transition(
        &cluster,
        &kubelet,
        "maintenance-complete-worker-1",
        "drain.slm.k8s.io-uncordon",
    )
    .await?;
    say("\nworker-1 takes pods again. Try the same on a cluster: README.md, `scupper --help`.");
    plugin.stop().await.map_err(DemoError::Driver)
}

/// Waits until the driver has published its transitions, as a person would who looks before asking.
async fn offered(cluster: &ApiServer) -> Result<(), DemoError> {
    let store = cluster.store();
    let published = async {
        while store.list("lifecycletransitions.lifecycle.k8s.io").len() < 2 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let waited = tokio::time::timeout(LIMIT, published).await;
    waited.map_err(|_| DemoError::Stuck {
        event: "the driver's registration",
        message: "no transitions".to_owned(),
    })
}

fn policies(args: &DemoArgs) -> PoliciesOptions {
    let slurm = PolicySpec {
        name: "slurm".to_owned(),
        file: args.slurm.clone(),
        grants: GRANT.parse().into_iter().collect(),
        config: BTreeMap::from([("poll-seconds".to_owned(), "1".to_owned())]),
        ..PolicySpec::default()
    };
    PoliciesOptions {
        policies: vec![slurm],
        ..PoliciesOptions::default()
    }
}

/// Asks for a transition and waits until the kubelet has ended the event.
async fn transition(
    cluster: &ApiServer,
    kubelet: &KubeletHandle,
    event: &'static str,
    transition: &str,
) -> Result<(), DemoError> {
    let object = objects::lifecycle_event(event, transition, NODE).build();
    cluster.store().apply(object).map_err(DemoError::Scene)?;
    let ended = |record: &kubelet::Record| record.finished().iter().any(|(name, _)| name == event);
    let waited = kubelet.wait_for(ended, LIMIT).await;
    waited.map_err(|message| DemoError::Stuck { event, message })?;
    let finished = kubelet.record().finished();
    let status = finished
        .into_iter()
        .find(|(name, _)| name == event)
        .map(|(_, status)| status);
    if status.as_deref() == Some("Succeeded") {
        return Ok(());
    }
    let message = format!("the kubelet says {}", status.unwrap_or_default());
    Err(DemoError::Stuck { event, message })
}

/// What the drain asked of the API server, in one line.
fn requests(cluster: &ApiServer, mark: usize) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let ours = cluster
        .requests_since(mark)
        .into_iter()
        .filter(|request| request.user_agent.starts_with("scupper"));
    for request in ours {
        let subresource = if request.subresource.is_empty() {
            String::new()
        } else {
            format!("/{}", request.subresource)
        };
        *counts
            .entry(format!("{} {}{subresource}", request.verb, request.resource))
            .or_default() += 1;
    }
    let total: usize = counts.values().sum();
    let parts: Vec<_> = counts
        .into_iter()
        .map(|(what, count)| format!("{count} {what}"))
        .collect();
    format!(
        "            API requests of the driver: {total} ({})",
        parts.join(", ")
    )
}

fn told(happening: &Happening) -> String {
    match happening {
        Happening::Draining { pod, reason } => {
            format!("            (Slurm drains the node of {pod}: {reason})")
        }
        Happening::JobEnded { pod } => format!("            (the job on {pod} has ended)"),
        Happening::Resumed { pod } => format!("            (Slurm gives jobs to the node of {pod} again)"),
    }
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
