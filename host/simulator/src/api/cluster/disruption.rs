//! Simulates the disruption controller: computes what each budget allows, and writes only the status of budgets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep, sleep_until};

use super::super::fields::{self, number, text};
use super::super::selector;
use super::super::store::Store;
use super::super::table::{Key, Table};
use super::Gate;

const BUDGETS: &str = "poddisruptionbudgets.policy";
/// A pod that is still there this long after its eviction counts again.
const FORGETS: Duration = Duration::from_secs(120);

/// The most pods seen of an owner that does not exist as an object.
type Peaks = BTreeMap<String, i64>;

/// Runs until dropped. Updates budgets `lag` after each change.
pub(super) async fn run(store: Store, mut gate: Gate, lag: Duration) {
    let mut latest = store.latest();
    let mut seen = 0;
    let mut peaks = Peaks::new();
    let mut next: Option<Instant> = None;
    while gate.open().await {
        latest.mark_unchanged();
        let all = next.is_some_and(|it| it <= Instant::now());
        // Later changes, including our own writes, are for the next round.
        let (touched, looked) = store.read(|table| (touched(table, seen, all), table.version));
        if !touched.is_empty() && lag > Duration::ZERO {
            sleep(lag).await;
            // It may have been paused meanwhile.
            if !gate.open().await {
                return;
            }
        }
        next = store.write(|table| {
            let soonest = touched
                .iter()
                .filter_map(|it| count_namespace(table, it, &mut peaks))
                .min();
            soonest
                .map(|it| Instant::now() + it)
                .or_else(|| next.filter(|_| !all))
        });
        seen = looked;
        tokio::select! {
            biased;
            changed = latest.changed() => if changed.is_err() { return },
            () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
        }
    }
}

/// The namespaces with a relevant change.
fn touched(table: &Table, seen: u64, all: bool) -> BTreeSet<String> {
    let matters = |key: &Key| {
        matches!(
            key.resource.as_str(),
            "pods" | BUDGETS | "replicasets.apps" | "statefulsets.apps" | "deployments.apps"
        )
    };
    match table.since(seen).filter(|_| seen > 0 && !all) {
        Some(changes) => changes
            .filter(|it| matters(&it.key))
            .map(|it| it.key.namespace.clone())
            .collect(),
        None => table
            .list(BUDGETS, None)
            .map(|(key, _)| key.namespace.clone())
            .collect(),
    }
}

/// Updates every budget of a namespace. Returns when the next entry of `disruptedPods` expires.
fn count_namespace(table: &mut Table, namespace: &str, peaks: &mut Peaks) -> Option<Duration> {
    let budgets: Vec<(Key, Arc<Value>)> = table
        .list(BUDGETS, Some(namespace))
        .map(|(key, it)| (key.clone(), Arc::clone(it)))
        .collect();
    if budgets.is_empty() {
        return None;
    }
    let pods: Vec<Arc<Value>> = table
        .list("pods", Some(namespace))
        .map(|(_, it)| Arc::clone(it))
        .collect();
    let mut soonest = None;
    for (key, old) in budgets {
        let mine: Vec<&Value> = pods
            .iter()
            .map(AsRef::as_ref)
            .filter(|pod| selector::label_selector_matches(old.pointer("/spec/selector"), pod))
            .collect();
        let (disrupted, forgets) = disrupted_pods(table, &old, &mine);
        soonest = soonest.into_iter().chain(forgets).min();
        let mut budget = Value::clone(&old);
        match expected(table, &old, &mine, peaks) {
            Ok(counts) => write_counts(table, &mut budget, &mine, disrupted, counts),
            Err(why) => write_failure(table, &mut budget, &why),
        }
        if budget != *old {
            table.put(key, budget);
        }
    }
    soonest
}

/// The entries that still count: the pod exists, is not terminating, and its eviction is recent.
fn disrupted_pods(table: &Table, budget: &Value, pods: &[&Value]) -> (Map<String, Value>, Option<Duration>) {
    let mut kept = Map::new();
    let mut soonest = None;
    let entries = budget.pointer("/status/disruptedPods").and_then(Value::as_object);
    for (name, since) in entries.into_iter().flatten() {
        let there = pods.iter().any(|pod| {
            text(pod, "/metadata/name") == name && text(pod, "/metadata/deletionTimestamp").is_empty()
        });
        let age = table.clock.since(since.as_str().unwrap_or_default());
        if there && age < FORGETS {
            kept.insert(name.clone(), since.clone());
            let left = FORGETS - age;
            soonest = soonest.into_iter().chain([left]).min();
        }
    }
    (kept, soonest)
}

/// The numbers of expected pods and of desired healthy pods.
struct Counts {
    expected: i64,
    desired: i64,
}

