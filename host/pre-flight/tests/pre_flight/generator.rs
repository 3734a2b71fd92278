//! Random worlds, and what happens in them.

use scupper_engine::{Amount, BudgetLimit, PodPhase, UnhealthyPods};

use crate::model::{Kind, NODE, Workload, World};
use crate::objects::{Labels, budget, labels};

/// SplitMix64: numbers that depend on the seed alone.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xd134_2543_de82_ef95) ^ 0x5c0a_99e5_0d2a_1175)
    }

    pub(crate) const fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }

    /// True in one of so many cases.
    pub(crate) const fn one_in(&mut self, cases: usize) -> bool {
        self.below(cases) == 0
    }
}

/// A namespace with a few workloads, some in the middle of a change, and budgets over them.
pub(crate) fn world(rng: &mut Rng) -> World {
    let mut world = World::default();
    for number in 0..1 + rng.below(4) {
        add_workload(&mut world, rng, number);
    }
    for _ in 0..rng.below(3) {
        let node = if rng.one_in(2) { NODE } else { "elsewhere" };
        let labels = some_labels(rng);
        let bare = world.add(None, labels, node);
        world.pods[bare].pod.phase = PodPhase::Running;
        world.pods[bare].pod.ready = !rng.one_in(4);
    }
    for number in 0..1 + rng.below(3) {
        add_budget(&mut world, rng, number);
    }
    // Statuses of budgets may be behind.
    if rng.one_in(3) {
        for workload in 0..world.workloads.len() {
            world.reconcile(workload);
            world.reconcile(workload);
        }
        for _ in 0..3.min(world.pods.len()) {
            finish(&mut world, rng);
        }
    }
    world
}

fn some_labels(rng: &mut Rng) -> Labels {
    let app = ["web", "db", "cache"][rng.below(3)];
    let tier = ["front", "back"][rng.below(2)];
    labels(&[("app", app), ("tier", tier)])
}

fn add_workload(world: &mut World, rng: &mut Rng, number: usize) {
    let kind = match rng.below(8) {
        0..=3 => Kind::Deployment,
        4 => Kind::ReplicaSet,
        5 | 6 => Kind::StatefulSet,
        _ => Kind::Job,
    };
    let (replicas, labels) = (rng.below(5), some_labels(rng));
    world.workloads.push(Workload {
        kind,
        name: format!("workload-{number}"),
        labels: labels.clone(),
        replicas,
        revision: 0,
        surge: rng.below(2),
    });
    for _ in 0..replicas {
        let node = if rng.one_in(2) { NODE } else { "elsewhere" };
        let pod = world.add(Some(number), labels.clone(), node);
        let pod = &mut world.pods[pod].pod;
        if node == NODE || !rng.one_in(6) {
            pod.phase = PodPhase::Running;
            pod.ready = !rng.one_in(6);
        }
    }
    // In the middle of something: a new template, other replicas, a pod that has just gone.
    let rolls = matches!(kind, Kind::Deployment | Kind::StatefulSet);
    match rng.below(10) {
        0 if rolls => world.workloads[number].revision = 1,
        1 => world.workloads[number].replicas = rng.below(5),
        2 if replicas > 0 => {
            let last = world.pods.len() - 1;
            world.delete(last);
        }
        3 if replicas > 0 => drop(world.pods.pop()),
        _ => {}
    }
    if rng.one_in(4) {
        world.reconcile(number);
    }
}

fn add_budget(world: &mut World, rng: &mut Rng, number: usize) {
    let mut selector = some_labels(rng);
    match rng.below(6) {
        0 => drop(selector.remove("app")),
        1..=4 => drop(selector.remove("tier")),
        _ => {}
    }
    let amount = |rng: &mut Rng| match rng.below(4) {
        0 => Amount::Percent([0, 40, 50, 75, 100][rng.below(5)]),
        _ => Amount::Pods(u32::try_from(rng.below(5)).unwrap()),
    };
    let limit = match rng.below(5) {
        0 => BudgetLimit::MaxUnavailable(Amount::Pods(0)),
        1 => BudgetLimit::MaxUnavailable(amount(rng)),
        _ => BudgetLimit::MinAvailable(amount(rng)),
    };
    let mut budget = budget(&format!("budget-{number}"), selector, limit, 0);
    if rng.one_in(5) {
        budget.unhealthy_pods = UnhealthyPods::AlwaysAllow;
    }
    budget.observed = false;
    world.budgets.push(budget);
    if !rng.one_in(6) {
        world.sync(number);
    }
}

/// Something happens, to workloads and pods as they are: no specification changes.
pub(crate) fn happen(world: &mut World, rng: &mut Rng) {
    match rng.below(8) {
        0 | 1 => {
            let budget = rng.below(world.budgets.len());
            world.sync(budget);
        }
        2 | 3 => {
            let workload = rng.below(world.workloads.len());
            world.reconcile(workload);
        }
        _ if world.pods.is_empty() => {}
        4 => {
            let place = rng.below(world.pods.len());
            if world.pods[place].pod.deletion.is_some() {
                world.pods.remove(place);
            }
        }
        5 => finish(world, rng),
        _ => change_health(world, rng),
    }
}

/// Pods of Jobs and pods without a controller may finish, and pods elsewhere may be lost.
fn finish(world: &mut World, rng: &mut Rng) {
    let place = rng.below(world.pods.len());
    let living = &mut world.pods[place];
    let of_job = living
        .workload
        .is_none_or(|of| world.workloads[of].kind == Kind::Job);
    if of_job && living.pod.phase == PodPhase::Running {
        living.pod.phase = PodPhase::Succeeded;
        living.pod.ready = false;
    } else if living.pod.node != NODE && rng.one_in(3) {
        world.delete(place);
    }
}

/// A pod starts, fails or recovers. The budgets of the node's own pods see it at once: an eviction in between is a race
/// of milliseconds that the API server may lose, and no arithmetic can know.
fn change_health(world: &mut World, rng: &mut Rng) {
    let place = rng.below(world.pods.len());
    let pod = &mut world.pods[place].pod;
    match pod.phase {
        PodPhase::Pending => {
            pod.phase = PodPhase::Running;
            pod.ready = rng.one_in(2);
        }
        PodPhase::Running => pod.ready = !pod.ready || pod.node == NODE && !rng.one_in(4),
        _ => {}
    }
    let pod = pod.clone();
    for budget in 0..world.budgets.len() {
        if pod.node == NODE && world.budgets[budget].selects(&pod) {
            world.sync(budget);
        }
    }
}

/// Everything that can become well does: the best that waiting can bring.
pub(crate) fn settle(world: &mut World) {
    world.pods.retain(|it| it.pod.deletion.is_none());
    for living in &mut world.pods {
        if living.is_active() {
            living.pod.phase = PodPhase::Running;
            living.pod.ready = true;
        }
    }
    for workload in 0..world.workloads.len() {
        world.reconcile(workload);
    }
    for budget in 0..world.budgets.len() {
        world.sync(budget);
    }
}
