//! `scupper demo --forecast`: drains are forecast when nothing is known, and what stands in their way is put right. The times
//! of the first drain make the forecast of the next one, which is compared with what came. Then another policy is played on
//! what was recorded. All commands are those of users.

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
/// With room for what leaves the others.
const THIRD: &str = "worker-3";
/// The directory of the recordings, in the folder of the demo.
const RECORDINGS: &str = "recordings";
/// The configuration of the drains.
const CONFIG: (&str, &str) = ("scupper.yaml", include_str!("foresight.yaml"));
/// The policy of the drains, and one that is tried on their recordings.
const POLICIES: [&str; 2] = ["announce.wasm", "priority.wasm"];

/// A workload.
struct Workload {
    namespace: &'static str,
    name: &'static str,
    pods: u32,
    /// How long one of its pods takes to end, and to be ready elsewhere, in seconds.
    takes: f64,
    ready: &'static str,
    priority: i32,
}

const WORKLOADS: [Workload; 4] = [
    workload("shop", "cart", 3, (1.5, "4"), 0),
    workload("db", "ledger", 1, (2.0, "2"), 1000),
    workload("logs", "collector", 1, (9.0, "1"), 0),
    workload("web", "site", 2, (0.5, "1"), 0),
];

const fn workload(
    namespace: &'static str,
    name: &'static str,
    pods: u32,
    (takes, ready): (f64, &'static str),
    priority: i32,
) -> Workload {
    Workload {
        namespace,
        name,
        pods,
        takes,
        ready,
        priority,
    }
}

/// The commands, and what they work on.
struct Shell<'a> {
    scupper: PathBuf,
    folder: TempDir,
    output: &'a DemoOutput,
}

/// Runs it. `policies`: the folder with the components; `page`: where the page of the report goes.
pub(super) async fn run(policies: &Path, page: &Path, output: &DemoOutput) -> Result<(), DemoError> {
    let cluster = cluster_objects::cluster().await?;
    let store = cluster.store();
    build(&store).map_err(DemoError::Scene)?;
    let shell = Shell::of(&cluster, policies, output)?;
    let say = output.speaker();
    for line in [
        "A simulated cluster. On worker-1: a shop whose budget lets one pod go at a time, and which has a pod on worker-2 as well;",
        "a ledger with one replica and a budget that needs it; a collector that takes nine seconds to end; a report that a",
        "finalizer holds; a training job that needs eight GPUs; and a web site, a Service with two pods and no budget.",
        "\nBefore anything is known, a forecast names what stands in the way, and what it has to assume:\n",
    ] {
        say(line);
    }
    shell
        .run(&["forecast", FIRST, SECOND, "--timeout", "5m"], &[5])
        .await?;
    say("\nWith two minutes' notice to the owners of the pods, in a maintenance window of one minute:\n");
    let told = ["--notify-before", "2m", "--timeout", "1m"];
    shell
        .run(&[&["forecast", SECOND], &told[..]].concat(), &[7])
        .await?;
    help(&store, &say).await?;
    say("\nDrain worker-1 without notice, and record it; worker-2 follows later:\n");
    shell.drain(FIRST).await?;
    shell
        .run(&["uncordon", FIRST, "--local", "--config", CONFIG.0], &[0])
        .await?;
    all_ready(&store).await?;
    say("\nIts pods run on worker-2 now. Their times are known:\n");
    let known = [
        "--timeout",
        "10m",
        "--config",
        CONFIG.0,
        "--recordings",
        RECORDINGS,
    ];
    shell
        .run(&[&["forecast", SECOND], &known[..]].concat(), &[0])
        .await?;
    say("\nDrain worker-2, to compare:\n");
    shell.drain(SECOND).await?;
    say("\nWhat it waited for, in words and as a page:\n");
    let report = ["report", SECOND, "--recordings", RECORDINGS];
    shell.run(&report, &[0]).await?;
    let page = page.display().to_string();
    shell
        .run(&[&report[..], &["--html", &page]].concat(), &[0])
        .await?;
    say("\nWould evicting by priority have been better? Another policy, played on what was recorded:\n");
    let [used, tried] = POLICIES;
    let grant = ["--grant", "node-annotations:example.com/"];
    let diff = [&["policy", "diff", used, tried, "--on", RECORDINGS], &grant[..]].concat();
    // It differs.
    shell.run(&diff, &[8]).await?;
    say(
        "\nOn a cluster: `scupper forecast NODE` changes nothing; a driver records its drains by itself, and `scupper drains` lists them.",
    );
    Ok(())
}

