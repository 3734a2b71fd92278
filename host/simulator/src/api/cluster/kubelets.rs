//! Simulates kubelets: pods start, become ready, complete, and end once deleted. Annotations of a pod control this, as on the real
//! testbed.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::super::delete::{self, DeleteOptions};
use super::super::fields::{self, annotation, number, text};
use super::super::store::Store;
use super::super::table::{Key, Table};
use super::{Gate, status};

/// An evicted mirror pod comes back after this time, as on a real kubelet.
const MIRROR_COMES_BACK: Duration = Duration::from_secs(86);

/// Runs until dropped.
pub(super) async fn run(store: Store, mut gate: Gate, takes: Duration) {
    let mut latest = store.latest();
    let mut pods = Pods {
        takes,
        seen: 0,
        lives: HashMap::new(),
        queue: BTreeSet::new(),
    };
    while gate.open().await {
        latest.mark_unchanged();
        pods.catch_up(&store);
        pods.run_due(&store);
        let next = pods.queue.first().map(|(at, _)| *at);
        tokio::select! {
            biased;
            changed = latest.changed() => if changed.is_err() { return },
            () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
        }
    }
}

/// The pods of all nodes.
struct Pods {
    takes: Duration,
    seen: u64,
    lives: HashMap<Key, Life>,
    queue: BTreeSet<(Instant, Key)>,
}

/// One pod as its kubelet sees it.
struct Life {
    uid: String,
    began: Instant,
    /// When this kubelet learned of the deletion.
    ending: Option<Instant>,
    due: Option<(Instant, Step)>,
}

/// A kubelet's next action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Start,
    Ready(bool),
    End { exit: i64 },
    Remove,
    Remake,
}

impl Pods {
    fn catch_up(&mut self, store: &Store) {
        store.read(|table| {
            let changed: Option<Vec<Key>> = table
                .since(self.seen)
                .filter(|_| self.seen > 0)
                .map(|all| all.map(|it| it.key.clone()).collect());
            let keys = match changed {
                Some(keys) if keys.iter().all(|it| it.resource != "nodes") => keys,
                _ => table.list("pods", None).map(|(key, _)| key.clone()).collect(),
            };
            for key in keys.into_iter().filter(|it| it.resource == "pods") {
                self.schedule(table, key);
            }
            self.seen = table.version;
        });
    }

    /// Decides again on a pod's next action.
    fn schedule(&mut self, table: &Table, key: Key) {
        if let Some((at, _)) = self.lives.get(&key).and_then(|it| it.due) {
            self.queue.remove(&(at, key.clone()));
        }
        let Some(pod) = table.get(&key) else {
            self.lives.remove(&key);
            return;
        };
        let now = Instant::now();
        let uid = text(pod, "/metadata/uid");
        let fresh = || Life {
            uid: uid.to_owned(),
            began: now,
            ending: None,
            due: None,
        };
        let life = self.lives.entry(key.clone()).or_insert_with(fresh);
        if life.uid != uid {
            *life = fresh();
        }
        let deleted = !text(pod, "/metadata/deletionTimestamp").is_empty();
        let alive = kubelet_runs(table, text(pod, "/spec/nodeName"));
        // A restarted kubelet grants the whole grace period again.
        life.ending = life.ending.or(Some(now)).filter(|_| deleted && alive);
        life.due = if alive { next(pod, life, self.takes) } else { None };
        if let Some((at, _)) = life.due {
            self.queue.insert((at, key));
        }
    }

    /// Performs due actions.
    fn run_due(&mut self, store: &Store) {
        let now = Instant::now();
        while let Some((at, key)) = self.queue.first().cloned().filter(|(at, _)| *at <= now) {
            self.queue.remove(&(at, key.clone()));
            let Some(life) = self.lives.get_mut(&key) else {
                continue;
            };
            if let Some((_, step)) = life.due.take() {
                let uid = life.uid.clone();
                store.write(|table| take_step(table, &key, &uid, step));
            }
        }
    }
}

/// A missing node counts as running, as tests may create pods alone.
fn kubelet_runs(table: &Table, node: &str) -> bool {
    let key = Key {
        resource: "nodes".to_owned(),
        namespace: String::new(),
        name: node.to_owned(),
    };
    !node.is_empty()
        && table
            .get(&key)
            .is_none_or(|it| fields::label(it, "testbed/kubelet") != Some("stopped"))
}

