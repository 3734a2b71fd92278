//! Affinity and anti-affinity between pods, and topology spread.

use super::*;

/// Two zones of two nodes each.
fn zones() -> Vec<Node> {
    vec![node("a1", "a"), node("a2", "a"), node("b1", "b"), node("b2", "b")]
}

/// The nodes that take the pod, by draining all others.
fn taking(nodes: &[Node], residents: &[(&str, Resident)], pod: &Newcomer) -> Vec<String> {
    let scene = scene(nodes, residents);
    let takes = |node: &&Node| {
        let others = nodes.iter().map(|node| node.name.as_str());
        let others: Vec<_> = others.filter(|name| *name != node.name).collect();
        placed(&scene, &others, std::slice::from_ref(pod))[0].is_ok()
    };
    let taking = nodes.iter().filter(takes);
    taking.map(|node| node.name.clone()).collect()
}

#[test]
fn a_pod_is_kept_from_the_places_of_pods_that_it_must_not_be_near() {
    let pod = |terms: &[PodTerm]| {
        let mut pod = newcomer("db");
        pod.resident.anti_affinity = terms.to_vec();
        pod
    };
    let there = [("a1", resident("db"))];
    let cases = [
        (pod(&[]), vec!["a1", "a2", "b1", "b2"]),
        (pod(&[term("db", HOST)]), vec!["a2", "b1", "b2"]),
        (pod(&[term("db", ZONE)]), vec!["b1", "b2"]),
        // A node without the label is no such place.
        (pod(&[term("db", "rack")]), vec!["a1", "a2", "b1", "b2"]),
        (pod(&[term("web", ZONE)]), vec!["a1", "a2", "b1", "b2"]),
    ];
    for (pod, expected) in cases {
        assert_eq!(taking(&zones(), &there, &pod), expected, "{pod:?}");
    }
    let only_a = &zones()[..1];
    let refusal = "of 1 node, 1 violates its pod anti-affinity on kubernetes.io/hostname";
    let found = placed(&scene(only_a, &there), &[], &[pod(&[term("db", HOST)])]);
    assert_eq!(found, [Err(refusal.to_owned())]);
}

#[test]
fn pods_that_are_there_keep_out_those_that_they_must_not_be_near() {
    let mut lonely = resident("lonely");
    lonely.anti_affinity = vec![term("db", ZONE)];
    let there = [("a1", lonely)];
    assert_eq!(taking(&zones(), &there, &newcomer("db")), ["b1", "b2"]);
    assert_eq!(taking(&zones(), &there, &newcomer("web")).len(), 4);
    let found = placed(&scene(&zones()[..1], &there), &[], &[newcomer("db")]);
    let refusal = format!("of 1 node, 1 has pods whose anti-affinity on {ZONE} excludes it");
    assert_eq!(found, [Err(refusal)]);
}

#[test]
fn a_term_is_about_the_namespaces_that_it_names() {
    let mut other = resident("db");
    other.namespace = "test".to_owned();
    let there = [("a1", other)];
    let by_name = |operator| expression("kubernetes.io/metadata.name", operator, &["test"]);
    let cases = [
        (None, 2),
        (Some(Selector::EVERYTHING), 1),
        (Some(by_name(Operator::In)), 1),
        (Some(by_name(Operator::NotIn)), 2),
    ];
    for (selector, nodes) in cases {
        let mut pod = newcomer("db");
        pod.resident.anti_affinity = vec![PodTerm {
            namespace_selector: selector.clone(),
            ..term("db", HOST)
        }];
        assert_eq!(taking(&zones()[..2], &there, &pod).len(), nodes, "{selector:?}");
    }
}