fn build(store: &Store) -> Result<(), StoreError> {
    let pods = WORKLOADS
        .iter()
        .flat_map(|workload| (1..=workload.pods).map(move |number| pod(workload, number, FIRST)));
    let elsewhere = WORKLOADS
        .iter()
        .take(1)
        .map(|shop| pod(shop, shop.pods + 1, SECOND));
    let sets = WORKLOADS.iter().enumerate().map(|(number, workload)| {
        let times = json!({ "testbed/takes": workload.takes.to_string(), "testbed/ready": workload.ready });
        let pods = workload.pods + u32::from(number == 0);
        objects::replica_set(workload.namespace, workload.name, pods)
            .with("/spec/template/metadata/annotations", times)
            .with("/spec/template/metadata/labels", json!({ "app": workload.name }))
            .with("/spec/template/spec/priority", workload.priority)
            .build()
    });
    let report = objects::pod("reports", "monthly-1", FIRST)
        .owner_replicaset("monthly")
        .takes(0.5)
        .finalizer("reports.example.com/archive");
    let training = objects::pod("training", "pretrain-0", FIRST)
        .owner_statefulset("pretrain")
        .takes(0.5)
        .with(
            "/spec/containers",
            json!([{
                "name": "main", "image": "none",
                "resources": { "requests": { "nvidia.com/gpu": "8" } },
            }]),
        );
    let nodes = [(FIRST, "8"), (SECOND, "0"), (THIRD, "0")].map(|(name, gpus)| {
        let has = json!({ "cpu": "16", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": gpus });
        objects::node(name).with("/status/allocatable", has).build()
    });
    let budgets = [
        objects::budget("shop", "cart", &[("app", "cart")], 3),
        objects::budget("db", "ledger", &[("app", "ledger")], 1),
    ];
    // The sets come after their pods, or they would create others.
    let all = nodes.into_iter().chain(pods).chain(elsewhere);
    all.chain([report.build(), training.build()])
        .chain(sets)
        .chain(budgets)
        .chain([objects::service("web", "site", ("app", "site"))])
        .try_for_each(|object| store.apply(object).map(drop))
}

fn pod(workload: &Workload, number: u32, node: &str) -> serde_json::Value {
    objects::pod(workload.namespace, &format!("{}-{number}", workload.name), node)
        .owner_replicaset(workload.name)
        .label("app", workload.name)
        .takes(workload.takes)
        .priority(workload.priority)
        .build()
}

/// What an engineer does about what the forecast has named.
async fn help(store: &Store, say: &impl Fn(&str)) -> Result<(), DemoError> {
    say("\nFix by hand what Scupper must not decide:\n");
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
    say("$ kubectl -n training delete pod pretrain-0    # after its checkpoint");
    store.delete("pods", "training", "pretrain-0");
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
    fn of(cluster: &ApiServer, policies: &Path, output: &'a DemoOutput) -> Result<Self, DemoError> {
        let folder = tempfile::Builder::new().prefix("scupper-").tempdir();
        let folder = folder.map_err(DemoError::Folder)?;
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).map_err(DemoError::Folder)
        };
        write("kubeconfig", &cluster.kubeconfig())?;
        write(CONFIG.0, CONFIG.1)?;
        for policy in POLICIES {
            let copied = std::fs::copy(policies.join(policy), folder.path().join(policy));
            copied.map_err(DemoError::Folder)?;
        }
        let own = std::env::current_exe().map_err(DemoError::Folder)?;
        Ok(Self {
            scupper: own.with_file_name("scupper"),
            folder,
            output,
        })
    }

    /// Shows the command, runs it and shows what it prints. It must end with one of these codes.
    async fn run(&self, arguments: &[&str], codes: &[i32]) -> Result<(), DemoError> {
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
            .env("SCUPPER_LOG", "warn")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let failed = |message: String| DemoError::Command {
            typed: typed.clone(),
            message,
        };
        match command.status().await {
            Ok(status) if status.code().is_some_and(|code| codes.contains(&code)) => Ok(()),
            Ok(status) => Err(failed(status.to_string())),
            Err(error) => Err(failed(format!("{}: {error}", self.scupper.display()))),
        }
    }

    async fn drain(&self, node: &str) -> Result<(), DemoError> {
        let record = format!("{RECORDINGS}/");
        let drain = [
            "drain", node, "--local", "--config", CONFIG.0, "--record", &record,
        ];
        self.run(&drain, &[0]).await
    }
}
