//! `scupper demo --forecast`: a drain is forecast when nothing is known, and what stands in its way is put right. The times
//! of that drain make the forecast of the next one, which is compared with what came. All commands are those of users.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use scupper_simulator::api::{ApiServer, Store, StoreError, objects};
use serde_json::json;
use tempfile::TempDir;
use tokio::process::Command;

use super::demo_cluster::{DemoError, until};
use super::{DemoOutput, cluster_objects};
use scupper_report::Format;

const FIRST: &str = "worker-1";
const SECOND: &str = "worker-2";
/// The directory of the recordings, in the folder of the demo.
const RECORDINGS: &str = "recordings";
/// The pods of each workload: namespace, name, how many, how long they take to end and to be ready elsewhere, in seconds.
const WORKLOADS: [(&str, &str, u32, f64, &str); 4] = [
    ("shop", "cart", 3, 1.5, "4"),
    ("db", "ledger", 1, 2.0, "2"),
    ("logs", "collector", 1, 9.0, "1"),
    ("web", "site", 2, 0.5, "1"),
];

/// The commands, and what they work on.
struct Shell<'a> {
    scupper: PathBuf,
    folder: TempDir,
    output: &'a DemoOutput,
}

/// Runs it.
pub(super) async fn run(output: &DemoOutput) -> Result<(), DemoError> {
    let cluster = cluster_objects::cluster().await?;
    let store = cluster.store();
    build(&store).map_err(DemoError::Scene)?;
    let shell = Shell::of(&cluster, output)?;
    let say = output.speaker();
    say(
        "A simulated cluster. On worker-1: a shop whose budget lets one pod go at a time, a ledger with one replica and a budget",
    );
    say(
        "that needs it, a collector that takes nine seconds to end, a report that a finalizer holds, and two plain pods.",
    );
    say("\nBefore anything is known, a forecast names what stands in the way, and what it has to assume:\n");
    shell.run(&["forecast", FIRST, "--timeout", "1m"]).await?;
    help(&store, &say).await?;
    say("\nThe drain, recorded:\n");
    shell.drain(FIRST).await?;
    shell.run(&["uncordon", FIRST, "--local"]).await?;
    all_ready(&store).await?;
    say("\nIts pods run on worker-2 now. Their times are known:\n");
    let known = ["--timeout", "10m", "--recordings", RECORDINGS];
    shell.run(&[&["forecast", SECOND], &known[..]].concat()).await?;
    say("\nWhat comes of it:\n");
    shell.drain(SECOND).await?;
    say("\nWhat it waited for:\n");
    let file = shell.recording_of(SECOND)?;
    shell.run(&["report", &file]).await?;
    say(
        "\nOn a cluster: `scupper forecast NODE`, which changes nothing, and `scupper report`, which also writes HTML.",
    );
    Ok(())
}

fn build(store: &Store) -> Result<(), StoreError> {
    let pods = WORKLOADS.iter().flat_map(|(namespace, name, pods, takes, _)| {
        (1..=*pods).map(move |number| {
            objects::pod(namespace, &format!("{name}-{number}"), FIRST)
                .owner_replicaset(name)
                .label("app", name)
                .takes(*takes)
                .build()
        })
    });
    let sets = WORKLOADS.iter().map(|(namespace, name, pods, takes, ready)| {
        let times = json!({ "testbed/takes": takes.to_string(), "testbed/ready": ready });
        objects::replica_set(namespace, name, *pods)
            .with("/spec/template/metadata/annotations", times)
            .with("/spec/template/metadata/labels", json!({ "app": name }))
            .build()
    });
    let report = objects::pod("reports", "monthly-1", FIRST)
        .owner_replicaset("monthly")
        .takes(0.5)
        .finalizer("reports.example.com/archive");
    let nodes = [FIRST, SECOND].map(|name| objects::node(name).build());
    let budgets = [
        objects::budget("shop", "cart", &[("app", "cart")], 2),
        objects::budget("db", "ledger", &[("app", "ledger")], 1),
    ];
    // The sets come after their pods, or they would create others.
    let all = nodes.into_iter().chain(pods).chain([report.build()]);
    all.chain(sets)
        .chain(budgets)
        .try_for_each(|object| store.apply(object).map(drop))
}

