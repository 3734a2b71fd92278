//! Findings about single pods: namespaces, finalizers, grace periods, single replicas.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::arithmetic::replicas_change;
use crate::namespace::{NamespaceState, Top};
use crate::{Concern, Finding, Input, likely};
use scupper_engine::{HumanDuration, Pod, PodRef, Uid};

pub(super) fn examine(input: &Input<'_>, findings: &mut Vec<Finding>) {
    let leaving = input.leaving();
    terminating_namespaces(input, &leaving, findings);
    finalizers(&leaving, findings);
    grace_periods(input, &leaving, findings);
    single_replicas(input, &leaving, findings);
}

fn terminating_namespaces(input: &Input<'_>, leaving: &[&Pod], findings: &mut Vec<Finding>) {
    let mut held: BTreeMap<&str, Vec<PodRef>> = BTreeMap::new();
    for pod in leaving.iter().filter(|pod| pod.deletion.is_none()) {
        if input.namespace(pod).is_some_and(|state| state.terminating) {
            held.entry(&pod.id.namespace).or_default().push(pod.id.clone());
        }
    }
    findings.extend(held.into_iter().map(|(namespace, pods)| {
        let reason = format!(
            "namespace {namespace} is being deleted: the API server refuses evictions in it, and its pods go with it"
        );
        likely(Concern::TerminatingNamespace, pods, reason, "")
    }));
}

fn finalizers(leaving: &[&Pod], findings: &mut Vec<Finding>) {
    let mut held: BTreeMap<String, Vec<PodRef>> = BTreeMap::new();
    for pod in leaving {
        let names: Vec<&str> = pod.lasting_finalizers().collect();
        if !names.is_empty() {
            held.entry(names.join(", ")).or_default().push(pod.id.clone());
        }
    }
    findings.extend(held.into_iter().map(|(names, pods)| {
        let reason = format!("the pod stays after its end until these finalizers are removed: {names}");
        let change = String::from("see that the controllers that set them run");
        likely(Concern::Finalizers, pods, reason, change)
    }));
}

fn grace_periods(input: &Input<'_>, leaving: &[&Pod], findings: &mut Vec<Finding>) {
    let Some(left) = input.time_left else { return };
    let caps = caps(input);
    let mut held: BTreeMap<u64, Vec<PodRef>> = BTreeMap::new();
    for pod in leaving
        .iter()
        .filter(|pod| pod.deletion.is_none() && !pod.is_finished())
    {
        let wanted = input.settings.grace_override(pod.grace_seconds);
        let wanted = wanted.unwrap_or(pod.grace_seconds);
        let seconds = caps.get(&pod.id.uid).map_or(wanted, |cap| wanted.min(*cap));
        if Duration::from_secs(seconds) > left {
            held.entry(seconds).or_default().push(pod.id.clone());
        }
    }
    findings.extend(held.into_iter().map(|(seconds, pods)| {
        let (grace, left) = (HumanDuration(Duration::from_secs(seconds)), HumanDuration(left));
        let reason = format!("the pod may take {grace} to end, and the drain only {left}");
        let change = format!("a deadline of more than {grace}, or a shorter grace period");
        likely(Concern::GracePeriod, pods, reason, change)
    }));
}

/// The longest grace period that a pod's wave allows.
fn caps<'a>(input: &Input<'a>) -> BTreeMap<&'a Uid, u64> {
    let waves = input.plan.waves.iter();
    let capped = waves.filter_map(|wave| Some((wave, wave.max_grace_seconds?)));
    let pods = capped.flat_map(|(wave, cap)| wave.pods.iter().map(move |uid| (uid, cap)));
    pods.collect()
}

/// Pods whose workload has no other; those that a budget holds are not repeated.
fn single_replicas(input: &Input<'_>, leaving: &[&Pod], findings: &mut Vec<Finding>) {
    let of_budgets = findings
        .iter()
        .filter(|finding| finding.concern == Concern::ClosedBudget);
    let held: BTreeSet<Uid> = of_budgets
        .flat_map(|finding| finding.pods.iter().map(|pod| pod.uid.clone()))
        .collect();
    for pod in leaving
        .iter()
        .filter(|pod| pod.deletion.is_none() && !pod.is_finished())
    {
        let Some(Top::Owner(owner)) = input.namespace(pod).map(|state: &NamespaceState| state.top(pod))
        else {
            continue;
        };
        let is_surged = input.plan.surge.of_pod(&pod.id.uid).is_some();
        if owner.replicas != Some(1) || held.contains(&pod.id.uid) || is_surged {
            continue;
        }
        let (kind, name) = (&owner.kind, &owner.name);
        let reason =
            format!("the pod is the only one of {kind} {name}, which is down until its replacement is ready");
        let change = replicas_change(kind, name, 1, 2);
        findings.push(likely(
            Concern::SingleReplica,
            Vec::from([pod.id.clone()]),
            reason,
            change,
        ));
    }
}
