//! Simulates the attach-detach controller and its drivers: a VolumeAttachment is removed once no pod of its node uses the
//! claim of its volume. Its annotation `testbed/detaches` says how many seconds that takes; `never`: it stays.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use super::super::delete::{self, DeleteOptions};
use super::super::fields::{annotation, items, text};
use super::super::store::Store;
use super::super::table::{Key, Table};
use super::Gate;

const ATTACHMENTS: &str = "volumeattachments.storage.k8s.io";

/// Runs until dropped.
pub(super) async fn run(store: Store, mut gate: Gate) {
    let mut latest = store.latest();
    let mut due = HashMap::new();
    while gate.open().await {
        latest.mark_unchanged();
        let now = Instant::now();
        due = store.read(|table| unused(table, &due, now));
        for name in due.iter().filter(|(_, at)| **at <= now).map(|(name, _)| name) {
            store.write(|table| detach(table, name));
        }
        let next = due.values().filter(|at| **at > now).min().copied();
        tokio::select! {
            biased;
            changed = latest.changed() => if changed.is_err() { return },
            () = sleep_until(next.unwrap_or(now)), if next.is_some() => {}
        }
    }
}

/// The attachments that no pod needs, and when each is removed. `known`: those from an earlier call.
fn unused(table: &Table, known: &HashMap<String, Instant>, now: Instant) -> HashMap<String, Instant> {
    let mut due = HashMap::new();
    for (key, attachment) in table.list(ATTACHMENTS, None) {
        let after = match annotation(attachment, "testbed/detaches") {
            Some("never") => continue,
            Some(seconds) => seconds.parse().ok(),
            None => None,
        };
        if !is_used(table, attachment) {
            let after = Duration::try_from_secs_f64(after.unwrap_or(0.0)).unwrap_or_default();
            let at = known.get(&key.name).copied().unwrap_or(now + after);
            due.insert(key.name.clone(), at);
        }
    }
    due
}

fn is_used(table: &Table, attachment: &Value) -> bool {
    let node = text(attachment, "/spec/nodeName");
    let volume = Key {
        resource: "persistentvolumes".to_owned(),
        namespace: String::new(),
        name: text(attachment, "/spec/source/persistentVolumeName").to_owned(),
    };
    let Some(volume) = table.get(&volume) else {
        return false;
    };
    let (namespace, claim) = (
        text(volume, "/spec/claimRef/namespace"),
        text(volume, "/spec/claimRef/name"),
    );
    let mut pods = table.list("pods", Some(namespace));
    pods.any(|(_, pod)| {
        let mut volumes = items(pod, "/spec/volumes").iter();
        text(pod, "/spec/nodeName") == node
            && volumes.any(|it| text(it, "/persistentVolumeClaim/claimName") == claim)
    })
}

fn detach(table: &mut Table, name: &str) {
    let key = Key {
        resource: ATTACHMENTS.to_owned(),
        namespace: String::new(),
        name: name.to_owned(),
    };
    if let Some(kind) = table.kind(ATTACHMENTS) {
        // Another client has already done the same.
        drop(delete::delete(table, &kind, &key, &DeleteOptions::default()));
    }
}
