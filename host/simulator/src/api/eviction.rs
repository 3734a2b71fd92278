//! The eviction of a pod: budgets, preconditions, retries.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::delete::{self, DeleteOptions};
use super::failure::Failure;
use super::fields::{self, number, text};
use super::kinds::Kind;
use super::selector;
use super::store::Store;
use super::table::{Key, Table};
use super::target::{Query, Target};
use super::write;

/// How often and at which interval the server retries a conflict: 10 s in total.
const TRIES: u32 = 20;
const BETWEEN: Duration = Duration::from_millis(500);

/// The reason of the condition that marks an evicted pod.
const DISRUPTION: &str = "EvictionByEvictionAPI";

/// The options of an eviction.
struct Request {
    target: Target,
    name: String,
    options: DeleteOptions,
}

/// Handles `POST …/pods/NAME/eviction`.
pub(crate) async fn evict(
    store: &Store,
    target: &Target,
    query: &Query,
    body: &Value,
) -> Result<Value, Failure> {
    let version = text(body, "/apiVersion");
    // A body may omit its kind.
    if !matches!(text(body, "/kind"), "" | "Eviction")
        || !matches!(version, "" | "policy/v1" | "policy/v1beta1")
    {
        let why = "the object provided is unrecognized (must be of type Eviction of policy/v1)";
        return Err(Failure::bad_request(why));
    }
    let name = target.name.clone().unwrap_or_default();
    if text(body, "/metadata/name") != name {
        return Err(Failure::bad_request(
            "name in URL does not match name in Eviction object",
        ));
    }
    let mut options = body
        .pointer("/deleteOptions")
        .map(DeleteOptions::parse)
        .unwrap_or_default();
    options.dry |= query.dry_run();
    let request = Request {
        target: target.clone(),
        name,
        options,
    };
    let mut tries = 0;
    loop {
        let done = store.write(|table| request.attempt(table));
        match done {
            Err(Attempt::Again(failure)) => {
                tries += 1;
                if tries >= TRIES {
                    return Err(failure);
                }
                sleep(BETWEEN).await;
            }
            Err(Attempt::Refused(failure)) => return Err(failure),
            Ok(()) => {
                return Ok(
                    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}),
                );
            }
        }
    }
}

/// Why an attempt has failed.
enum Attempt {
    /// A conflict that the server retries.
    Again(Failure),
    Refused(Failure),
}

impl From<Failure> for Attempt {
    fn from(failure: Failure) -> Self {
        Self::Refused(failure)
    }
}

impl Request {
    fn attempt(&self, table: &mut Table) -> Result<(), Attempt> {
        let kind = &self.target.kind;
        let key = self.target.key();
        write::check_namespace(table, kind, &key)?;
        let pod = table
            .get(&key)
            .cloned()
            .ok_or_else(|| Failure::not_found(kind, &self.name))?;
        if budget_does_not_matter(&pod) {
            return self
                .mark_and_delete(table, kind, &key)
                .map_err(|failure| match failure.code {
                    409 if self.options.version.is_none() => Attempt::Again(failure),
                    _ => Attempt::Refused(failure),
                });
        }
        if let Some(budget) = budget_of(table, &pod)? {
            spend(table, &pod, &budget, self.options.dry)?;
        }
        Ok(self.mark_and_delete(table, kind, &key)?)
    }

    fn mark_and_delete(&self, table: &mut Table, kind: &Kind, key: &Key) -> Result<(), Failure> {
        let mut options = self.options.clone();
        if !options.dry {
            let old = table
                .get(key)
                .cloned()
                .ok_or_else(|| Failure::not_found(kind, &self.name))?;
            options.check(kind, &old)?;
            let mut pod = Value::clone(&old);
            let now = table.clock.stamp();
            fields::set_condition(
                &mut pod,
                json!({"type": "DisruptionTarget", "status": "True", "reason": DISRUPTION,
                    "message": "Eviction API: evicting"}),
                &now,
            );
            if pod != *old {
                table.put(key.clone(), pod);
            }
            options.version = None;
        }
        delete::delete(table, kind, key, &options).map(|_deleted| ())
    }
}

fn budget_does_not_matter(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed" | "Pending")
        || !text(pod, "/metadata/deletionTimestamp").is_empty()
}

const BUDGETS: &str = "poddisruptionbudgets.policy";