fn seconds(value: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(value.parse().ok()?).ok()
}

/// A pod's next action and its time.
fn next(pod: &Value, life: &Life, takes: Duration) -> Option<(Instant, Step)> {
    let phase = text(pod, "/status/phase");
    let finished = matches!(phase, "Succeeded" | "Failed");
    let exit = annotation(pod, "testbed/exit-code")
        .and_then(|it| it.parse().ok())
        .unwrap_or(0);
    if let Some(since) = life.ending {
        if annotation(pod, "testbed/stuck") == Some("true") {
            return None;
        }
        if annotation(pod, "kubernetes.io/config.mirror").is_some() {
            return Some((since + MIRROR_COMES_BACK, Step::Remake));
        }
        if finished || phase == "Pending" || phase.is_empty() {
            let removed = number(pod, "/metadata/deletionGracePeriodSeconds") == Some(0);
            return (!removed).then_some((since, Step::Remove));
        }
        let own = annotation(pod, "testbed/takes")
            .and_then(seconds)
            .unwrap_or(takes);
        let grace = number(pod, "/metadata/deletionGracePeriodSeconds").unwrap_or(0);
        let grace = Duration::from_secs(grace.try_into().unwrap_or(0));
        return Some(if own <= grace {
            (since + own, Step::End { exit })
        } else {
            (since + grace, Step::End { exit: 137 })
        });
    }
    if finished {
        return None;
    }
    if phase != "Running" {
        let starts = annotation(pod, "testbed/starts") != Some("false");
        return starts.then_some((life.began, Step::Start));
    }
    let ready = fields::condition(pod, "Ready").is_some_and(|it| text(it, "/status") == "True");
    let change = match annotation(pod, "testbed/ready") {
        None => None,
        Some("false") => ready.then_some((life.began, Step::Ready(false))),
        Some(after) => {
            let at = life.began + seconds(after).unwrap_or_default();
            (!ready).then_some((at, Step::Ready(true)))
        }
    };
    let completes = annotation(pod, "testbed/completes").and_then(seconds);
    let end = completes.map(|after| (life.began + after, Step::End { exit }));
    change.into_iter().chain(end).min_by_key(|(at, _)| *at)
}

fn take_step(table: &mut Table, key: &Key, uid: &str, step: Step) {
    let Some(old) = table
        .get(key)
        .filter(|it| text(it, "/metadata/uid") == uid)
        .cloned()
    else {
        return;
    };
    let now = table.clock.stamp();
    let mut pod = Value::clone(&old);
    match step {
        Step::Start => {
            let ready = matches!(annotation(&pod, "testbed/ready"), None | Some("true" | "0"));
            status::run(&mut pod, ready, &now);
        }
        Step::Ready(ready) => status::set_ready(&mut pod, ready, "", &now),
        Step::End { exit } => status::finish(&mut pod, exit, &now),
        Step::Remove => return remove(table, key, uid),
        Step::Remake => return remake(table, key, &old),
    }
    table.put(key.clone(), pod);
}

fn remove(table: &mut Table, key: &Key, uid: &str) {
    let options = DeleteOptions {
        grace: Some(0),
        uid: Some(uid.to_owned()),
        ..DeleteOptions::default()
    };
    if let Some(kind) = table.kind("pods") {
        // Another task has already done the same.
        drop(delete::delete(table, &kind, key, &options));
    }
}

/// Recreates the mirror of a static pod.
fn remake(table: &mut Table, key: &Key, old: &Arc<Value>) {
    remove(table, key, text(old, "/metadata/uid"));
    table.take(key);
    let mut pod = Value::clone(old);
    for field in [
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "resourceVersion",
    ] {
        fields::unset(&mut pod, &format!("/metadata/{field}"));
    }
    let uid = table.new_uid();
    fields::set(&mut pod, "/metadata/uid", uid.into());
    fields::set(
        &mut pod,
        "/metadata/creationTimestamp",
        table.clock.stamp().into(),
    );
    fields::set(&mut pod, "/status/conditions", json!([]));
    let now = table.clock.stamp();
    status::run(&mut pod, true, &now);
    table.put(key.clone(), pod);
}
