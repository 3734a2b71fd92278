//! The author of each part of a plan: a planner signs what it changed; the rest keeps its author.

use alloc::collections::BTreeMap;
use alloc::string::String;

use crate::{Decision, Plan, Uid, Verdict, Wave};

/// The plan that a policy made of the draft, signed.
pub fn signed(mut plan: Plan, draft: &Plan, policy: &str) -> Plan {
    let drafted: BTreeMap<&Uid, &Decision> = draft
        .decisions
        .iter()
        .map(|decision| (&decision.pod, decision))
        .collect();
    for decision in &mut plan.decisions {
        let before = drafted.get(&decision.pod);
        let same = before.filter(|old| is_same_decision(old, decision));
        decision.policy = same.map_or_else(|| String::from(policy), |old| old.policy.clone());
    }
    let verdicts: BTreeMap<Uid, Verdict> = plan
        .decisions
        .iter()
        .map(|decision| (decision.pod.clone(), decision.verdict))
        .collect();
    let leaves = |pod: &Uid| verdicts.get(pod).is_some_and(|verdict| verdict.leaves());
    // Behind the last wave that kept its place: one that comes sooner than it did has been moved.
    let mut behind = 0;
    for wave in &mut plan.waves {
        let known = draft.waves.iter().zip(0..).skip(behind);
        let same = known.into_iter().find(|(old, _)| is_same(old, wave, leaves));
        wave.policy = String::from(policy);
        if let Some((old, place)) = same {
            wave.policy.clone_from(&old.policy);
            behind = place + 1;
        }
    }
    plan
}

/// Only an explanation was added to it, if anything: who explains why a pod leaves has not decided it, and does not protect
/// the pod from later policies.
fn is_same_decision(old: &Decision, new: &Decision) -> bool {
    let why = new.reason.strip_suffix(old.reason.as_str());
    old.verdict == new.verdict && why.is_some_and(|why| why.is_empty() || why.ends_with("; "))
}

/// Nothing of it was changed, but that pods do not stand in it which are not to leave any more.
fn is_same(old: &Wave, new: &Wave, leaves: impl Fn(&Uid) -> bool) -> bool {
    let terms = |wave: &Wave| (wave.max_parallel, wave.timeout, wave.max_grace_seconds);
    old.name == new.name
        && terms(old) == terms(new)
        && old.pods.iter().filter(|pod| leaves(pod)).eq(new.pods.iter())
}
