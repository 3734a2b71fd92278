//! Which Deployments a drain surges because a budget never lets their pods go.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::Input;
use crate::arithmetic::{PossiblePods, share};
use crate::budgets::{held_by_one, seems_closed};
use crate::namespace::{NamespaceState, Owner, Top, is_alive};
use scupper_engine::{
    Amount, Budget, BudgetLimit, DeploymentRef, NotSurged, Pod, PodRef, Surge, SurgeMethod, SurgePlan, Uid,
    Verdict, Wave,
};

/// How a Deployment replaces its pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollout {
    /// It removes the old pods before it creates the new ones.
    pub recreate: bool,
    /// Its rollouts are paused.
    pub paused: bool,
    /// How many pods may be missing meanwhile, of its replicas.
    pub max_unavailable: u32,
    /// How many pods it may have more than its replicas.
    pub max_surge: u32,
}

/// The surges of a plan, by the settings; none if they do not allow any.
pub fn surges(input: &Input<'_>) -> SurgePlan {
    let Some(settings) = &input.settings.surge else {
        return SurgePlan::default();
    };
    let mut plan = SurgePlan {
        method: settings.method,
        ..SurgePlan::default()
    };
    let mut surges: BTreeMap<&Uid, Surge> = BTreeMap::new();
    for (budget, pods) in held_by_one(input) {
        let state = input.namespaces.get(&budget.namespace);
        let Some(state) = state.filter(|state| !state.terminating && settings.covers(&budget.namespace))
        else {
            continue;
        };
        if !is_closed(budget, state) {
            continue;
        }
        for (top, pods) in by_top(&pods, state) {
            let pods: Vec<PodRef> = pods.iter().map(|pod| pod.id.clone()).collect();
            let found = match settings.method {
                SurgeMethod::Restart => surge_of(input, state, top),
                SurgeMethod::Scale => raise_of(input, state, top, budget),
            };
            match found {
                Ok((owner, on_node)) => {
                    surges.entry(&owner.uid).or_insert_with(|| Surge {
                        deployment: reference(owner, &budget.namespace),
                        replicas: owner.replicas,
                        budget: budget.name.clone(),
                        pods: on_node,
                    });
                }
                Err(reason) => plan.impossible.push(not_surged(budget, top, pods, reason)),
            }
        }
    }
    plan.surges = surges.into_values().collect();
    plan.surges
        .sort_by(|one, other| one.deployment.cmp(&other.deployment));
    plan
}

/// The budget lets none of its pods go, as far as it is known.
fn is_closed(budget: &Budget, state: &NamespaceState) -> bool {
    let raised = state.raised(budget);
    let Some(limit) = budget.limit.filter(|_| budget.disruptions_allowed <= raised) else {
        return false;
    };
    match PossiblePods::of(budget, state) {
        Some(possible) => possible.is_closed(limit),
        // A rollout may be under way, such as the one that a former process began.
        None => seems_closed(budget, raised),
    }
}

/// The running pods, by the topmost controller that decides on them.
fn by_top<'a>(pods: &[&'a Pod], state: &'a NamespaceState) -> Vec<(Top<'a>, Vec<&'a Pod>)> {
    let mut groups: Vec<(Top<'a>, Vec<&'a Pod>)> = Vec::new();
    for pod in pods.iter().filter(|pod| is_alive(pod)) {
        let top = state.top(pod);
        match groups.iter_mut().find(|(known, _)| is_same(known, &top)) {
            Some((_, group)) => group.push(pod),
            None => groups.push((top, Vec::from([*pod]))),
        }
    }
    groups
}

fn is_same(one: &Top<'_>, other: &Top<'_>) -> bool {
    matches!((one, other), (Top::Owner(one), Top::Owner(other)) if one.uid == other.uid)
}

/// The Deployment, or why there is none to surge, in the words of the method.
fn deployment_of<'a>(
    top: Top<'a>,
    only: &str,
    of_stateful_set: &str,
) -> Result<(&'a Owner, &'a Rollout), String> {
    let owner = match top {
        Top::Owner(owner) => owner,
        Top::Bare => return Err(String::from("the pod has no controller that would replace it")),
        Top::Unknown => return Err(String::from(only)),
    };
    match (owner.kind.as_str(), &owner.rollout) {
        ("Deployment", Some(rollout)) => Ok((owner, rollout)),
        ("StatefulSet", _) => Err(String::from(of_stateful_set)),
        _ => Err(String::from(only)),
    }
}

/// The Deployment and its pods on the node, or why it cannot be restarted.
fn surge_of<'a>(
    input: &Input<'_>,
    state: &'a NamespaceState,
    top: Top<'a>,
) -> Result<(&'a Owner, Vec<PodRef>), String> {
    let only = "only Deployments can be restarted by a rollout";
    let of_stateful_set = "a StatefulSet removes a pod before it replaces it";
    let (owner, rollout) = deployment_of(top, only, of_stateful_set)?;
    if let Some(reason) = rollout.obstacle() {
        return Err(reason);
    }
    let of_owner = |pod: &&Pod| is_alive(pod) && is_same(&state.top(pod), &Top::Owner(owner));
    let on_node: Vec<&Pod> = input.pods.iter().filter(of_owner).collect();
    leave_together(input, &on_node)?;
    Ok((owner, on_node.iter().map(|pod| pod.id.clone()).collect()))
}

