//! Simulates the namespace controller: empties a terminating namespace, then removes it.

use super::super::delete::{self, DeleteOptions};
use super::super::fields::text;
use super::super::store::Store;
use super::super::table::{Key, Table};
use super::Gate;

/// Runs until dropped.
pub(super) async fn run(store: Store, mut gate: Gate) {
    let mut latest = store.latest();
    while gate.open().await {
        latest.mark_unchanged();
        if store.read(|table| !going(table).is_empty()) {
            store.write(|table| {
                for key in going(table) {
                    empty(table, &key);
                }
            });
        }
        if latest.changed().await.is_err() {
            return;
        }
    }
}

fn going(table: &Table) -> Vec<Key> {
    let all = table.list("namespaces", None);
    all.filter(|(_, it)| !text(it, "/metadata/deletionTimestamp").is_empty())
        .map(|(key, _)| key.clone())
        .collect()
}

/// Deletes the content of the namespace, and then the namespace.
fn empty(table: &mut Table, namespace: &Key) {
    let mut left = 0;
    for kind in table.kinds.clone().into_iter().filter(|it| it.namespaced) {
        let inside: Vec<(Key, bool)> = table
            .list(&kind.resource(), Some(&namespace.name))
            .map(|(key, it)| (key.clone(), text(it, "/metadata/deletionTimestamp").is_empty()))
            .collect();
        for (key, fresh) in inside {
            let gone = fresh
                && delete::delete(table, &kind, &key, &DeleteOptions::default()).is_ok_and(|it| it.gone);
            left += usize::from(!gone);
        }
    }
    if left == 0 {
        table.take(namespace);
    }
}
