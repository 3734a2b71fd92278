//! Several pods, and several drained nodes.

use super::*;

fn without(placements: &[Placement]) -> Vec<(usize, bool)> {
    let all = placements.iter().enumerate();
    all.filter_map(|(place, placement)| match placement {
        Placement::Nowhere { alone, .. } => Some((place, *alone)),
        Placement::Fits { .. } => None,
    })
    .collect()
}

#[test]
fn ten_pods_fit_one_by_one_and_only_six_together() {
    let nodes = [node("old", "z"), node("b", "z"), node("c", "z"), node("d", "z")];
    let mut half = resident("half");
    half.requests = amounts(&[("cpu", 2000)]);
    let scene = scene(&nodes, &[("b", half.clone()), ("c", half.clone()), ("d", half)]);
    let pods = vec![requesting("web", &[("cpu", 1000)]); 10];
    let trial = scene.trial(["old"], []);
    let placements = trial.place(&pods);
    let without = without(&placements);
    assert_eq!(without.len(), 4, "{placements:#?}");
    assert!(without.iter().all(|(_, alone)| !alone));
    let Placement::Nowhere { refusals, .. } = &placements[without[0].0] else {
        panic!("{placements:#?}")
    };
    assert_eq!(
        refusals.to_string(),
        "of 4 nodes, 3 have too little cpu, 1 is to be drained"
    );
    assert_eq!(refusals.drained, ["old"]);
}

#[test]
fn a_pod_that_fits_nowhere_takes_no_room_and_is_told_from_those_that_come_too_late() {
    let scene = scene(&[node("old", "z"), node("b", "z")], &[]);
    let pods = [
        requesting("huge", &[("cpu", 5000)]),
        requesting("web", &[("cpu", 3000)]),
        requesting("web", &[("cpu", 3000)]),
    ];
    let trial = scene.trial(["old"], []);
    assert_eq!(without(&trial.place(&pods)), [(0, true), (2, false)]);
    let [huge, ..] = &trial.place(&pods)[..] else {
        panic!("three pods")
    };
    let Placement::Nowhere { refusals, .. } = huge else {
        panic!("{huge:?}")
    };
    assert_eq!(refusals.to_string(), "of 2 nodes, 2 have too little cpu");
    assert!(refusals.drained.is_empty());
}

#[test]
fn pods_of_higher_priority_come_first() {
    let scene = scene(&[node("b", "z")], &[]);
    let mut pods = vec![requesting("web", &[("cpu", 3000)]); 3];
    pods[1].priority = 10;
    let placements = scene.trial([], []).place(&pods);
    assert_eq!(without(&placements), [(0, false), (2, false)]);
}

#[test]
fn pods_that_are_hard_to_place_come_before_those_that_fit_anywhere() {
    let mut gpu = node("gpu", "z");
    gpu.labels.extend(texts(&[("gpu", "yes")]));
    let scene = scene(&[gpu, node("b", "z")], &[]);
    let anywhere = requesting("web", &[("cpu", 4000)]);
    let mut choosy = anywhere.clone();
    choosy.node_selector = texts(&[("gpu", "yes")]);
    let placements = scene.trial([], []).place(&[anywhere, choosy]);
    assert_eq!(without(&placements), []);
}

#[test]
fn a_second_way_to_fill_the_nodes_is_tried() {
    // The large pod needs all memory of b, which is the fullest node.
    let mut of_cpu = resident("cpu");
    of_cpu.requests = amounts(&[("cpu", 2000)]);
    let scene = scene(&[node("b", "z"), node("c", "z")], &[("b", of_cpu)]);
    let small = requesting("small", &[("cpu", 1000), ("memory", GI)]);
    let mut large = requesting("large", &[("cpu", 2000), ("memory", 8 * GI)]);
    large.node_selector = texts(&[(HOST, "b")]);
    large.priority = -1;
    let placements = scene.trial([], []).place(&[small.clone(), small, large]);
    assert_eq!(without(&placements).len(), 0, "{placements:#?}");
}

#[test]
fn a_pod_waits_for_those_that_it_must_be_near() {
    let scene = scene(&[node("old", "z"), node("b", "z")], &[]);
    let mut sidekick = newcomer("sidekick");
    sidekick.affinity = vec![term("db", HOST)];
    sidekick.priority = 10;
    let trial = scene.trial(["old"], []);
    assert_eq!(without(&trial.place(&[sidekick.clone(), newcomer("db")])), []);
    assert_eq!(without(&trial.place(&[sidekick])), [(0, true)]);
}

#[test]
fn newcomers_keep_apart_from_each_other() {
    let scene = scene(&[node("old", "z"), node("b", "z"), node("c", "z")], &[]);
    let mut db = newcomer("db");
    db.resident.anti_affinity = vec![term("db", HOST)];
    let placements = scene.trial(["old"], []).place(&vec![db; 3]);
    assert_eq!(without(&placements), [(2, false)]);
}

#[test]
fn nodes_that_are_drained_together_are_no_place_for_each_others_pods() {
    let scene = scene(&[node("a", "x"), node("b", "x"), node("c", "y")], &[]);
    let mut pod = newcomer("db");
    pod.node_selector = texts(&[(ZONE, "x")]);
    let pods = [pod];
    assert_eq!(without(&scene.trial(["a"], []).place(&pods)), []);
    let [placement] = &scene.trial(["a", "b"], []).place(&pods)[..] else {
        panic!("one pod")
    };
    let Placement::Nowhere { refusals, alone } = placement else {
        panic!("{placement:?}")
    };
    assert!(alone);
    assert_eq!(refusals.drained, ["a", "b"]);
    let text = "of 3 nodes, 2 are to be drained, 1 does not match its node selector or affinity";
    assert_eq!(refusals.to_string(), text);
}

#[test]
fn pods_that_stay_on_a_node_are_met_there() {
    let scene = scene(&[node("a", "z"), node("b", "z")], &[]);
    let mut large = resident("large");
    large.requests = amounts(&[("cpu", 3000)]);
    let pods = [requesting("web", &[("cpu", 2000)])];
    assert_eq!(without(&scene.trial(["a"], []).place(&pods)), []);
    let staying = [("b", &large), ("unknown", &large)];
    assert_eq!(without(&scene.trial(["a"], staying).place(&pods)), [(0, true)]);
}

/// The plain types must not keep a forecast of a large cluster from ending soon.
#[test]
fn a_thousand_nodes_and_a_hundred_pods_are_judged() {
    let nodes: Vec<_> = (0..1000).map(|number| node(&format!("n{number}"), "z")).collect();
    let mut scene = Scene::new(nodes);
    let mut running = resident("web");
    running.requests = amounts(&[("cpu", 500)]);
    for number in 0..1000 {
        (0..8).for_each(|_| scene.add(&format!("n{number}"), running.clone()));
    }
    let placements = scene
        .trial(["n0"], [])
        .place(&vec![requesting("web", &[("cpu", 500)]); 100]);
    assert_eq!(without(&placements).len(), 100);
}