/// The Deployment and its pods on the node that the plan evicts, or why its replicas cannot be raised.
fn raise_of<'a>(
    input: &Input<'_>,
    state: &'a NamespaceState,
    top: Top<'a>,
    budget: &Budget,
) -> Result<(&'a Owner, Vec<PodRef>), String> {
    let only = "only the replicas of Deployments are raised";
    let of_stateful_set = "one more pod of a StatefulSet replaces none of the others";
    let (owner, rollout) = deployment_of(top, only, of_stateful_set)?;
    if rollout.paused && !owner.settled {
        return Err(String::from("a rollout of it is paused; resume it"));
    }
    let Some(autoscalers) = &state.autoscalers else {
        return Err(String::from(
            "its HorizontalPodAutoscaler, if it has one, could not be read",
        ));
    };
    if let Some(autoscaler) = autoscalers.get(&owner.name) {
        return Err(format!(
            "HorizontalPodAutoscaler {autoscaler} sets its replicas, and would take one more back"
        ));
    }
    if let Some(limit) = budget.limit.filter(|limit| stays_closed(budget, *limit, state)) {
        return Err(format!("one replica more does not open its budget ({limit})"));
    }
    let own = input.settings.own_pod.as_ref().map(|own| &own.uid);
    let is_evicted = |pod: &&Pod| {
        let decision = input.plan.decision(&pod.id.uid);
        let is_of_owner = is_alive(pod) && is_same(&state.top(pod), &Top::Owner(owner));
        is_of_owner && decision.is_some_and(|decision| decision.verdict == Verdict::Evict)
    };
    let pods: Vec<PodRef> = input
        .pods
        .iter()
        .filter(is_evicted)
        .map(|pod| pod.id.clone())
        .collect();
    match pods.iter().find(|pod| own == Some(&pod.uid)) {
        Some(pod) => Err(format!("its pod {pod} is the driver itself")),
        None => Ok((owner, pods)),
    }
}

/// One replica more does not open the budget.
fn stays_closed(budget: &Budget, limit: BudgetLimit, state: &NamespaceState) -> bool {
    if let Some(possible) = PossiblePods::of(budget, state) {
        return possible.is_closed_with(limit, 1);
    }
    // A rollout may be under way: by its status.
    let expected = budget.expected_pods.saturating_sub(state.raised(budget));
    let pods = u32::try_from(expected).unwrap_or(0).saturating_add(1);
    match limit {
        BudgetLimit::MinAvailable(Amount::Pods(least)) => pods <= least,
        BudgetLimit::MinAvailable(Amount::Percent(least)) => share(least, pods) >= pods,
        BudgetLimit::MaxUnavailable(_) => true,
    }
}

/// A rollout replaces all pods at once: all of those on the node must be free to go then.
fn leave_together(input: &Input<'_>, pods: &[&Pod]) -> Result<(), String> {
    let own = input.settings.own_pod.as_ref().map(|own| &own.uid);
    let mut common: Option<&Wave> = None;
    for pod in pods {
        let decision = input.plan.decision(&pod.id.uid);
        if decision.is_none_or(|decision| decision.verdict != Verdict::Evict) {
            return Err(format!("the plan does not evict its pod {}", pod.id));
        }
        if own == Some(&pod.id.uid) {
            return Err(format!("its pod {} is the driver itself", pod.id));
        }
        let wave = input
            .plan
            .waves
            .iter()
            .find(|wave| wave.pods.contains(&pod.id.uid));
        if common.is_some() && common.map(|wave| &wave.name) != wave.map(|wave| &wave.name) {
            return Err(String::from("its pods on the node stand in different waves"));
        }
        common = wave;
    }
    let limit = common.and_then(|wave| wave.max_parallel);
    let count = u32::try_from(pods.len()).unwrap_or(u32::MAX);
    match limit.filter(|limit| *limit < count) {
        Some(limit) => Err(format!(
            "it has {count} pods on the node, and their wave lets {limit} leave at once"
        )),
        None => Ok(()),
    }
}

impl Rollout {
    /// Why a restart would not replace pods before it removes them.
    pub fn obstacle(&self) -> Option<String> {
        if self.recreate {
            return Some(String::from(
                "its strategy is Recreate; use RollingUpdate with maxUnavailable: 0",
            ));
        }
        if self.paused {
            return Some(String::from("its rollouts are paused; resume them"));
        }
        if self.max_unavailable > 0 || self.max_surge == 0 {
            let (down, more) = (self.max_unavailable, self.max_surge);
            return Some(format!(
                "a rollout may remove pods before it replaces them (maxUnavailable {down}, maxSurge {more} of its \
                 replicas); set maxUnavailable: 0 and maxSurge: 1"
            ));
        }
        None
    }
}

fn reference(owner: &Owner, namespace: &str) -> DeploymentRef {
    DeploymentRef {
        namespace: String::from(namespace),
        name: owner.name.clone(),
        uid: owner.uid.clone(),
    }
}

fn not_surged(budget: &Budget, top: Top<'_>, pods: Vec<PodRef>, reason: String) -> NotSurged {
    let (kind, name) = match top {
        Top::Owner(owner) => (owner.kind.clone(), owner.name.clone()),
        Top::Bare | Top::Unknown => {
            let name = pods.first().map(|pod| pod.name.clone());
            (String::new(), name.unwrap_or_default())
        }
    };
    NotSurged {
        kind,
        name,
        budget: budget.name.clone(),
        pods,
        reason,
    }
}
