//! A summary of a plan for people who follow a drain: how many pods are evicted and kept, in which waves, and why pods
//! are kept.

use std::collections::BTreeMap;

use scupper_engine::{Plan, Uid, Verdict, and_more};

use super::SurgeSummary;
use crate::messages::{count, one_line};

/// Number of pods that are named per group.
const SHOWN: usize = 6;

/// A summary of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanSummary {
    /// Number of pods to be evicted.
    pub leaving: u32,
    /// Number of pods that are kept.
    pub staying: u32,
    /// The waves, in order.
    pub waves: Vec<PodGroup>,
    /// The pods that are kept, by reason.
    pub stays: Vec<PodGroup>,
    /// The pods that may not leave, by reason. The drain waits until they are gone.
    pub refused: Vec<PodGroup>,
    /// The restarts of Deployments.
    pub surge: SurgeSummary,
}

/// Pods with the same wave or the same reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodGroup {
    /// The wave's name, or the reason why the pods are kept or may not leave.
    pub what: String,
    /// The policy that decided this.
    pub policy: String,
    /// The first pods of the group.
    pub pods: Vec<Uid>,
    /// Number of further pods.
    pub more: u32,
}

impl PlanSummary {
    /// Summarizes a plan.
    pub fn of(plan: &Plan) -> Self {
        let leaving = plan.leaving().count();
        let waves = plan.waves.iter();
        let waves = waves.map(|wave| PodGroup::of(&wave.name, &wave.policy, &wave.pods));
        let kept = plan.decisions.iter();
        let kept = kept.filter(|decision| decision.verdict == Verdict::Keep);
        Self {
            leaving: number(leaving),
            staying: number(kept.count()),
            waves: waves.collect(),
            stays: by_reason(plan, Verdict::Keep),
            refused: by_reason(plan, Verdict::Refuse),
            surge: SurgeSummary::of(&plan.surge),
        }
    }

    /// The summary in one line, for people.
    pub fn head(&self) -> String {
        let (leaving, waves) = (
            count(self.leaving as usize, "pod"),
            count(self.waves.len(), "wave"),
        );
        let refused: usize = self.refused.iter().map(PodGroup::len).sum();
        let refused = match refused {
            0 => String::new(),
            refused => format!(", {refused} may not leave"),
        };
        format!("{leaving} to evict in {waves}, {} to keep{refused}", self.staying)
    }

    /// The lines below the summary: one for each wave, and one for each reason to keep pods or not to let them leave.
    pub fn groups(&self, name: impl Fn(&Uid) -> Option<String>) -> Vec<String> {
        let pods = |group: &PodGroup| {
            let names: Vec<_> = group.pods.iter().filter_map(&name).collect();
            // Pods that are gone have no name any more.
            let more = group.pods.len() - names.len() + group.more as usize;
            match names.is_empty() {
                true => count(more, "pod"),
                false => names.join(", ") + &and_more(more),
            }
        };
        let mut lines = Vec::new();
        for (place, wave) in self.waves.iter().enumerate() {
            lines.push(format!(
                "wave {} {}: {}",
                place + 1,
                one_line(&wave.what),
                pods(wave)
            ));
        }
        let stays = self.stays.iter().map(|group| ("stays", group));
        let refused = self.refused.iter().map(|group| ("may not leave", group));
        for (what, group) in stays.chain(refused) {
            let (reason, policy) = (one_line(&group.what), one_line(&group.policy));
            lines.push(format!("{what}: {} ({reason}) [{policy}]", pods(group)));
        }
        lines
    }
}

/// The pods with this verdict, by reason.
fn by_reason(plan: &Plan, verdict: Verdict) -> Vec<PodGroup> {
    let mut groups: BTreeMap<(&str, &str), Vec<Uid>> = BTreeMap::new();
    for decision in plan
        .decisions
        .iter()
        .filter(|decision| decision.verdict == verdict)
    {
        let group = groups.entry((&decision.reason, &decision.policy)).or_default();
        group.push(decision.pod.clone());
    }
    let groups = groups.iter();
    groups
        .map(|((reason, policy), pods)| PodGroup::of(reason, policy, pods))
        .collect()
}

impl PodGroup {
    fn len(&self) -> usize {
        self.pods.len() + self.more as usize
    }

    fn of(what: &str, policy: &str, pods: &[Uid]) -> Self {
        Self {
            what: what.to_owned(),
            policy: policy.to_owned(),
            pods: pods.iter().take(SHOWN).cloned().collect(),
            more: number(pods.len().saturating_sub(SHOWN)),
        }
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