/// What an engineer does about what the forecast has named.
async fn help(store: &Store, say: &impl Fn(&str)) -> Result<(), DemoError> {
    say("\nTwo things stand in the way, and are put right:\n");
    say("$ kubectl -n db scale replicaset ledger --replicas 2");
    let scaled = store.edit("replicasets.apps", "db", "ledger", |set| {
        if let Some(replicas) = set.pointer_mut("/spec/replicas") {
            *replicas = json!(2);
        }
    });
    scaled.map_err(DemoError::Scene)?;
    say("$ kubectl -n reports patch pod monthly-1 --type=merge -p '{\"metadata\":{\"finalizers\":null}}'");
    let patched = store.edit("pods", "reports", "monthly-1", |pod| {
        if let Some(finalizers) = pod.pointer_mut("/metadata/finalizers") {
            *finalizers = json!([]);
        }
    });
    patched.map_err(DemoError::Scene)?;
    all_ready(store).await
}

/// Waits until all pods are there and every budget has counted them.
async fn all_ready(store: &Store) -> Result<(), DemoError> {
    let is_open = || {
        let budgets = store.list("poddisruptionbudgets.policy");
        let allowed = |budget: &serde_json::Value| budget.pointer("/status/disruptionsAllowed")?.as_i64();
        budgets.iter().all(|budget| allowed(budget) == Some(1))
    };
    let stuck = || DemoError::Stuck {
        event: "the replacement of the pods".to_owned(),
        message: "the budgets allow no eviction".to_owned(),
    };
    until(is_open).await.ok_or_else(stuck)
}

impl<'a> Shell<'a> {
    fn of(cluster: &ApiServer, output: &'a DemoOutput) -> Result<Self, DemoError> {
        let folder = tempfile::Builder::new().prefix("scupper-").tempdir();
        let folder = folder.map_err(DemoError::Folder)?;
        std::fs::write(folder.path().join("kubeconfig"), cluster.kubeconfig()).map_err(DemoError::Folder)?;
        let own = std::env::current_exe().map_err(DemoError::Folder)?;
        Ok(Self {
            scupper: own.with_file_name("scupper"),
            folder,
            output,
        })
    }

    /// Shows the command, runs it and shows what it prints.
    async fn run(&self, arguments: &[&str]) -> Result<(), DemoError> {
        let format = match self.output.format {
            Format::Human => &[][..],
            Format::Json => &["-o", "json"],
        };
        let typed = format!("scupper {}", arguments.join(" "));
        (self.output.speaker())(&format!("$ {typed}"));
        // The command writes to the same place.
        self.output.screen.written().await;
        let mut command = Command::new(&self.scupper);
        command
            .args([arguments, format].concat())
            .current_dir(self.folder.path())
            .env("KUBECONFIG", self.folder.path().join("kubeconfig"))
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let failed = |message: String| DemoError::Command {
            typed: typed.clone(),
            message,
        };
        match command.status().await {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(failed(status.to_string())),
            Err(error) => Err(failed(format!("{}: {error}", self.scupper.display()))),
        }
    }

    async fn drain(&self, node: &str) -> Result<(), DemoError> {
        let record = format!("{RECORDINGS}/");
        self.run(&["drain", node, "--local", "--record", &record]).await
    }

    /// The file of the drain of this node, below the folder.
    fn recording_of(&self, node: &str) -> Result<String, DemoError> {
        let directory: &Path = &self.folder.path().join(RECORDINGS);
        let files = std::fs::read_dir(directory).map_err(DemoError::Folder)?;
        let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
        let own = names.filter(|name| name.starts_with(&format!("{node}.")));
        let file = own.last().map(|name| format!("{RECORDINGS}/{name}"));
        file.ok_or_else(|| DemoError::Stuck {
            event: format!("the drain of {node}"),
            message: "it is not recorded".to_owned(),
        })
    }
}
