//! The Services whose endpoints leave, and what they lose.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use super::text::{NAMED, TEXT};
use scupper_common::text::one_line;
use scupper_engine::{HumanDuration, Pod};
use scupper_forecast::{Service, ServiceLoss, Situation};
use scupper_placement::Services;
use scupper_report::count;

/// Tells the situation which Services its pods serve.
pub(super) fn add(situation: &mut Situation, services: &Services) {
    let mut served: BTreeMap<(&str, &str), Service> = BTreeMap::new();
    let serves = |pod: &&Pod| pod.ready && pod.deletion.is_none();
    for pod in situation.pods.iter().filter(serves) {
        for service in services.of(&pod.id.namespace, &pod.labels) {
            let served = served.entry((&service.namespace, &service.name));
            let served = served.or_insert_with(|| Service {
                namespace: service.namespace.clone(),
                name: service.name.clone(),
                ready: service.ready,
                pods: BTreeSet::new(),
            });
            served.pods.insert(pod.id.uid.clone());
        }
    }
    situation.services = served.into_values().collect();
}

/// A line for each of those that lose more than half of their endpoints, the worst first, and one for the others.
pub(super) fn lines(losses: &[ServiceLoss]) -> Vec<String> {
    let mut losses: Vec<&ServiceLoss> = losses.iter().collect();
    losses.sort_by(|one, other| share(one).total_cmp(&share(other)));
    let worst = losses.partition_point(|loss| share(loss) < 0.5);
    let (worst, others) = losses.split_at(worst.min(NAMED));
    let more = match others {
        [] => None,
        [only] => Some(line(only)),
        [first, ..] if worst.is_empty() => Some(format!(
            "{} lose endpoints, most of all {}",
            count(others.len(), "Service"),
            line(first)
        )),
        others => Some(format!(
            "{} more that lose endpoints; -o json names them",
            others.len()
        )),
    };
    worst.iter().map(|loss| line(loss)).chain(more).collect()
}

/// What is left of all endpoints at worst.
fn share(loss: &ServiceLoss) -> f64 {
    let [_, fewest] = loss.fewest;
    fewest as f64 / loss.ready.max(1) as f64
}

/// `shop/db: 0 of 2 endpoints ready at worst, none for 12s (p90 40s), fewer than 2 for 31s (p90 1m10s)`
fn line(loss: &ServiceLoss) -> String {
    let name = one_line(&format!("{}/{}", loss.namespace, loss.name), TEXT);
    let [_, fewest] = loss.fewest;
    let endpoints = count(loss.ready, "endpoint");
    let none = (fewest == 0).then(|| format!(", none {}", spans(loss.none)));
    let missing = (fewest > 0 || loss.none != loss.missing)
        .then(|| format!(", fewer than {} {}", loss.ready, spans(loss.missing)));
    let [none, missing] = [none, missing].map(Option::unwrap_or_default);
    format!("{name}: {fewest} of {endpoints} ready at worst{none}{missing}")
}

/// `for 31s (p90 1m10s)`
fn spans([middle, late]: [Option<Duration>; 2]) -> String {
    match (middle, late) {
        (Some(middle), Some(late)) if middle == late => format!("for {}", HumanDuration(middle)),
        (Some(middle), Some(late)) => format!("for {} (p90 {})", HumanDuration(middle), HumanDuration(late)),
        (Some(middle), None) => format!("for {} (p90: for good)", HumanDuration(middle)),
        (None, _) => "for good".to_owned(),
    }
}

pub(super) fn document(loss: &ServiceLoss) -> Value {
    let [p50_fewest, p90_fewest] = loss.fewest;
    let seconds = |spans: [Option<Duration>; 2]| spans.map(|span| span.map(|span| span.as_secs_f64()));
    let ([p50_missing, p90_missing], [p50_none, p90_none]) = (seconds(loss.missing), seconds(loss.none));
    json!({
        "service": format!("{}/{}", loss.namespace, loss.name),
        "readyEndpoints": loss.ready,
        "p50FewestReady": p50_fewest,
        "p90FewestReady": p90_fewest,
        "p50MissingSeconds": p50_missing,
        "p90MissingSeconds": p90_missing,
        "p50NoneSeconds": p50_none,
        "p90NoneSeconds": p90_none,
    })
}
