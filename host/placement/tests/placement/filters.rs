//! The filters that look at one node.

use super::*;

#[test]
fn requests_must_fit_into_what_the_pods_leave() {
    let mut running = resident("web");
    running.requests = amounts(&[("cpu", 3000), ("memory", 7 * GI)]);
    let mut gpu = node("a", "z");
    gpu.allocatable = Some(amounts(&[("cpu", 4000), ("pods", 10), ("nvidia.com/gpu", 2)]));
    let lacks = |what: &str| refused(&format!("has too little {what}"));
    let cases = [
        (node("a", "z"), vec![("cpu", 1000), ("memory", GI)], Ok(())),
        (node("a", "z"), vec![("cpu", 1001)], lacks("cpu")),
        (
            node("a", "z"),
            vec![("cpu", 1001), ("memory", GI + 1)],
            lacks("cpu and memory"),
        ),
        (
            node("a", "z"),
            vec![("nvidia.com/gpu", 1)],
            lacks("nvidia.com/gpu"),
        ),
        (gpu.clone(), vec![("nvidia.com/gpu", 2)], Ok(())),
        (gpu, vec![("nvidia.com/gpu", 3)], lacks("nvidia.com/gpu")),
        // What is full already keeps out only pods that want it.
        (node("a", "z"), vec![], Ok(())),
        (node("a", "z"), vec![("cpu", u64::MAX)], lacks("cpu")),
    ];
    for (node, requests, expected) in cases {
        let found = on(&node, std::slice::from_ref(&running), &requesting("x", &requests));
        assert_eq!(found, expected, "{requests:?}");
    }
    let mut overfull = running.clone();
    overfull.requests = amounts(&[("cpu", 9000)]);
    let little = requesting("x", &[("memory", GI)]);
    assert_eq!(
        on(&node("a", "z"), std::slice::from_ref(&overfull), &little),
        Ok(())
    );
}

#[test]
fn a_node_takes_as_many_pods_as_it_says_and_one_that_says_nothing_takes_all() {
    let mut small = node("a", "z");
    small.allocatable = Some(amounts(&[("pods", 2)]));
    let pods = [resident("x"), resident("y")];
    assert_eq!(on(&small, &pods[..1], &newcomer("z")), Ok(()));
    let full = refused("has no pod slot left");
    assert_eq!(on(&small, &pods, &newcomer("z")), full);
    small.allocatable = Some(Amounts::new());
    assert_eq!(on(&small, &[], &newcomer("z")), full);
    small.allocatable = None;
    assert_eq!(on(&small, &pods, &requesting("z", &[("cpu", u64::MAX)])), Ok(()));
}

fn toleration(key: &str, any_value: bool, value: &str, effect: &str) -> Toleration {
    Toleration {
        key: key.to_owned(),
        any_value,
        value: value.to_owned(),
        effect: effect.to_owned(),
    }
}

#[test]
fn taints_keep_out_pods_that_do_not_tolerate_them() {
    let has = |taint: &str| refused(&format!("has the taint {taint}"));
    let cases = [
        (("dedicated", "db", "NoSchedule"), None, has("dedicated=db")),
        (("dedicated", "", "NoExecute"), None, has("dedicated")),
        (("dedicated", "db", "PreferNoSchedule"), None, Ok(())),
        (
            ("dedicated", "db", "NoSchedule"),
            Some(("dedicated", false, "db", "")),
            Ok(()),
        ),
        (
            ("dedicated", "db", "NoSchedule"),
            Some(("dedicated", false, "web", "")),
            has("dedicated=db"),
        ),
        (
            ("dedicated", "db", "NoSchedule"),
            Some(("dedicated", true, "", "NoSchedule")),
            Ok(()),
        ),
        (
            ("dedicated", "db", "NoExecute"),
            Some(("dedicated", true, "", "NoSchedule")),
            has("dedicated=db"),
        ),
        (("dedicated", "db", "NoExecute"), Some(("", true, "", "")), Ok(())),
        (
            ("dedicated", "db", "NoSchedule"),
            Some(("other", true, "", "")),
            has("dedicated=db"),
        ),
    ];
    for (taint, tolerated, expected) in cases {
        let mut node = node("a", "z");
        node.taints.push(Taint {
            key: taint.0.to_owned(),
            value: taint.1.to_owned(),
            effect: taint.2.to_owned(),
        });
        let mut pod = newcomer("x");
        let tolerated_one = tolerated.map(|(key, any, value, effect)| toleration(key, any, value, effect));
        pod.tolerations.extend(tolerated_one);
        assert_eq!(on(&node, &[], &pod), expected, "{taint:?} {tolerated:?}");
    }
}

