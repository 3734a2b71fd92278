//! Several nodes, and the endpoints that Services lose.

use scupper_engine::{Node, Uid, draft};
use scupper_forecast::{Forecast, Service, ServiceLoss, Situation, Together};

use super::learned;
use crate::cluster::{BEGIN, budget, pod, seconds, situation};

/// Another node, with as many pods of the same workload.
fn other(of: &Situation) -> Situation {
    let mut other = of.clone();
    other.node = Node {
        name: "worker-2".to_owned(),
        uid: Uid::new("uid-of-worker-2"),
        ..other.node
    };
    other.request.node = "worker-2".to_owned();
    other.pods = ["web-4", "web-5", "web-6"].map(pod).into();
    other
        .pods
        .iter_mut()
        .for_each(|pod| pod.node = "worker-2".to_owned());
    other.plan = draft(&other.pods, &other.request.settings, BEGIN);
    other
}

fn serving(mut situation: Situation, ready: usize) -> Situation {
    situation.services = vec![Service {
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        ready,
        pods: situation.pods.iter().map(|pod| pod.id.uid.clone()).collect(),
    }];
    situation
}

#[test]
fn nodes_without_a_common_budget_are_drained_side_by_side() {
    let one = situation(Vec::new());
    let together = Together::of(&[&one, &other(&one)], &learned(), 20);
    assert_eq!(together.at_once.quantile(5), Some(seconds(10)), "{together:#?}");
    assert_eq!(
        together.one_by_one.quantile(5),
        Some(seconds(20)),
        "{together:#?}"
    );
}

#[test]
fn a_common_budget_makes_nodes_wait_for_each_other() {
    let one = situation(vec![budget(1)]);
    let alone = Forecast::of(&one, &learned(), 20);
    assert_eq!(alone.quantile(5), Some(seconds(70)));
    let together = Together::of(&[&one, &other(&one)], &learned(), 20);
    // Five times thirty seconds until the replacement is ready, and the last pod's ten: the same in both ways.
    assert_eq!(together.at_once.quantile(5), Some(seconds(160)), "{together:#?}");
    assert_eq!(
        together.one_by_one.quantile(5),
        Some(seconds(160)),
        "{together:#?}"
    );
}

#[test]
fn each_node_has_its_time_limit_from_its_own_start() {
    let mut one = situation(vec![budget(1)]);
    one.request.deadline = Some(BEGIN + seconds(100));
    let together = Together::of(&[&one, &other(&one)], &learned(), 20);
    assert_eq!(together.at_once.drained.len(), 0, "{together:#?}");
    assert_eq!(together.one_by_one.drained.len(), 20, "{together:#?}");
    // It never opens: the second drain does not begin.
    let closed = situation(vec![budget(0)]);
    let together = Together::of(&[&closed, &other(&closed)], &learned(), 5);
    assert_eq!(
        (together.at_once.drained.len(), together.one_by_one.drained.len()),
        (0, 0)
    );
}

#[test]
fn services_lose_endpoints_until_replacements_are_ready() {
    let loss = |fewest, missing, none| ServiceLoss {
        namespace: "shop".to_owned(),
        name: "web".to_owned(),
        ready: 4,
        fewest: [fewest; 2],
        missing: [Some(seconds(missing)); 2],
        none: [Some(seconds(none)); 2],
    };
    // One after another, thirty seconds each: the next goes as the one before comes back.
    let one_by_one = serving(situation(vec![budget(1)]), 4);
    let forecast = Forecast::of(&one_by_one, &learned(), 20);
    assert_eq!(forecast.ends.services, [loss(3, 90, 0)]);
    let two_by_two = serving(situation(vec![budget(2)]), 4);
    let forecast = Forecast::of(&two_by_two, &learned(), 20);
    assert_eq!(forecast.ends.services, [loss(2, 60, 0)]);
    let beside = serving(other(&one_by_one), 4);
    let together = Together::of(&[&one_by_one, &beside], &learned(), 20);
    assert_eq!(together.at_once.services, [loss(3, 180, 0)]);
}

#[test]
fn a_service_without_another_endpoint_has_none_meanwhile() {
    let mut only = serving(situation(vec![budget(3)]), 3);
    let forecast = Forecast::of(&only, &learned(), 20);
    let none = forecast.ends.services.iter().map(|loss| (loss.fewest, loss.none));
    assert_eq!(none.collect::<Vec<_>>(), [([0; 2], [Some(seconds(30)); 2])]);
    // Nothing makes them again.
    only.pods.iter_mut().for_each(|pod| pod.controller = None);
    let forecast = Forecast::of(&only, &learned(), 20);
    let none = forecast
        .ends
        .services
        .iter()
        .map(|loss| (loss.missing, loss.none));
    assert_eq!(none.collect::<Vec<_>>(), [([None; 2], [None; 2])]);
    // Of those that stay it loses nothing.
    only.plan.decisions.clear();
    assert_eq!(Forecast::of(&only, &learned(), 20).ends.services, []);
}
