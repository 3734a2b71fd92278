//! kube-rs against the simulator: the driver's operations, with the driver's library.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, EvictParams, ListParams, Patch, PatchParams, Preconditions, WatchParams};
use kube::core::WatchEvent;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use scupper_simulator::api::{ApiServer, Options, objects};
use serde_json::json;

async fn server() -> (ApiServer, Client) {
    let server = ApiServer::start(Options::default()).await.unwrap();
    let client = Client::try_from(server.client_config()).unwrap();
    (server, client)
}

#[tokio::test]
async fn it_lists_watches_patches_and_evicts() {
    let (server, client) = server().await;
    let store = server.store();
    store.apply(objects::node("node-1").build()).unwrap();
    for number in 0..3 {
        store
            .apply(
                objects::pod("default", &format!("web-{number}"), "node-1")
                    .owner_replicaset("web")
                    .build(),
            )
            .unwrap();
    }
    store
        .apply(objects::budget("default", "web", &[("app", "web")], 2))
        .unwrap();

    let nodes: Api<Node> = Api::all(client.clone());
    let patch = json!({"spec": {"unschedulable": true}});
    let node = nodes
        .patch("node-1", &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
    assert_eq!(node.spec.unwrap().unschedulable, Some(true));

    let everywhere: Api<Pod> = Api::all(client.clone());
    let pods = everywhere
        .list(&ListParams::default().fields("spec.nodeName=node-1"))
        .await
        .unwrap();
    assert_eq!(pods.items.len(), 3);
    let metadata = everywhere
        .list_metadata(&ListParams::default().labels("app=web").limit(2))
        .await
        .unwrap();
    assert_eq!(metadata.items.len(), 2);
    assert!(metadata.metadata.continue_.is_some());

    let version = pods.metadata.resource_version.clone().unwrap();
    let mut events = everywhere
        .watch(&WatchParams::default(), &version)
        .await
        .unwrap()
        .boxed();
    let pods: Api<Pod> = Api::namespaced(client, "default");
    wait_until(|| allowed(&server) == Some(1)).await;
    let evict = |uid: Option<String>| EvictParams {
        delete_options: Some(DeleteParams {
            preconditions: Some(Preconditions {
                uid,
                ..Preconditions::default()
            }),
            ..DeleteParams::default()
        }),
        ..EvictParams::default()
    };
    let uid = pods.get("web-0").await.unwrap().uid();
    pods.evict("web-0", &evict(uid)).await.unwrap();
    let refused = pods.evict("web-1", &evict(None)).await.unwrap_err();
    let kube::Error::Api(status) = refused else {
        panic!("{refused}")
    };
    assert_eq!((status.code, status.reason.as_str()), (429, "TooManyRequests"));
    let mut seen = Vec::new();
    while seen.last().is_none_or(|it| *it != "DELETED") {
        seen.push(match events.try_next().await.unwrap().unwrap() {
            WatchEvent::Modified(_) => "MODIFIED",
            WatchEvent::Deleted(_) => "DELETED",
            _ => "other",
        });
    }
    assert_eq!(seen, ["MODIFIED", "MODIFIED", "MODIFIED", "MODIFIED", "DELETED"]);
}

#[tokio::test]
async fn its_watcher_keeps_up_over_breaks_and_forgotten_history() {
    let (server, client) = server().await;
    let store = server.store();
    store
        .apply(objects::pod("default", "a", "node-1").build())
        .unwrap();
    let pods: Api<Pod> = Api::all(client);
    let config = watcher::Config::default().streaming_lists();
    let mut stream = watcher(pods, config).default_backoff().applied_objects().boxed();
    assert_eq!(stream.try_next().await.unwrap().unwrap().name_any(), "a");
    server.break_watches();
    store
        .apply(objects::pod("default", "b", "node-1").build())
        .unwrap();
    server.compact_history();
    let found = tokio::time::timeout(Duration::from_secs(60), async {
        loop {
            // The watcher restarts a failed watch.
            if let Ok(Some(pod)) = stream.try_next().await
                && pod.name_any() == "b"
            {
                return;
            }
        }
    });
    found.await.unwrap();
}

fn allowed(server: &ApiServer) -> Option<i64> {
    let budget = server
        .store()
        .get("poddisruptionbudgets.policy", "default", "web")?;
    budget.pointer("/status/disruptionsAllowed")?.as_i64()
}

async fn wait_until(done: impl Fn() -> bool) {
    let waited = tokio::time::timeout(Duration::from_secs(60), async {
        while !done() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    waited.await.unwrap();
}
