//! `scupper demo --stuck`: two drains that are stuck for three reasons, and how `scupper plan` and `scupper status` explain
//! each.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use scupper_simulator::api::{Store, StoreError, objects};
use scupper_simulator::slinky;
use serde_json::json;

use super::demo_cluster::{AbortOnDrop, DRIVER, DemoCluster, DemoError, until};
use super::{DemoOutput, cluster_objects, policies, reported};
use scupper_report::{Format, STATUS_ANNOTATION};
use scupper_runner::reporter::Output;
use scupper_screen::PrefixedWriter;

const SHOP: &str = "worker-1";
const SLURM: &str = "worker-2";
const SPARE: &str = "worker-3";

/// The shop's replicas, all of them on its node. Its budget needs each.
const CARTS: u32 = 3;

/// What each driver must report before the demo shows its status.
const HOLDS: [(&str, &[&str]); 2] = [
    (SHOP, &["BudgetExhausted", "TerminatingPastGrace"]),
    (SLURM, &["HookRunning"]),
];

/// Runs it: stuck, examined, and fixed.
pub(super) async fn run(policy: &Path, output: &DemoOutput) -> Result<(), DemoError> {
    let cluster = cluster_objects::cluster().await?;
    let cluster = Arc::new(cluster);
    let store = cluster.store();
    build(&store).map_err(DemoError::Scene)?;
    let say = output.speaker();
    let report = say.clone();
    let operator = slinky::run(cluster.store(), move |happening| report(&reported(&happening)));
    let _operator = AbortOnDrop(tokio::spawn(operator));
    say(
        "A simulated cluster whose drains get stuck. On worker-1 a shop has three replicas and a budget that needs all of them,",
    );
    say(
        "and no controller removes the finalizer of a report. On worker-2 a Slurm worker has a job of one hour.",
    );
    let shop = DemoCluster::set_with_output(
        Arc::clone(&cluster),
        SHOP,
        policies(policy),
        output.format,
        lines_of(SHOP, output),
    )
    .await?;
    let slurm = DemoCluster::set_with_output(
        cluster,
        SLURM,
        policies(policy),
        output.format,
        lines_of(SLURM, output),
    )
    .await?;
    say("\nWould worker-1 become empty?");
    typed(&["plan", SHOP], &shop, output).await?;
    say("\nNot by itself. Drained all the same, by two LifecycleEvents:");
    say("$ kubectl create -f drain-worker-1.yaml -f drain-worker-2.yaml");
    shop.ask("drain-worker-1", DRIVER)?;
    slurm.ask("drain-worker-2", DRIVER)?;
    held_up(&store).await?;

    say("\nWho waits on this cluster, and for what?");
    typed(&["status"], &shop, output).await?;
    say("");
    typed(&["status", SHOP, SLURM], &shop, output).await?;

    say("\nWhat ends the three waits; the last command is Slurm's own:");
    help(&store, &say).map_err(DemoError::Scene)?;
    shop.ended("drain-worker-1").await?;
    slurm.ended("drain-worker-2").await?;
    say("\nBoth drains have ended. On a cluster: `scupper status NODE --watch`.");
    shop.clear().await?;
    slurm.clear().await
}

fn build(store: &Store) -> Result<(), StoreError> {
    let carts = (1..=CARTS).map(|number| {
        objects::pod("shop", &format!("cart-{number}"), SHOP)
            .owner_replicaset("cart")
            .label("app", "cart")
            .build()
    });
    let report = objects::pod("reports", "monthly-1", SHOP)
        .owner_replicaset("monthly")
        .grace(1);
    let site = objects::pod("web", "site-1", SHOP)
        .owner_replicaset("site")
        .takes(0.4);
    let worker = objects::pod("slurm", "gpu-0", SLURM)
        .slurm(&["Allocated"])
        .owner_statefulset("gpu");
    let objects = [
        objects::node(SHOP).build(),
        objects::node(SLURM).build(),
        objects::node(SPARE).build(),
        objects::budget("shop", "cart", &[("app", "cart")], CARTS),
        objects::replica_set("shop", "cart", CARTS)
            .with(
                "/status",
                json!({"observedGeneration": 1, "replicas": CARTS, "readyReplicas": CARTS}),
            )
            .build(),
        report.takes(0.4).finalizer("reports.example.com/archive").build(),
        site.build(),
        worker.annotation("testbed/job-ends", "3600").build(),
    ];
    carts
        .chain(objects)
        .try_for_each(|object| store.apply(object).map(drop))
}

fn lines_of(node: &'static str, output: &DemoOutput) -> Output {
    let output = output.clone();
    Arc::new(move || {
        let out = output.lines();
        match output.format {
            Format::Human => Box::new(PrefixedWriter::new(format!("{node}  "), out)),
            Format::Json => out,
        }
    })
}

/// Waits until the drivers have reported all three.
async fn held_up(store: &Store) -> Result<(), DemoError> {
    let tells = |node: &str, reasons: &[&str]| {
        let node = store.get("nodes", "", node).unwrap_or_default();
        let annotations = node.pointer("/metadata/annotations");
        let view = annotations
            .and_then(|all| all.get(STATUS_ANNOTATION)?.as_str())
            .unwrap_or_default();
        reasons.iter().all(|reason| view.contains(reason))
    };
    let all = || HOLDS.iter().all(|(node, reasons)| tells(node, reasons));
    let stuck = || DemoError::Stuck {
        event: "the three ways to be stuck".to_owned(),
        message: "the drivers have not reported them".to_owned(),
    };
    until(all).await.ok_or_else(stuck)
}

/// Runs a command of `scupper` as it is typed.
async fn typed(words: &[&str], cluster: &DemoCluster, output: &DemoOutput) -> Result<(), DemoError> {
    let line = format!("scupper {}", words.join(" "));
    output.speaker()(&format!("$ {line}"));
    // A command prints past the screen.
    output.screen.written().await;
    let kubeconfig = cluster.kubeconfig();
    let format = match output.format {
        Format::Human => "human",
        Format::Json => "json",
    };
    let arguments = words.iter().copied().map(OsStr::new);
    let arguments = arguments.chain(["--output", format, "--kubeconfig"].map(OsStr::new));
    let ran = scupper::typed(arguments.chain([kubeconfig.as_os_str()]), &output.screen).await;
    ran.map(drop).map_err(|error| DemoError::Command {
        typed: line,
        message: error.to_string(),
    })
}

/// The engineer's commands, and their results.
fn help(store: &Store, say: &impl Fn(&str)) -> Result<(), StoreError> {
    say("$ kubectl -n shop scale replicaset cart --replicas 4");
    store.edit("replicasets.apps", "shop", "cart", |set| {
        if let Some(replicas) = set.pointer_mut("/spec/replicas") {
            *replicas = json!(CARTS + 1);
        }
    })?;
    say("$ kubectl -n reports patch pod monthly-1 --type=merge -p '{\"metadata\":{\"finalizers\":null}}'");
    store.delete("pods", "reports", "monthly-1");
    say(
        "$ kubectl exec -n slurm slurm-controller-0 -- scancel --nodelist gpu-0    # if the owner of the job agrees",
    );
    store.edit("pods", "slurm", "gpu-0", |pod| {
        cluster_objects::annotate(pod, "testbed/job-ends", "0");
    })?;
    Ok(())
}