#[test]
fn a_pod_runs_near_the_pods_that_it_needs() {
    let pod = |terms: &[PodTerm]| Newcomer {
        affinity: terms.to_vec(),
        ..newcomer("cache")
    };
    let there = [("a1", resident("db")), ("b1", resident("web"))];
    let cases = [
        (pod(&[term("db", ZONE)]), vec!["a1", "a2"]),
        (pod(&[term("db", HOST)]), vec!["a1"]),
        (pod(&[term("db", "rack")]), vec![]),
        (pod(&[term("none", ZONE)]), vec![]),
        // No pod meets both.
        (pod(&[term("db", ZONE), term("web", ZONE)]), vec![]),
        // The first of its own kind may be anywhere that has the label.
        (pod(&[term("cache", ZONE)]), vec!["a1", "a2", "b1", "b2"]),
        (pod(&[term("cache", "rack")]), vec![]),
    ];
    for (pod, expected) in cases {
        assert_eq!(taking(&zones(), &there, &pod), expected, "{:?}", pod.affinity);
    }
    let found = placed(&scene(&zones()[..1], &[]), &[], &[pod(&[term("db", ZONE)])]);
    let refusal = format!("of 1 node, 1 does not match its pod affinity on {ZONE}");
    assert_eq!(found, [Err(refusal)]);
}

fn spread(topology: &str, max_skew: u64) -> Spread {
    Spread {
        topology_key: topology.to_owned(),
        max_skew,
        selector: app("web"),
        honors_affinity: true,
        ..Spread::default()
    }
}

fn spread_pod(spread: &Spread) -> Newcomer {
    Newcomer {
        spread: vec![spread.clone()],
        ..newcomer("web")
    }
}

#[test]
fn a_pod_is_kept_from_places_that_have_too_many_of_its_kind() {
    let web = |node| (node, resident("web"));
    let there = [web("a1"), web("a1"), web("b1")];
    let all = ["a1", "a2", "b1", "b2"];
    let cases = [
        (spread(ZONE, 1), vec!["b1", "b2"]),
        (spread(ZONE, 2), all.to_vec()),
        // The least is 0, on a2 and b2.
        (spread(HOST, 1), vec!["a2", "b2"]),
        (spread(HOST, 2), vec!["a2", "b1", "b2"]),
        (spread("rack", 9), vec![]),
        // Two zones are fewer than three, so the least counts as 0.
        (
            Spread {
                min_domains: Some(3),
                ..spread(ZONE, 2)
            },
            vec!["b1", "b2"],
        ),
        (
            Spread {
                min_domains: Some(2),
                ..spread(ZONE, 2)
            },
            all.to_vec(),
        ),
        (
            Spread {
                selector: app("other"),
                ..spread(ZONE, 1)
            },
            all.to_vec(),
        ),
    ];
    for (spread, expected) in cases {
        assert_eq!(
            taking(&zones(), &there, &spread_pod(&spread)),
            expected,
            "{spread:?}"
        );
    }
    // A pod that is not counted itself may be where the skew is reached.
    let mut uncounted = spread_pod(&spread(ZONE, 1));
    uncounted.resident.labels = texts(&[("app", "other")]);
    assert_eq!(taking(&zones(), &there, &uncounted), all);
}

#[test]
fn nodes_count_as_places_as_the_policies_of_the_constraint_say() {
    let web = |node| (node, resident("web"));
    let there = [web("a1"), web("a2")];
    // Zone b is drained, or not selected: it has no pod, and counts or does not.
    let drained = ["b1", "b2"];
    let fits = |spread: Spread, selector: &[(&str, &str)]| {
        let mut pod = spread_pod(&spread);
        pod.node_selector = texts(selector);
        placed(&scene(&zones(), &there), &drained, &[pod])[0].is_ok()
    };
    let ignoring = |spread: Spread| Spread {
        honors_affinity: false,
        ..spread
    };
    let of_taints = |spread: Spread| Spread {
        honors_taints: true,
        ..spread
    };
    assert!(!fits(spread(ZONE, 1), &[]), "a drained zone is a place");
    assert!(fits(of_taints(spread(ZONE, 1)), &[]), "a cordon is a taint");
    assert!(fits(spread(ZONE, 1), &[(ZONE, "a")]), "only selected nodes count");
    assert!(!fits(ignoring(spread(ZONE, 1)), &[(ZONE, "a")]));
    let found = placed(
        &scene(&zones(), &there),
        &drained,
        &[spread_pod(&spread(ZONE, 1))],
    );
    let refusal =
        format!("of 4 nodes, 2 violate its topology spread constraint on {ZONE}, 2 are to be drained");
    assert_eq!(found, [Err(refusal)]);
}
