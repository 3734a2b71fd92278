//! What would stand in the way of a drain of a node, for `scupper doctor --node`: the plan of the driver's settings,
//! without policies.

use std::path::Path;

use scupper_api::facts::{FactKind, FactQuery, FactType as _};
use scupper_engine::{Budget, Plan, SurgePlan, Verdict, draft};
use scupper_pre_flight::{Finding as PreFlightFinding, Input, LocalVolumes, examine, surges};

use super::doctor::Finding;
use scupper_cluster::{Cluster, ReadError};
use scupper_common::clock::Clock;
use scupper_config::DrainSettings;
use scupper_report::{finding_text, surge_texts};
use scupper_runner::pre_flight::{read_local_volumes, read_namespaces};

const SUBJECT: &str = "pre-flight";

/// The driver's settings, from its configuration file if that can be read.
pub(super) fn settings(file: Option<&Path>) -> DrainSettings {
    let drain = file.and_then(|file| scupper_config::read(file).ok());
    let drain = drain.map(|read| read.drain).unwrap_or_default();
    DrainSettings::default().with(&drain)
}

/// What is found on the node.
pub(super) async fn of_node(cluster: &Cluster, node: &str, settings: &DrainSettings) -> Vec<Finding> {
    match found(cluster, node, settings).await {
        Ok((findings, surge)) if findings.is_empty() && surge.is_empty() => {
            let text = format!("nothing is known that would keep pods on {node} in a drain");
            vec![Finding::fine(SUBJECT, text)]
        }
        Ok((findings, surge)) => {
            let surges = surge_texts(&surge).into_iter();
            let surges = surges.map(|text| Finding::note(SUBJECT, text, String::new()));
            findings.iter().map(note).chain(surges).collect()
        }
        Err(error) => {
            let text = format!("what would keep pods on {node} in a drain is not known: {error}");
            vec![Finding::note(SUBJECT, text, String::new())]
        }
    }
}

async fn found(
    cluster: &Cluster,
    node: &str,
    drain: &DrainSettings,
) -> Result<(Vec<PreFlightFinding>, SurgePlan), ReadError> {
    let settings = &drain.engine;
    let pods = cluster.pods(node).await?;
    let budgets = cluster.ask(&FactQuery::all(FactKind::Budget)).await?;
    let budgets: Vec<_> = budgets.iter().filter_map(Budget::of).cloned().collect();
    let plan = draft(&pods, settings, Clock::System.now());
    let evicts = |uid| plan.decision(uid).is_some_and(|it| it.verdict == Verdict::Evict);
    let leaving = pods.iter().filter(|pod| evicts(&pod.id.uid));
    let names: std::collections::BTreeSet<_> = leaving.map(|pod| pod.id.namespace.clone()).collect();
    // A namespace that cannot be read makes nothing certain; the missing right is a finding of its own.
    let (namespaces, _) = read_namespaces(cluster, names, settings).await;
    let input = Input {
        pods: &pods,
        plan: &plan,
        settings,
        budgets: &budgets,
        time_left: drain.time_limit,
        namespaces: &namespaces,
        volumes: LocalVolumes::NONE,
    };
    let volumes = &read_local_volumes(cluster, node, &input.claims_of_leaving()).await;
    let surge = surges(&input);
    let plan = Plan {
        surge,
        ..plan.clone()
    };
    let plan = &plan;
    let findings = examine(&Input {
        plan,
        volumes,
        ..input
    });
    Ok((findings, plan.surge.clone()))
}

fn note(finding: &PreFlightFinding) -> Finding {
    let text = format!("{}: {}", finding.certainty, finding_text(finding));
    Finding::note(SUBJECT, text, finding.change.clone())
}
