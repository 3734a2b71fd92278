//! What a forecast rests on: which times are known, and what is assumed of the rest.

use std::collections::{BTreeMap, BTreeSet};

use scupper_engine::{Budget, Condition, HookPhase, Pod, PodRef, Uid, Verdict};

use crate::Situation;
use crate::learned::{Learned, Workload};
use crate::notice::NOTICE;

/// What was known of the times, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Basis {
    /// How many recorded drains were read.
    pub recordings: usize,
    /// Workloads with pods to leave whose times are known.
    pub known_workloads: usize,
    /// How often pods of these have been seen to end: of the workload with the fewest.
    pub fewest_times: usize,
    /// Those whose times are not, and how many pods of them leave: each ends between a second and its grace period.
    pub unknown_workloads: Vec<(Workload, usize)>,
    /// Budgets of these pods without a known time until a replacement is ready: [`READY_WITHIN`](crate::READY_WITHIN) is assumed.
    pub unknown_budgets: Vec<String>,
    /// Workloads without a budget whose pods are endpoints of Services: the same is assumed of their replacements.
    pub unknown_replacements: Vec<Workload>,
    /// Budgets of these pods that allow nothing now: only what this drain does changes that.
    pub closed_budgets: Vec<String>,
    /// Pods whose work the drain waits for: it does not end.
    pub await_completion: Vec<PodRef>,
    /// Pods with finalizers: these are removed at once.
    pub finalizers: Vec<PodRef>,
    /// Hooks without a known time: they take none.
    pub unknown_hooks: Vec<(String, HookPhase)>,
    /// Workloads of which some pods took longer than is known: they had not ended when their recording did, or were forced.
    pub cut_workloads: Vec<Workload>,
    /// Hooks of which some took longer than is known.
    pub cut_hooks: Vec<(String, HookPhase)>,
    /// What the drain would do besides and no play does, or what a play cannot know.
    pub not_played: Vec<NotPlayed>,
}

/// What no play has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotPlayed {
    /// Deployments are restarted whose pods a budget never lets go.
    Surge,
    /// The drain waits for the node's volumes.
    Volumes,
    /// The pods of a machine that is off are removed.
    MachineIsOff,
    /// The node is not Ready: its kubelet may end no pod.
    NodeNotReady,
}

impl NotPlayed {
    fn of(situation: &Situation) -> Vec<Self> {
        let settings = &situation.request.settings;
        let is_not_ready = |condition: &Condition| condition.kind == "Ready" && condition.status != "True";
        let not_ready = situation.node.conditions.iter().any(is_not_ready);
        let all = [
            (settings.surge.is_some(), Self::Surge),
            (settings.wait_for_volumes.is_some(), Self::Volumes),
            (settings.machine_is_off, Self::MachineIsOff),
            (not_ready && !settings.machine_is_off, Self::NodeNotReady),
        ];
        all.into_iter()
            .filter_map(|(is, what)| is.then_some(what))
            .collect()
    }
}

impl Basis {
    pub(crate) fn of(situation: &Situation, learned: &Learned) -> Self {
        let pods: Vec<&Pod> = leaving(situation).collect();
        let leaving = || pods.iter().copied();
        let (mut known, mut unknown) = (BTreeSet::new(), BTreeMap::new());
        for pod in leaving() {
            if learned.knows(pod) {
                known.insert(Workload::of(pod));
            } else {
                *unknown.entry(Workload::of(pod)).or_default() += 1;
            }
        }
        let budgets: Vec<_> = situation.budgets_of_leaving().collect();
        let named = |wanted: &dyn Fn(&Budget) -> bool| {
            let wanted = budgets.iter().filter(|budget| wanted(budget));
            wanted
                .map(|budget| format!("{}/{}", budget.namespace, budget.name))
                .collect()
        };
        let pods = |wanted: &dyn Fn(&Pod) -> bool| {
            leaving()
                .filter(|pod| wanted(pod))
                .map(|pod| pod.id.clone())
                .collect()
        };
        let verdict = |pod: &Pod| {
            situation
                .plan
                .decision(&pod.id.uid)
                .map(|decision| decision.verdict)
        };
        Self {
            recordings: learned.recordings,
            known_workloads: known.len(),
            fewest_times: known.iter().map(|one| learned.seen(one)).min().unwrap_or(0),
            cut_workloads: known
                .into_iter()
                .chain(unknown.keys().cloned())
                .filter(|one| learned.has_cut(one))
                .collect(),
            cut_hooks: hooks(situation)
                .filter(|hook| learned.has_cut_hook(hook))
                .collect(),
            not_played: NotPlayed::of(situation),
            unknown_workloads: unknown.into_iter().collect(),
            unknown_budgets: named(&|budget| learned.replacement(budget).is_none()),
            unknown_replacements: unknown_replacements(situation, &budgets, leaving()),
            closed_budgets: named(&|budget| budget.disruptions_allowed <= 0),
            await_completion: pods(&|pod| verdict(pod) == Some(Verdict::AwaitCompletion)),
            finalizers: pods(&|pod| !pod.finalizers.is_empty()),
            unknown_hooks: hooks(situation)
                .filter(|(policy, phase)| learned.hook(policy, *phase).is_none())
                .collect(),
        }
    }
}

/// Of pods that serve and come back, and that no budget counts.
fn unknown_replacements<'a>(
    situation: &Situation,
    budgets: &[&Budget],
    leaving: impl Iterator<Item = &'a Pod>,
) -> Vec<Workload> {
    let serving = situation.services.iter().flat_map(|service| &service.pods);
    let serving: BTreeSet<&Uid> = serving.collect();
    let is_one = |pod: &&Pod| {
        let is_counted = || budgets.iter().any(|budget| budget.selects(pod));
        serving.contains(&pod.id.uid) && pod.controller.is_some() && !is_counted()
    };
    let workloads: BTreeSet<_> = leaving.filter(is_one).map(Workload::of).collect();
    workloads.into_iter().collect()
}

/// The hooks of a drain, without that of the notice: how long it takes is a setting.
pub(crate) fn hooks(situation: &Situation) -> impl Iterator<Item = (String, HookPhase)> {
    let policies = situation.request.policies.iter();
    policies
        .filter(|policy| policy.name != NOTICE)
        .flat_map(|policy| {
            let phases = policy.phases.iter().filter(|phase| !phase.undoes());
            phases.map(|phase| (policy.name.clone(), *phase))
        })
}

/// The pods that are to leave.
pub(crate) fn leaving(situation: &Situation) -> impl Iterator<Item = &Pod> {
    let leaving: BTreeSet<&Uid> = situation.plan.leaving().map(|decision| &decision.pod).collect();
    situation
        .pods
        .iter()
        .filter(move |pod| leaving.contains(&pod.id.uid))
}
