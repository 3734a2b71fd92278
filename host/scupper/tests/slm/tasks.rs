//! Every long-lived task of a driver is supervised: the first that ends, ends the driver with its name.

use std::error::Error;
use std::sync::Arc;

use scupper_driver::{KubeletPlugin, KubeletPluginOptions, PoliciesOptions};
use scupper_policy_reload::ReloadOptions;
use scupper_simulator::api::{self, ApiServer};
use scupper_traces::trace_settings;
use serde_json::json;
use tempfile::TempDir;

use crate::limit::LIMIT;
use crate::rig::NODE;

/// In the order of their start: a task is ended before those above it.
const TASKS: [&str; 17] = [
    "metrics and probes",
    "trace exporter",
    "policy reloader",
    "policy control socket",
    "policy notices",
    "policy checks",
    "node watch",
    "notice of a left taint",
    "notice of what is left to undo",
    "answers to plan checks",
    "condition cleanup",
    "cordon trigger",
    "DrainRequest trigger",
    "transition publisher",
    "LifecycleEvent warnings",
    "self-claim",
    "SLM trigger",
];

/// A driver with all its parts, without a kubelet.
async fn driver(api: &ApiServer) -> (KubeletPlugin, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    for dir in ["plugins", "plugins_registry"] {
        std::fs::create_dir(folder.path().join(dir)).unwrap();
    }
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, api.kubeconfig()).unwrap();
    let options = KubeletPluginOptions {
        connection: kubeconfig.into(),
        driver_name: "drain.test".to_owned(),
        node_name: NODE.to_owned(),
        kubelet_root: folder.path().to_owned(),
        metrics: Some(([127, 0, 0, 1], 0).into()),
        // Nothing listens there.
        traces: trace_settings(Some("http://127.0.0.1:9"), |_| None).unwrap(),
        policies: PoliciesOptions {
            reload: ReloadOptions {
                state: Some(folder.path().join("state")),
                ..ReloadOptions::default()
            },
            ..PoliciesOptions::default()
        },
        ..KubeletPluginOptions::default()
    };
    let output = Arc::new(|| Box::new(std::io::sink()) as _);
    let plugin = KubeletPlugin::start_with_output(options, output).await.unwrap();
    (plugin, folder)
}

async fn cluster() -> ApiServer {
    let api = ApiServer::start(api::Options::default()).await.unwrap();
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}});
    api.store().apply(node).unwrap();
    api
}

#[tokio::test]
async fn a_driver_has_exactly_these_tasks_and_stops_in_order() {
    let api = cluster().await;
    let (plugin, _folder) = driver(&api).await;
    let names: Vec<&str> = plugin.tasks().iter().map(|(name, _)| *name).collect();
    assert_eq!(names, TASKS);
    let tasks = plugin.tasks().to_vec();
    tokio::time::timeout(LIMIT, plugin.stop()).await.unwrap().unwrap();
    assert!(tasks.iter().all(|(_, task)| task.is_finished()));
}

/// Why a driver ends of which this task was ended; nothing if it goes on, or if some of its tasks do.
async fn end_without(api: &ApiServer, wanted: &str) -> Option<String> {
    let (plugin, _folder) = driver(api).await;
    let tasks = plugin.tasks().to_vec();
    tasks.iter().find(|(name, _)| *name == wanted)?.1.abort();
    let ended = tokio::time::timeout(LIMIT, plugin.run_until(std::future::pending()));
    let error = ended.await.ok()?.err()?;
    let cause = error.source().map(ToString::to_string);
    cause.filter(|_| tasks.iter().all(|(_, task)| task.is_finished()))
}

#[tokio::test]
async fn a_driver_ends_with_the_first_task_that_ends_and_names_it() {
    let api = cluster().await;
    // On the heap: a stack does not hold so many drivers.
    let ends = TASKS.map(|wanted| Box::pin(end_without(&api, wanted)));
    let ends = futures::future::join_all(ends).await;
    let expected = TASKS.map(|name| Some(format!("the task \"{name}\" ended while the driver runs")));
    assert_eq!(ends, expected);
}
