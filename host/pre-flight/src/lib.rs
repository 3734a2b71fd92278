//! Pre-flight arithmetic: what keeps pods of a plan on the node, or hurts when they go, found before anything changes.
//!
//! A finding is [`Certainty::Certain`] when waiting cannot help: its pods stay until someone changes a budget,
//! scales or rolls out a workload, adds other pods to a budget, or deletes or breaks the pods themselves. Whatever else
//! happens (pods elsewhere fail, recover, finish, are replaced), they stay. That needs to be known of the whole
//! namespace ([`NamespaceState`]); without it a finding is [`Certainty::Likely`]. Pods that the drain deletes shortly
//! before its deadline do not stay, so of them no finding is certain.
//!
//! It must not know clusters, clocks, or how a drain runs.
#![no_std]
#![deny(missing_docs)]
#![forbid(unsafe_code)]

extern crate alloc;

mod arithmetic;
mod budgets;
mod local_data;
mod namespace;
mod pods;
mod surge;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use scupper_engine::{
    Budget, GoverningBudget, HumanDuration, Plan, Pod, PodPhase, PodRef, Settings, Uid, Verdict,
};

pub use budgets::{BudgetChange, what_opens};
pub use local_data::LocalVolumes;
pub use namespace::{NamespaceState, Owner};
pub use surge::{Rollout, surges};

/// What is known before a drain.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The pods on the node.
    pub pods: &'a [Pod],
    /// What becomes of them.
    pub plan: &'a Plan,
    /// How they are evicted.
    pub settings: &'a Settings,
    /// All budgets.
    pub budgets: &'a [Budget],
    /// How long the drain may take; `None`: without limit.
    pub time_left: Option<Duration>,
    /// The namespaces that have been read, by name.
    pub namespaces: &'a BTreeMap<String, NamespaceState>,
    /// Which claims are on this node only, as far as that was read.
    pub volumes: &'a LocalVolumes,
}

/// How sure a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// As things stand the pods cannot leave.
    Certain,
    /// It may end by itself, or not enough is known.
    Likely,
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Concern {
    /// A budget blocks its pods even when all are healthy.
    ClosedBudget,
    /// More than one budget selects the pod, so the API server refuses its eviction.
    SeveralBudgets,
    /// The pod's namespace is being deleted, so the API server refuses its eviction.
    TerminatingNamespace,
    /// Finalizers keep the pod after its containers have ended.
    Finalizers,
    /// The pod's grace period is longer than the drain may take.
    GracePeriod,
    /// The pod is the only one of its workload.
    SingleReplica,
    /// The pod's data on the node is lost, or is on this node only.
    LocalData,
    /// The volume of one of the pod's claims is on this node only.
    LocalVolume,
    /// Whether the pod's volumes are on this node only could not be read.
    UnknownVolume,
}

/// Something that is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How sure it is.
    pub certainty: Certainty,
    /// What it is about.
    pub concern: Concern,
    /// The pods, by name.
    pub pods: Vec<PodRef>,
    /// The budgets, as `namespace/name`.
    pub budgets: Vec<String>,
    /// Why.
    pub reason: String,
    /// The smallest change that helps; empty: none is known.
    pub change: String,
}

fn likely(concern: Concern, pods: Vec<PodRef>, reason: String, change: impl Into<String>) -> Finding {
    Finding {
        certainty: Certainty::Likely,
        concern,
        pods,
        budgets: Vec::new(),
        reason,
        change: change.into(),
    }
}

/// Examines a plan. Certain findings come first. What a surge of the plan resolves is not among them.
pub fn examine(input: &Input<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    budgets::closed(input, &mut findings);
    budgets::several(input, &mut findings);
    pods::examine(input, &mut findings);
    local_data::examine(input, &mut findings);
    likely_if_forced(input, &mut findings);
    findings.sort_by_key(|finding| (finding.certainty, finding.concern));
    findings
}

