//! What every plan must satisfy: the host's promises, which no policy can break.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

use crate::{Plan, PlanFault, Pod, Settings, Uid, Verdict, Wave};

/// Whether a plan for these pods holds: every pod decided once, every leaving pod in one wave, no mirror pod
/// leaving, the driver's own pod last and alone if it leaves at all.
pub fn check<'a>(
    plan: &Plan,
    pods: impl IntoIterator<Item = &'a Pod>,
    settings: &Settings,
) -> Result<(), PlanFault> {
    let on_node: BTreeMap<&Uid, &Pod> = pods.into_iter().map(|pod| (&pod.id.uid, pod)).collect();
    let verdicts = check_decisions(plan, &on_node)?;
    check_waves(plan, &verdicts)?;
    check_own_pod(plan, &verdicts, settings)
}

fn check_decisions<'a>(
    plan: &'a Plan,
    on_node: &BTreeMap<&'a Uid, &Pod>,
) -> Result<BTreeMap<&'a Uid, Verdict>, PlanFault> {
    let mut verdicts = BTreeMap::new();
    for decision in &plan.decisions {
        let Some(pod) = on_node.get(&decision.pod) else {
            return Err(PlanFault::Unknown(decision.pod.clone()));
        };
        if verdicts.insert(&decision.pod, decision.verdict).is_some() {
            return Err(PlanFault::DecidedTwice(decision.pod.clone()));
        }
        if pod.is_mirror() && decision.verdict.leaves() {
            return Err(PlanFault::MirrorLeaves(decision.pod.clone()));
        }
    }
    match on_node.keys().find(|uid| !verdicts.contains_key(*uid)) {
        Some(uid) => Err(PlanFault::Undecided((*uid).clone())),
        None => Ok(verdicts),
    }
}

fn check_waves(plan: &Plan, verdicts: &BTreeMap<&Uid, Verdict>) -> Result<(), PlanFault> {
    let mut names = BTreeSet::new();
    let mut placed = BTreeSet::new();
    for Wave {
        name,
        pods,
        max_parallel,
        ..
    } in &plan.waves
    {
        if name.is_empty() || !names.insert(name) {
            return Err(PlanFault::WaveName(name.clone()));
        }
        if *max_parallel == Some(0) {
            return Err(PlanFault::NoParallelism(name.clone()));
        }
        for uid in pods {
            match verdicts.get(uid) {
                None => return Err(PlanFault::Unknown(uid.clone())),
                Some(verdict) if !verdict.leaves() => return Err(PlanFault::StaysInWave(uid.clone())),
                Some(_) if !placed.insert(uid) => return Err(PlanFault::InTwoWaves(uid.clone())),
                Some(_) => {}
            }
        }
    }
    match plan.leaving().find(|decision| !placed.contains(&decision.pod)) {
        Some(decision) => Err(PlanFault::InNoWave(decision.pod.clone())),
        None => Ok(()),
    }
}

fn check_own_pod(
    plan: &Plan,
    verdicts: &BTreeMap<&Uid, Verdict>,
    settings: &Settings,
) -> Result<(), PlanFault> {
    let own = settings.own_pod.as_ref().map(|own| &own.uid);
    let Some(own) = own.filter(|uid| verdicts.get(uid).is_some_and(|verdict| verdict.leaves())) else {
        return Ok(());
    };
    let last = plan.waves.iter().rev().find(|wave| !wave.pods.is_empty());
    if last.is_some_and(|wave| wave.pods.iter().eq([own])) {
        Ok(())
    } else {
        Err(PlanFault::OwnPodNotLast(own.clone()))
    }
}

impl PlanFault {
    /// The error, with the pod's name if it is one of these.
    pub fn describe<'a>(&self, pods: impl IntoIterator<Item = &'a Pod>) -> String {
        let mut pods = pods.into_iter();
        let mut name = |uid: &Uid| match pods.find(|pod| pod.id.uid == *uid) {
            Some(pod) => format!("{} (UID {uid})", pod.id),
            None => uid.to_string(),
        };
        match self {
            Self::Undecided(uid) => format!("pod {} has no decision: every pod needs one", name(uid)),
            Self::DecidedTwice(uid) => {
                format!("pod {} has two decisions: every pod needs exactly one", name(uid))
            }
            Self::Unknown(uid) => {
                format!(
                    "pod {} is not on the node: name only pods that were given",
                    name(uid)
                )
            }
            Self::InNoWave(uid) => {
                format!(
                    "pod {} is to leave and stands in no wave: put it in one",
                    name(uid)
                )
            }
            Self::InTwoWaves(uid) => format!("pod {} stands in two waves: put it in one", name(uid)),
            Self::StaysInWave(uid) => format!("pod {} stays and stands in a wave: take it out", name(uid)),
            Self::MirrorLeaves(uid) => {
                format!(
                    "pod {} is the mirror of a static pod: it can only be kept",
                    name(uid)
                )
            }
            Self::OwnPodNotLast(uid) => format!(
                "pod {} is the driver itself: keep it, or put it alone in the last wave",
                name(uid)
            ),
            Self::WaveName(name) if name.is_empty() => String::from("a wave has no name: give it one"),
            Self::WaveName(name) => format!("two waves are called {name}: names must be unique"),
            Self::NoParallelism(name) => {
                format!("wave {name} lets no pod leave: max-parallel must not be 0")
            }
        }
    }
}

impl fmt::Display for PlanFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe([]))
    }
}

impl core::error::Error for PlanFault {}
