//! Generates the content of the node: pods of all kinds with their fates, and their budgets.

use std::collections::BTreeMap;

use scupper_engine::{
    Budget, Controller, MIRROR_ANNOTATION, Pod, PodPhase, PodRef, Selector, Time, Uid, UnhealthyPods,
};

use crate::cluster::{NODE, Newborn, Returns, Script};
use crate::rng::Rng;
use crate::scenario::Mood;

/// The initial pods and budgets.
#[derive(Clone, Debug)]
pub(crate) struct Population {
    pub(crate) pods: Vec<InitialPod>,
    /// With the healthy pods elsewhere, the time a replacement takes, and the controller's lag.
    pub(crate) budgets: Vec<(Budget, i32, Option<u64>, u64)>,
}

/// An initial pod.
#[derive(Clone, Debug)]
pub(crate) struct InitialPod {
    pub(crate) newborn: Newborn,
    /// It is the driver's own.
    pub(crate) own: bool,
    /// Its deletion began before the drain.
    pub(crate) terminating: bool,
}

pub(crate) fn generate(rng: &mut Rng, mood: Mood) -> Population {
    let count = match rng.below(20) {
        0 => 0,
        1 => rng.between(13, 60),
        _ => rng.between(1, 12),
    };
    let mut pods: Vec<InitialPod> = (0..count)
        .map(|number| part(rng, mood, &number.to_string()))
        .collect();
    if rng.chance(400) {
        let mut own = daemon("own");
        own.script.returns = Returns::Never;
        pods.push(InitialPod {
            newborn: own,
            own: true,
            terminating: false,
        });
    }
    let budgets = if mood == Mood::Calm {
        Vec::new()
    } else {
        budgets(rng, mood, &pods)
    };
    Population { pods, budgets }
}

/// A pod that arrives while the drain runs: mostly one whose name sorts among the others.
pub(crate) fn late(rng: &mut Rng, mood: Mood) -> Newborn {
    let name = format!("late{}", rng.below(1000));
    part(rng, mood, &name).newborn
}

fn part(rng: &mut Rng, mood: Mood, name: &str) -> InitialPod {
    let mut newborn = match rng.below(20) {
        0..9 => replica(rng, mood, name),
        9..13 => stateful(rng, mood, name),
        13 | 14 => daemon(name),
        15 => mirror(name),
        16 => pod(name),
        17 => finished(rng, name),
        18 => pending(rng, mood, name),
        _ => job(rng, mood, name),
    };
    let finished = newborn.pod.is_finished();
    newborn.pod.id.namespace = format!("ns{}", rng.below(3));
    newborn
        .pod
        .labels
        .insert(String::from("app"), format!("a{}", rng.below(3)));
    newborn.pod.empty_dir = rng.chance(100);
    newborn.pod.grace_seconds = if rng.chance(100) { 0 } else { rng.between(1, 60) };
    newborn.pod.ready = newborn.pod.ready && !rng.chance(70);
    newborn.pod.cordon_toleration = toleration(rng, &newborn);
    newborn.script.ends_after = Some(rng.span(3_000, 180_000));
    newborn.script.goes_after = Some(if rng.chance(300) {
        0
    } else {
        rng.span(1_000, 30_000)
    });
    if rng.chance(50) && !finished {
        newborn.pod.finalizers.push(String::from("example.com/hold"));
        newborn.script.goes_after = Some(rng.span(30_000, 300_000));
    }
    if mood == Mood::Wild && rng.chance(30) {
        newborn.script.ends_after = None;
    }
    if mood == Mood::Wild && rng.chance(20) {
        newborn.script.goes_after = None;
    }
    if let Some(controller) = &mut newborn.pod.controller {
        controller.missing = controller.kind == "DaemonSet" && mood == Mood::Wild && rng.chance(150);
    }
    InitialPod {
        newborn,
        own: false,
        terminating: mood != Mood::Calm && !finished && rng.chance(60),
    }
}

/// Most pods that return here tolerate the cordon; few others do.
fn toleration(rng: &mut Rng, newborn: &Newborn) -> Option<String> {
    let comes_back = matches!(newborn.script.returns, Returns::Here { .. });
    let tolerates = rng.chance(if comes_back { 750 } else { 100 });
    tolerates.then(|| String::from("node.kubernetes.io/unschedulable:NoSchedule"))
}

fn pod(name: &str) -> Newborn {
    let pod = Pod {
        id: PodRef {
            namespace: String::from("ns0"),
            name: format!("pod-{name}"),
            uid: Uid::new(""),
        },
        node: String::from(NODE),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        controller: None,
        phase: PodPhase::Running,
        ready: true,
        conditions: Vec::new(),
        priority: 0,
        priority_class: String::new(),
        grace_seconds: 30,
        created: Time::from_millis(0),
        deletion: None,
        finalizers: Vec::new(),
        empty_dir: false,
        host_network: false,
        hostname: String::new(),
        cordon_toleration: None,
        volume_claims: Vec::new(),
        host_paths: Vec::new(),
    };
    let script = Script {
        ends_after: Some(100),
        goes_after: Some(0),
        finishes_after: None,
        returns: Returns::Never,
    };
    Newborn { pod, script }
}