#[test]
fn a_cordon_keeps_out_pods_that_do_not_tolerate_it() {
    let mut node = node("a", "z");
    node.unschedulable = true;
    let mut pod = newcomer("x");
    assert_eq!(on(&node, &[], &pod), refused("is cordoned"));
    pod.tolerations.push(toleration(
        "node.kubernetes.io/unschedulable",
        true,
        "",
        "NoSchedule",
    ));
    assert_eq!(on(&node, &[], &pod), Ok(()));
}

#[test]
fn a_pod_runs_only_on_nodes_that_it_selects() {
    let no_match = refused("does not match its node selector or affinity");
    let cores = |operator, bound| labels(expression("cores", operator, &[bound]));
    let named = |name: &str| NodeTerm {
        labels: Selector::EVERYTHING,
        fields: expression("metadata.name", Operator::In, &[name]),
    };
    let nothing = labels(Selector::NOTHING);
    let cases = [
        (vec![("disk", "ssd")], None, Ok(())),
        (vec![("disk", "hdd")], None, no_match.clone()),
        (vec![("other", "ssd")], None, no_match.clone()),
        (vec![], Some(vec![cores(Operator::GreaterThan, "8")]), Ok(())),
        (
            vec![],
            Some(vec![cores(Operator::GreaterThan, "16")]),
            no_match.clone(),
        ),
        (vec![], Some(vec![cores(Operator::LessThan, "17")]), Ok(())),
        // One term is enough.
        (
            vec![],
            Some(vec![cores(Operator::LessThan, "1"), named("a")]),
            Ok(()),
        ),
        (vec![], Some(vec![named("b")]), no_match.clone()),
        (vec![("disk", "hdd")], Some(vec![named("a")]), no_match.clone()),
        (vec![], Some(vec![nothing]), no_match.clone()),
        (vec![], Some(vec![]), no_match),
    ];
    let mut node = node("a", "z");
    node.labels.extend(texts(&[("disk", "ssd"), ("cores", "16")]));
    for (selector, terms, expected) in cases {
        let pod = Newcomer {
            node_selector: texts(&selector),
            node_terms: terms.clone(),
            ..newcomer("x")
        };
        assert_eq!(on(&node, &[], &pod), expected, "{selector:?} {terms:?}");
    }
}

#[test]
fn a_host_port_is_used_once() {
    let port = |protocol: &str, port: u32, ip: &str| HostPort {
        protocol: protocol.to_owned(),
        port,
        ip: ip.to_owned(),
    };
    let used = refused("has host port 80 in use");
    let cases = [
        (port("TCP", 80, ""), used.clone()),
        (port("TCP", 81, ""), Ok(())),
        (port("UDP", 80, ""), Ok(())),
        (port("TCP", 80, "10.0.0.1"), used.clone()),
        (port("TCP", 80, "10.0.0.2"), Ok(())),
        (port("TCP", 80, "0.0.0.0"), used),
    ];
    let mut running = resident("web");
    running.ports.insert(port("TCP", 80, "10.0.0.1"));
    for (wanted, expected) in cases {
        let mut pod = newcomer("x");
        pod.resident.ports.insert(wanted.clone());
        assert_eq!(
            on(&node("a", "z"), std::slice::from_ref(&running), &pod),
            expected,
            "{wanted:?}"
        );
    }
}

#[test]
fn a_pod_needs_a_node_that_reaches_all_its_volumes() {
    let zone = |zone: &str| vec![labels(expression(ZONE, Operator::In, &[zone]))];
    let mut pod = newcomer("db");
    pod.volumes = vec![zone("z")];
    assert_eq!(on(&node("a", "z"), &[], &pod), Ok(()));
    pod.volumes.push(zone("y"));
    assert_eq!(on(&node("a", "z"), &[], &pod), refused("cannot reach its volume"));
}

#[test]
fn the_first_filter_that_refuses_is_the_one_that_is_named() {
    let mut node = node("a", "z");
    node.unschedulable = true;
    let mut pod = requesting("x", &[("cpu", 5000)]);
    pod.node_selector = texts(&[("disk", "ssd")]);
    assert_eq!(on(&node, &[], &pod), refused("is cordoned"));
    node.unschedulable = false;
    assert_eq!(
        on(&node, &[], &pod),
        refused("does not match its node selector or affinity")
    );
    node.labels.extend(texts(&[("disk", "ssd")]));
    assert_eq!(on(&node, &[], &pod), refused("has too little cpu"));
}