/// Of pods that the drain deletes shortly before its deadline, no finding is certain.
fn likely_if_forced(input: &Input<'_>, findings: &mut Vec<Finding>) {
    let (Some(force), Some(_)) = (&input.settings.at_deadline, input.time_left) else {
        return;
    };
    let covered = input.leaving().into_iter().filter(|pod| {
        let decision = input.plan.decision(&pod.id.uid);
        decision.is_some_and(|decision| force.pods.covers(pod, decision.verdict))
    });
    let covered: BTreeSet<&Uid> = covered.map(|pod| &pod.id.uid).collect();
    let mut forced = Vec::new();
    for finding in findings.iter_mut() {
        if finding.certainty == Certainty::Certain {
            let is_covered = |pod: &PodRef| covered.contains(&pod.uid);
            let (pods, others): (Vec<_>, Vec<_>) = finding.pods.drain(..).partition(is_covered);
            let within = HumanDuration(force.within);
            forced.push(Finding {
                certainty: Certainty::Likely,
                pods,
                reason: format!(
                    "{}, so the pod remains until {within} before the deadline",
                    finding.reason
                ),
                ..finding.clone()
            });
            finding.pods = others;
        }
    }
    findings.append(&mut forced);
    findings.retain(|finding| !finding.pods.is_empty());
}

/// The namespaces whose state decides whether pods are certain to stay. None if budgets let all pods go by and by.
pub fn namespaces_in_doubt(input: &Input<'_>) -> BTreeSet<String> {
    let blind = Input {
        namespaces: &BTreeMap::new(),
        ..*input
    };
    let mut findings = Vec::new();
    budgets::closed(&blind, &mut findings);
    budgets::several(&blind, &mut findings);
    let pods = findings.into_iter().flat_map(|finding| finding.pods);
    pods.map(|pod| pod.namespace).collect()
}

/// The namespaces whose budgets may be open only because drains have raised Deployments, which take that back.
pub fn namespaces_if_raised(input: &Input<'_>) -> BTreeSet<String> {
    budgets::open_by_one(input)
        .map(|budget| budget.namespace.clone())
        .collect()
}

impl<'a> Input<'a> {
    /// The pods that are to leave, by name.
    fn leaving(&self) -> Vec<&'a Pod> {
        let leaves = |pod: &&Pod| {
            let decision = self.plan.decision(&pod.id.uid);
            decision.is_some_and(|decision| decision.verdict.leaves())
        };
        let mut pods: Vec<&Pod> = self.pods.iter().filter(leaves).collect();
        pods.sort_by(|one, other| one.id.cmp(&other.id));
        pods
    }

    /// Of these, the ones whose eviction budgets decide on.
    fn evicted(&self) -> Vec<(&'a Pod, GoverningBudget<'a>)> {
        let mut pods = self.leaving();
        pods.retain(|pod| {
            let decision = self.plan.decision(&pod.id.uid);
            decision.is_some_and(|decision| decision.verdict == Verdict::Evict)
        });
        let governed = |pod| (pod, GoverningBudget::of(pod, self.budgets));
        pods.into_iter().map(governed).collect()
    }

    fn namespace(&self, pod: &Pod) -> Option<&NamespaceState> {
        self.namespaces.get(&pod.id.namespace)
    }

    /// The namespace of these pods, if it was not read and could show that nothing but their eviction ends them.
    fn in_doubt<'p>(&self, pods: &[&'p Pod]) -> Option<&'p str> {
        let could_run = |pod: &&&Pod| {
            pod.phase == PodPhase::Running && pod.deletion.is_none() && pod.controller.is_some()
        };
        let pod = pods.iter().find(could_run)?;
        self.namespace(pod).is_none().then_some(pod.id.namespace.as_str())
    }

    /// Nothing but its eviction ends this pod: it runs, and its workload neither finishes nor removes it.
    fn runs_until_evicted(&self, pod: &Pod) -> bool {
        let is_kept = |state: &NamespaceState| !state.terminating && state.keeps(pod);
        pod.phase == PodPhase::Running && pod.deletion.is_none() && self.namespace(pod).is_some_and(is_kept)
    }
}

/// What follows the reason of a finding whose certainty is not known.
fn in_doubt(namespace: &str) -> String {
    format!(
        " (whether that is certain is not known: the workloads of namespace {namespace} could not be read)"
    )
}

impl fmt::Display for Certainty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Certain => "certain",
            Self::Likely => "likely",
        })
    }
}

impl Concern {
    /// In one CamelCase word, for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClosedBudget => "ClosedBudget",
            Self::SeveralBudgets => "SeveralBudgets",
            Self::TerminatingNamespace => "TerminatingNamespace",
            Self::Finalizers => "Finalizers",
            Self::GracePeriod => "GracePeriod",
            Self::SingleReplica => "SingleReplica",
            Self::LocalData => "LocalData",
            Self::LocalVolume => "LocalVolume",
            Self::UnknownVolume => "UnknownVolume",
        }
    }
}