fn expected(table: &Table, budget: &Value, pods: &[&Value], peaks: &mut Peaks) -> Result<Counts, String> {
    let minimum = budget.pointer("/spec/minAvailable").filter(|it| !it.is_null());
    let maximum = budget.pointer("/spec/maxUnavailable").filter(|it| !it.is_null());
    if let Some(desired) = minimum.and_then(Value::as_i64) {
        return Ok(Counts {
            expected: i64::try_from(pods.len()).unwrap_or(i64::MAX),
            desired,
        });
    }
    let expected = scale(table, pods, peaks)?;
    let desired = match (minimum, maximum) {
        (Some(share), _) => part(share, expected),
        (None, Some(most)) => (expected - part(most, expected)).max(0),
        (None, None) => 0,
    };
    Ok(Counts { expected, desired })
}

/// A number, or a percentage of the whole rounded up.
fn part(value: &Value, whole: i64) -> i64 {
    let percent = value
        .as_str()
        .and_then(|it| it.strip_suffix('%'))
        .and_then(|it| it.parse::<i64>().ok());
    percent.map_or_else(
        || value.as_i64().unwrap_or(0),
        |it| (it * whole + 99).div_euclid(100),
    )
}

/// How many pods the owners want, together. Pods without an owner do not count.
fn scale(table: &Table, pods: &[&Value], peaks: &mut Peaks) -> Result<i64, String> {
    let mut owners: BTreeMap<String, i64> = BTreeMap::new();
    for pod in pods {
        let references = fields::items(pod, "/metadata/ownerReferences");
        let Some(owner) = references
            .iter()
            .find(|it| it.get("controller") == Some(&true.into()))
        else {
            continue;
        };
        let uid = text(owner, "/uid");
        if owners.contains_key(uid) {
            continue;
        }
        let resource = format!("{}s.apps", text(owner, "/kind").to_lowercase());
        let key = Key {
            resource,
            namespace: text(pod, "/metadata/namespace").to_owned(),
            name: text(owner, "/name").to_owned(),
        };
        let known = table.get(&key).and_then(|it| number(it, "/spec/replicas"));
        let wanted = match (known, text(owner, "/kind")) {
            (Some(replicas), _) => replicas,
            (None, "DaemonSet" | "Job") => {
                return Err(format!(
                    "found no controllers for pod \"{}\"",
                    text(pod, "/metadata/name")
                ));
            }
            (None, _) => peak(pods, uid, peaks),
        };
        owners.insert(uid.to_owned(), wanted);
    }
    Ok(owners.values().sum())
}

/// An owner that does not exist as an object wants as many pods as it ever had.
fn peak(pods: &[&Value], uid: &str, peaks: &mut Peaks) -> i64 {
    let of_owner = |pod: &Value| {
        fields::items(pod, "/metadata/ownerReferences")
            .iter()
            .any(|it| text(it, "/uid") == uid)
    };
    let now = pods.iter().filter(|pod| of_owner(pod)).count();
    let most = peaks.entry(uid.to_owned()).or_insert(0);
    *most = (*most).max(i64::try_from(now).unwrap_or(i64::MAX));
    *most
}

fn write_counts(
    table: &Table,
    budget: &mut Value,
    pods: &[&Value],
    disrupted: Map<String, Value>,
    counts: Counts,
) {
    let healthy = pods
        .iter()
        .filter(|pod| {
            text(pod, "/metadata/deletionTimestamp").is_empty()
                && !disrupted.contains_key(text(pod, "/metadata/name"))
                && fields::condition(pod, "Ready").is_some_and(|it| text(it, "/status") == "True")
        })
        .count();
    let healthy = i64::try_from(healthy).unwrap_or(i64::MAX);
    let allowed = if counts.expected == 0 {
        0
    } else {
        (healthy - counts.desired).max(0)
    };
    for (field, value) in [
        ("disruptionsAllowed", allowed),
        ("currentHealthy", healthy),
        ("desiredHealthy", counts.desired),
        ("expectedPods", counts.expected),
    ] {
        fields::set(budget, &format!("/status/{field}"), value.into());
    }
    if disrupted.is_empty() {
        fields::unset(budget, "/status/disruptedPods");
    } else {
        fields::set(budget, "/status/disruptedPods", Value::Object(disrupted));
    }
    let (status, reason) = if allowed > 0 {
        ("True", "SufficientPods")
    } else {
        ("False", "InsufficientPods")
    };
    write_condition(table, budget, status, reason, "");
}

fn write_failure(table: &Table, budget: &mut Value, why: &str) {
    fields::set(budget, "/status/disruptionsAllowed", 0.into());
    write_condition(table, budget, "False", "SyncFailed", why);
}

fn write_condition(table: &Table, budget: &mut Value, status: &str, reason: &str, message: &str) {
    let generation = number(budget, "/metadata/generation").unwrap_or(0);
    fields::set(budget, "/status/observedGeneration", generation.into());
    let condition = json!({"type": "DisruptionAllowed", "status": status, "reason": reason, "message": message,
        "observedGeneration": generation});
    fields::set_condition(budget, condition, &table.clock.stamp());
}
