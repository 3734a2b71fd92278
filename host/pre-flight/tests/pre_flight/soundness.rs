//! A certain finding is never wrong: 2,000 random namespaces, each played to the end.

use std::collections::{BTreeMap, BTreeSet};

use scupper_engine::{Settings, Uid};
use scupper_pre_flight::{Certainty, Concern, Input, LocalVolumes, NamespaceState, examine};

use crate::generator::{Rng, happen, settle, world};
use crate::model::World;
use crate::objects::evict_all;

const WORLDS: u64 = 2_000;
const EVENTS: usize = 400;
const ROUNDS: usize = 40;

#[derive(Debug, Default)]
struct Counts {
    /// Pods that were to leave.
    pods: usize,
    /// Of these, how many a finding called certain to stay, and likely.
    certain: usize,
    likely: usize,
    /// Of all, how many stayed.
    stuck: usize,
    /// Certain by the arithmetic of one budget.
    closed: usize,
}

/// The pods that findings call certain to stay, and those that findings about budgets call likely to.
fn called(world: &World) -> (BTreeMap<Uid, Concern>, BTreeSet<Uid>) {
    let pods = world.on_node();
    let input = Input {
        pods: &pods,
        plan: &evict_all(&pods),
        settings: &Settings::default(),
        budgets: &world.budgets,
        time_left: None,
        namespaces: &BTreeMap::from([("shop".to_owned(), world.state())]),
        volumes: LocalVolumes::NONE,
    };
    let (mut certain, mut likely) = (BTreeMap::new(), BTreeSet::new());
    for finding in examine(&input) {
        for pod in finding.pods {
            if finding.certainty == Certainty::Certain {
                certain.insert(pod.uid, finding.concern);
            } else if matches!(finding.concern, Concern::ClosedBudget | Concern::SeveralBudgets) {
                likely.insert(pod.uid);
            }
        }
    }
    (certain, likely)
}

fn evict_leaving(world: &mut World, leaving: &BTreeSet<Uid>) {
    for place in 0..world.pods.len() {
        if leaving.contains(&world.pods[place].pod.id.uid) {
            world.evict(place);
        }
    }
}

/// Evicts the node's pods for ever, whatever happens meanwhile, and at last lets everything become well.
fn run_to_the_end(world: &mut World, rng: &mut Rng, leaving: &BTreeSet<Uid>) {
    evict_leaving(world, leaving);
    for _ in 0..EVENTS {
        happen(world, rng);
        if rng.one_in(3) {
            evict_leaving(world, leaving);
        }
    }
    for _ in 0..ROUNDS {
        settle(world);
        evict_leaving(world, leaving);
    }
}

#[test]
fn pods_that_are_certain_to_stay_do() {
    let mut counts = Counts::default();
    for seed in 0..WORLDS {
        let mut rng = Rng::new(seed);
        let mut world = world(&mut rng);
        let leaving: BTreeSet<Uid> = world.on_node().into_iter().map(|pod| pod.id.uid).collect();
        let (certain, likely) = called(&world);
        let before = world.clone();
        run_to_the_end(&mut world, &mut rng, &leaving);
        for (uid, concern) in &certain {
            assert!(
                world.has(uid),
                "seed {seed}: {uid} was certain to stay ({}) and left: {before:#?}",
                concern.name()
            );
        }
        counts.pods += leaving.len();
        counts.certain += certain.len();
        counts.closed += certain
            .values()
            .filter(|concern| **concern == Concern::ClosedBudget)
            .count();
        counts.likely += likely.len();
        counts.stuck += leaving.iter().filter(|uid| world.has(uid)).count();
    }
    println!("{WORLDS} worlds: {counts:?}");
    // The test is not empty: hundreds are certain, and most of what really sticks was seen.
    assert!(
        counts.closed >= 250 && counts.certain - counts.closed >= 200,
        "{counts:?}"
    );
    assert!(counts.certain * 10 >= counts.stuck * 6, "{counts:?}");
}

#[test]
fn without_the_namespace_nothing_is_certain() {
    for seed in 0..WORLDS {
        let world = world(&mut Rng::new(seed));
        let pods = world.on_node();
        let plan = evict_all(&pods);
        let settings = Settings::default();
        let unread: BTreeMap<String, NamespaceState> = BTreeMap::new();
        let input = Input {
            pods: &pods,
            plan: &plan,
            settings: &settings,
            budgets: &world.budgets,
            time_left: None,
            namespaces: &unread,
            volumes: LocalVolumes::NONE,
        };
        let findings = examine(&input);
        assert!(
            findings
                .iter()
                .all(|finding| finding.certainty == Certainty::Likely)
        );
    }
}