fn owned(name: &str, api_version: &str, kind: &str) -> Newborn {
    let mut newborn = pod(name);
    newborn.pod.controller = Some(Controller {
        api_version: String::from(api_version),
        kind: String::from(kind),
        name: format!("{}-{name}", kind.to_lowercase()),
        uid: Uid::new(format!("c-{name}")),
        missing: false,
    });
    newborn
}

fn replica(rng: &mut Rng, mood: Mood, name: &str) -> Newborn {
    let mut newborn = owned(name, "apps/v1", "ReplicaSet");
    newborn.script.returns = match rng.below(10) {
        0 => Returns::Never,
        1 if mood != Mood::Calm => Returns::Here {
            same_name: false,
            after: rng.span(1_000, 60_000),
            times: 1,
        },
        _ => Returns::Elsewhere {
            same_name: false,
            after: rng.span(1_000, 10_000),
        },
    };
    newborn
}

/// A StatefulSet reuses the name, and its next pod may well land here if it tolerates the cordon.
fn stateful(rng: &mut Rng, mood: Mood, name: &str) -> Newborn {
    let mut newborn = owned(name, "apps/v1", "StatefulSet");
    let after = if rng.chance(500) {
        rng.between(0, 300)
    } else {
        rng.span(2_000, 20_000)
    };
    let times = u32::try_from(rng.between(1, if mood == Mood::Wild { 6 } else { 2 })).unwrap_or(1);
    newborn.script.returns = if mood != Mood::Calm && rng.chance(400) {
        Returns::Here {
            same_name: true,
            after,
            times,
        }
    } else {
        Returns::Elsewhere {
            same_name: true,
            after,
        }
    };
    newborn
}

fn daemon(name: &str) -> Newborn {
    let mut newborn = owned(name, "apps/v1", "DaemonSet");
    newborn.script.returns = Returns::Here {
        same_name: false,
        after: 500,
        times: 1,
    };
    newborn
}

fn mirror(name: &str) -> Newborn {
    let mut newborn = owned(name, "v1", "Node");
    newborn
        .pod
        .annotations
        .insert(String::from(MIRROR_ANNOTATION), String::from("digest"));
    newborn
}

fn finished(rng: &mut Rng, name: &str) -> Newborn {
    let mut newborn = if rng.chance(500) {
        pod(name)
    } else {
        owned(name, "batch/v1", "Job")
    };
    newborn.pod.phase = if rng.chance(500) {
        PodPhase::Succeeded
    } else {
        PodPhase::Failed
    };
    newborn.pod.ready = false;
    newborn
}

fn pending(rng: &mut Rng, mood: Mood, name: &str) -> Newborn {
    let mut newborn = replica(rng, mood, name);
    newborn.pod.phase = PodPhase::Pending;
    newborn.pod.ready = false;
    newborn
}

fn job(rng: &mut Rng, mood: Mood, name: &str) -> Newborn {
    let mut newborn = owned(name, "batch/v1", "Job");
    if mood != Mood::Calm {
        newborn.script.finishes_after = Some(rng.span(60_000, 1_800_000));
    }
    newborn
}

fn budgets(rng: &mut Rng, mood: Mood, pods: &[InitialPod]) -> Vec<(Budget, i32, Option<u64>, u64)> {
    let mut all = Vec::new();
    for number in 0..3 {
        if !rng.chance(350) {
            continue;
        }
        // A pod with two budgets can never be evicted: only wild worlds have one.
        let namespace = if mood == Mood::Wild { rng.below(3) } else { number };
        let namespace = format!("ns{namespace}");
        let everything = rng.chance(150);
        let mut labels = BTreeMap::new();
        if !everything {
            labels.insert(String::from("app"), format!("a{}", rng.below(3)));
        }
        let selector = Selector {
            labels,
            ..Selector::default()
        };
        let mut budget = Budget {
            namespace,
            name: format!("budget-{number}"),
            selector,
            unhealthy_pods: if rng.chance(200) {
                UnhealthyPods::AlwaysAllow
            } else {
                UnhealthyPods::IfHealthyBudget
            },
            disruptions_allowed: 0,
            current_healthy: 0,
            desired_healthy: 0,
            expected_pods: 0,
            limit: None,
            observed: !rng.chance(150),
        };
        let here = pods
            .iter()
            .filter(|part| budget.selects(&part.newborn.pod) && part.newborn.pod.ready)
            .count();
        let here = i32::try_from(here).unwrap_or(0);
        let elsewhere = i32::try_from(rng.below(4)).unwrap_or(0);
        let allowed = i32::try_from(rng.below(3)).unwrap_or(0);
        budget.current_healthy = here + elsewhere;
        // A budget that never allows an eviction is only for wild worlds.
        let hopeless = mood == Mood::Wild && rng.chance(250);
        let allowed = if hopeless { allowed } else { allowed.max(1) };
        budget.desired_healthy = (here + elsewhere - allowed).max(0);
        budget.disruptions_allowed = allowed.min(here + elsewhere);
        let recovers = (!hopeless).then(|| rng.span(5_000, 60_000));
        all.push((budget, elsewhere, recovers, rng.span(500, 5_000)));
    }
    all
}