/// The one budget that selects the pod.
fn budget_of(table: &Table, pod: &Value) -> Result<Option<Key>, Failure> {
    let namespace = text(pod, "/metadata/namespace");
    let mut found = table
        .list(BUDGETS, Some(namespace))
        .filter(|(_, budget)| selector::label_selector_matches(budget.pointer("/spec/selector"), pod))
        .map(|(key, _)| key.clone());
    let first = found.next();
    if found.next().is_none() {
        return Ok(first);
    }
    let why =
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    Err(Failure::new(500, "", why))
}

fn is_ready(pod: &Value) -> bool {
    fields::condition(pod, "Ready").is_some_and(|it| text(it, "/status") == "True")
}

/// Takes one disruption from the budget, or returns why there is none.
fn spend(table: &mut Table, pod: &Value, key: &Key, dry: bool) -> Result<(), Failure> {
    let Some(old) = table.get(key).cloned() else {
        return Ok(());
    };
    let status = |field: &str| number(&old, &format!("/status/{field}")).unwrap_or(0);
    if !is_ready(pod) {
        let always = text(&old, "/spec/unhealthyPodEvictionPolicy") == "AlwaysAllow";
        let (healthy, desired) = (status("currentHealthy"), status("desiredHealthy"));
        if always || (healthy >= desired && desired > 0) {
            return Ok(());
        }
    }
    check_allowed(&old, &key.name)?;
    if dry {
        return Ok(());
    }
    let mut budget = Value::clone(&old);
    let left = status("disruptionsAllowed") - 1;
    fields::set(&mut budget, "/status/disruptionsAllowed", left.into());
    let now = table.clock.stamp();
    if left == 0 {
        let generation = number(&budget, "/metadata/generation").unwrap_or(0);
        let condition = json!({"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods",
            "message": "", "observedGeneration": generation});
        fields::set_condition(&mut budget, condition, &now);
    }
    let pod = text(pod, "/metadata/name").to_owned();
    let mut disrupted = budget
        .pointer("/status/disruptedPods")
        .cloned()
        .unwrap_or_else(|| json!({}));
    if let Some(map) = disrupted.as_object_mut() {
        map.insert(pod, now.into());
    }
    fields::set(&mut budget, "/status/disruptedPods", disrupted);
    table.put(key.clone(), budget);
    Ok(())
}

/// With more entries than this the server refuses.
const MOST_DISRUPTED: usize = 2000;

fn check_allowed(budget: &Value, name: &str) -> Result<(), Failure> {
    let status = |field: &str| number(budget, &format!("/status/{field}")).unwrap_or(0);
    if status("observedGeneration") < number(budget, "/metadata/generation").unwrap_or(0) {
        let cause = format!("The disruption budget {name} is still being processed by the server.");
        return Err(too_many(&cause).retry_after(10));
    }
    let allowed = status("disruptionsAllowed");
    let disrupted = budget
        .pointer("/status/disruptedPods")
        .and_then(Value::as_object)
        .map_or(0, |it| it.len());
    if allowed < 0 {
        return Err(broken(
            name,
            "pdb disruptions allowed is negative",
            "pdb disruptions allowed is negative",
        ));
    }
    if disrupted > MOST_DISRUPTED {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(broken(
            name,
            why,
            "too many pending evictions not confirmed by PDB controller",
        ));
    }
    if allowed > 0 {
        return Ok(());
    }
    let condition =
        fields::condition(budget, "DisruptionAllowed").filter(|it| text(it, "/status") == "False");
    let (reason, message) = condition
        .map(|it| (text(it, "/reason"), text(it, "/message")))
        .unwrap_or_default();
    let (desired, healthy) = (status("desiredHealthy"), status("currentHealthy"));
    Err(too_many(&if reason == "SyncFailed" && !message.is_empty() {
        format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
        )
    } else if healthy <= desired {
        format!("The disruption budget {name} needs {desired} healthy pods and has {healthy} currently")
    } else if !message.is_empty() {
        format!("The disruption budget {name} does not allow evicting pods currently ({reason}): {message}")
    } else {
        format!("The disruption budget {name} does not allow evicting pods currently")
    }))
}

fn too_many(cause: &str) -> Failure {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    Failure::new(429, "TooManyRequests", message)
        .causes(json!([{"reason": "DisruptionBudget", "message": cause}]))
}

fn broken(name: &str, why: &str, cause: &str) -> Failure {
    let message = format!("poddisruptionbudget.policy \"{name}\" is forbidden: {why}");
    let cause = format!("The disruption budget {name} does not allow evicting pods currently: {cause}");
    Failure::new(403, "Forbidden", message)
        .details(json!({"name": name, "group": "policy", "kind": "poddisruptionbudget"}))
        .causes(json!([{"reason": "DisruptionBudget", "message": cause}]))
}
