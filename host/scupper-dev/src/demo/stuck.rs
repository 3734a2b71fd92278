//! `scupper demo --stuck`: two drains that are stuck for three reasons, and how `scupper status` explains each.

use std::path::Path;
use std::sync::Arc;

use scupper_simulator::api::{Store, StoreError, objects};
use scupper_simulator::slinky;
use serde_json::json;

use super::demo_cluster::{AbortOnDrop, DRIVER, DemoCluster, DemoError, until};
use super::{DemoOutput, cluster_objects, policies, reported};
use scupper::{StatusNews, StatusOptions};
use scupper_cluster::LEASE_NAMESPACE;
use scupper_common::clock::Clock;
use scupper_driver::{NodeSelection, Output};
use scupper_report::{Format, PodList, STATUS_ANNOTATION, status_lines, status_to_json};
use scupper_screen::PrefixedWriter;

const SHOP: &str = "worker-1";
const SLURM: &str = "worker-2";
const SPARE: &str = "worker-3";

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
        "A simulated cluster whose drains get stuck. On worker-1 a shop has one replica and a budget that needs it, and no",
    );
    say("controller removes the finalizer of a report. On worker-2 a Slurm worker has a job of one hour.");
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
    say("\n$ kubectl create -f drain-worker-1.yaml -f drain-worker-2.yaml");
    shop.ask("drain-worker-1", DRIVER)?;
    slurm.ask("drain-worker-2", DRIVER)?;
    held_up(&store).await?;

    say("\n$ scupper status worker-1 worker-2");
    show_status(&shop, output).await?;

    say("\nThe three next commands, one for each:");
    help(&store, &say).map_err(DemoError::Scene)?;
    shop.ended("drain-worker-1").await?;
    slurm.ended("drain-worker-2").await?;
    say("\nBoth drains have ended. On a cluster: `scupper status NODE --watch`.");
    shop.clear().await?;
    slurm.clear().await
}

fn build(store: &Store) -> Result<(), StoreError> {
    let cart = objects::pod("shop", "cart-1", SHOP)
        .owner_replicaset("cart")
        .label("app", "cart");
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
        objects::budget("shop", "cart", &[("app", "cart")], 1),
        cart.build(),
        objects::replica_set("shop", "cart", 1)
            .with(
                "/status",
                json!({"observedGeneration": 1, "replicas": 1, "readyReplicas": 1}),
            )
            .build(),
        report.takes(0.4).finalizer("reports.example.com/archive").build(),
        site.build(),
        worker.annotation("testbed/job-ends", "3600").build(),
    ];
    objects
        .into_iter()
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

async fn show_status(demo_cluster: &DemoCluster, output: &DemoOutput) -> Result<(), DemoError> {
    let clock = Clock::System;
    let options = StatusOptions {
        connection: demo_cluster.kubeconfig().into(),
        nodes: NodeSelection::Named(vec![SHOP.to_owned(), SLURM.to_owned()]),
        clock,
        lease_namespace: LEASE_NAMESPACE.to_owned(),
        watch: false,
    };
    let report = |news: StatusNews<'_>| {
        let StatusNews::Status(status) = news else {
            return;
        };
        let now = clock.now();
        output.screen.print(&match output.format {
            Format::Human => status_lines(status, now, PodList::default()).join("\n"),
            Format::Json => status_to_json(status, now).to_string(),
        });
    };
    scupper::status(options, report).await.map_err(DemoError::Status)
}

/// The engineer's commands, and their results.
fn help(store: &Store, say: &impl Fn(&str)) -> Result<(), StoreError> {
    say("$ kubectl -n shop scale replicaset cart --replicas 2");
    store.edit("replicasets.apps", "shop", "cart", |set| {
        if let Some(replicas) = set.pointer_mut("/spec/replicas") {
            *replicas = json!(2);
        }
    })?;
    say("$ kubectl -n reports patch pod monthly-1 --type=merge -p '{\"metadata\":{\"finalizers\":null}}'");
    store.delete("pods", "reports", "monthly-1");
    say("$ kubectl exec -n slurm slurm-controller-0 -- scancel --nodelist gpu-0");
    store.edit("pods", "slurm", "gpu-0", |pod| {
        cluster_objects::annotate(pod, "testbed/job-ends", "0");
    })?;
    Ok(())
}
