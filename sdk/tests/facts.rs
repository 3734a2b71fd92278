//! What `testing::Host` answers to `facts`, which is what the real host would.

use scupper_sdk::{
    Call, Description, Draft, Drain, Finding, Grant, Hooks, Node, Outcome, Phase, Planner, Policy, Subject,
    Surroundings, Verdict, description,
    facts::{self, Error},
    testing::{Host, budget, drain_request, namespace, owner, peer, pod, resources, volume},
};

/// Deletes single replicas whose budget never opens, and keeps the pods of namespaces that are being kept.
struct Single;

scupper_sdk::export!(Single with planner, hooks, surroundings);

impl Policy for Single {
    fn describe() -> Description {
        description!("Deletes single replicas behind a budget")
            .wants(Grant::facts_of_budgets())
            .wants(Grant::facts_of_owners())
            .wants(Grant::facts_of_namespaces())
    }
}

impl Planner for Single {
    fn plan(_drain: &Drain, _node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
        let budgets = facts::budgets()?;
        for pod in draft.pods() {
            let namespace = facts::namespace(&pod.namespace)?;
            if namespace.annotation("example.com/keep").is_some() || namespace.is_terminating() {
                draft.keep(pod, "its namespace");
            }
            let top = facts::owners(pod)?.pop();
            let is_single = top.is_some_and(|top| top.replicas == Some(1) && top.kind == "Deployment");
            let mut covering = budgets.iter().filter(|budget| budget.covers(pod));
            if is_single && covering.any(facts::Budget::can_never_allow) {
                draft.delete(pod, "its budget never opens");
            }
        }
        Ok(())
    }
}

impl Hooks for Single {
    fn phases() -> Vec<Phase> {
        vec![Phase::BeforeDrain]
    }

    fn step(call: &Call) -> Outcome {
        match call.pods.first().map(|pod| facts::namespace(&pod.namespace)) {
            Some(Ok(namespace)) => Outcome::failed(namespace.name).into(),
            Some(Err(error)) => error.into(),
            None => match facts::request() {
                Ok(_) => Outcome::Done,
                Err(error) => error.into(),
            },
        }
    }
}

impl Surroundings for Single {
    fn check(_node: Option<&Node>) -> Vec<Finding> {
        let known = facts::namespace("void");
        let closed = facts::budgets();
        vec![Finding::ok("facts", format!("{known:?} {closed:?}"))]
    }
}

#[test]
fn a_planner_decides_on_what_it_learns() {
    let host = Host::new();
    host.pods([pod("shop/cart"), pod("shop/site"), pod("bank/ledger")]);
    host.namespaces([namespace("bank").with_annotation("example.com/keep", "")]);
    host.budgets([
        budget("shop/cart", 1, &["shop/cart"]),
        budget("shop/site", 1, &["shop/site", "shop/site-2"]),
        budget("other/one", 1, &["other/one"]),
    ]);
    for name in ["cart", "site"] {
        let set = owner("apps/v1", "ReplicaSet", "set", 1);
        host.owners(
            &format!("shop/{name}"),
            [set, owner("apps/v1", "Deployment", name, 1)],
        );
    }
    let plan = host.plan::<Single>().unwrap();
    assert_eq!(plan.verdict("shop/cart"), Some(Verdict::Delete));
    assert_eq!(plan.verdict("shop/site"), Some(Verdict::Evict));
    assert_eq!(plan.verdict("bank/ledger"), Some(Verdict::Keep));
}

#[test]
fn a_plan_without_an_answer_does_not_count() {
    let host = Host::new();
    host.pods([pod("shop/cart")]);
    host.outage(Some("the API server is away"));
    assert_eq!(
        host.plan::<Single>().err().as_deref(),
        Some("a fact that it asked for could not be read: the API server is away")
    );
    host.outage(None);
    assert!(host.plan::<Single>().is_ok());
}

#[test]
fn a_step_retries_what_could_not_be_read_and_gives_up_on_what_was_not_granted() {
    let host = Host::new();
    let step = || host.step::<Single>(Phase::BeforeDrain, Subject::Node);
    let refused: Outcome = Error::NotGranted("facts request".to_owned()).into();
    assert_eq!(step(), refused);
    assert!(matches!(&refused, Outcome::Failed(failure) if failure.retry_after.is_none()));
    host.pods([pod("shop/cart")]);
    host.outage(Some("the API server is away"));
    assert!(matches!(step(), Outcome::Failed(failure) if failure.retry_after.is_some()));
}

#[test]
fn a_check_asks_only_for_namespaces() {
    let host = Host::new();
    let not_found = Error::NotFound("there is no namespace void".to_owned());
    let not_granted = Error::NotGranted("facts budgets".to_owned());
    let expected = format!("Err({not_found:?}) Err({not_granted:?})");
    assert_eq!(host.check::<Single>(), [Finding::ok("facts", expected)]);
}

/// Evicts only the pods that have the device `GPU-1`.
struct OneGpu;

impl Policy for OneGpu {
    fn describe() -> Description {
        description!("Evicts the pods that have one GPU").wants(Grant::facts_of_resources())
    }
}

impl Planner for OneGpu {
    fn plan(_drain: &Drain, _node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
        for pod in draft.pods() {
            let resources = facts::resources(pod)?;
            let is_unknown = resources.requested("nvidia.com/gpu") > 0 && resources.devices.is_empty();
            if is_unknown || !resources.unallocated_claims.is_empty() {
                draft.refuse(pod, "its devices are unknown");
            } else if !resources.has_device("GPU-1") {
                draft.keep(pod, "it does not have the GPU");
            }
        }
        Ok(())
    }
}

#[test]
fn pods_have_requests_and_devices() {
    let host = Host::new();
    host.pods(
        [
            "a/claimed",
            "a/annotated",
            "a/other",
            "a/watch",
            "a/none",
            "a/unknown",
        ]
        .map(pod),
    );
    let gpu = || resources().with_request("nvidia.com/gpu", 1);
    let claimed = |name| resources().with_claimed("gpus", "gpu.nvidia.com", name, &[("uuid", "GPU-1")]);
    host.resources("a/claimed", claimed("gpu-0"));
    host.resources("a/annotated", gpu().with_device("nvidia.com/gpu", "GPU-1"));
    host.resources("a/other", gpu().with_device("nvidia.com/gpu", "GPU-11"));
    let mut watch = claimed("gpu-0");
    watch.devices[0].admin_access = true;
    host.resources("a/watch", watch);
    host.resources("a/unknown", gpu());
    let plan = host.plan::<OneGpu>().unwrap();
    for (pod, verdict) in [
        ("a/claimed", Verdict::Evict),
        ("a/annotated", Verdict::Evict),
        ("a/other", Verdict::Keep),
        ("a/watch", Verdict::Keep),
        ("a/none", Verdict::Keep),
        ("a/unknown", Verdict::Refuse),
    ] {
        assert_eq!(plan.verdict(pod), Some(verdict), "{pod}");
    }
}

/// Says why pods leave, and keeps all if a request names a NIC.
struct Because;

impl Policy for Because {
    fn describe() -> Description {
        description!("Says why pods leave").wants(Grant::facts_of_request())
    }
}

impl Planner for Because {
    fn plan(_drain: &Drain, _node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
        let requests = facts::drain_requests()?;
        let mut nics = requests.iter().flat_map(|request| request.entities("NIC"));
        let nic = nics.next();
        for pod in draft.leaving() {
            match nic {
                Some(nic) => draft.keep(pod, nic),
                None => draft.explain(pod, format!("for {} requests", requests.len())),
            }
        }
        Ok(())
    }
}

#[test]
fn a_drain_is_for_the_requests_that_a_test_sets_and_for_none_otherwise() {
    let host = Host::new();
    host.pods([pod("shop/cart")]);
    let reason = |host: &Host| {
        host.plan::<Because>()
            .unwrap()
            .reason("shop/cart")
            .unwrap()
            .to_owned()
    };
    assert!(reason(&host).starts_with("for 0 requests; "), "{}", reason(&host));
    let request = drain_request("a", "RESTART_BM").with_entity("GPU_UUID", "GPU-1");
    host.drain_requests([request.clone(), drain_request("b", "")]);
    assert!(reason(&host).starts_with("for 2 requests; "), "{}", reason(&host));
    host.drain_requests([request.with_entity("NIC", "mlx5_0")]);
    assert_eq!(reason(&host), "mlx5_0");
}

#[test]
fn requests_and_devices_are_found_by_patterns() {
    let patterns = ["nvidia.com/*".to_owned(), "gpu.nvidia.com".to_owned()];
    let mut has = resources()
        .with_request("nvidia.com/gpu", 2)
        .with_request("nvidia.com/mig-1g.5gb", 1)
        .with_request("cpu", 500)
        .with_device("nvidia.com/gpu", "GPU-1")
        .with_device("nic.example.com", "nic-0")
        .with_claimed("gpu", "gpu.nvidia.com", "gpu-2", &[]);
    let names = |has: &facts::Resources| {
        let names = has.devices_of(&patterns).map(|device| device.name.clone());
        names.collect::<Vec<_>>()
    };
    assert_eq!(has.requested_of(&patterns), 3);
    assert_eq!(names(&has), ["GPU-1", "gpu-2"]);
    has.devices[0].admin_access = true;
    assert_eq!(names(&has), ["gpu-2"]);
}

/// Keeps pods that would lose data.
struct KeepData;

impl Policy for KeepData {
    fn describe() -> Description {
        description!("Keeps pods that would lose data").wants(Grant::facts_of_volumes())
    }
}

impl Planner for KeepData {
    fn plan(_drain: &Drain, node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
        for pod in draft.pods() {
            let volumes = facts::volumes(pod)?;
            if volumes
                .iter()
                .any(|volume| volume.node_local && volume.is_persistent())
            {
                draft.refuse(pod, "its volume cannot follow it");
            } else if volumes.iter().any(|volume| volume.node_local) {
                draft.keep(pod, "it would lose its data");
            } else if volumes.iter().any(|volume| volume.is_attached_elsewhere(node)) {
                draft.delete(pod, "its successor has the volume");
            }
        }
        Ok(())
    }
}

#[test]
fn pods_have_volumes_on_this_node_and_elsewhere() {
    let host = Host::new();
    let names = ["a/local", "a/cache", "a/network", "a/moved", "a/own", "a/none"];
    host.pods(names.map(pod));
    let claimed = |nodes: &[&str]| volume("data", "persistentVolumeClaim").with_claim("data", nodes);
    host.volumes("a/local", [claimed(&[]).on_this_node()]);
    host.volumes("a/cache", [volume("cache", "emptyDir")]);
    host.volumes("a/network", [volume("config", "configMap"), claimed(&["node-1"])]);
    host.volumes("a/moved", [claimed(&["node-1", "node-2"])]);
    host.volumes(
        "a/own",
        [volume("own", "ephemeral")
            .with_claim("own-own", &[])
            .on_this_node()],
    );
    let plan = host.plan::<KeepData>().unwrap();
    for (pod, verdict) in [
        ("a/local", Verdict::Refuse),
        ("a/cache", Verdict::Keep),
        ("a/network", Verdict::Evict),
        ("a/moved", Verdict::Delete),
        ("a/own", Verdict::Keep),
        ("a/none", Verdict::Evict),
    ] {
        assert_eq!(plan.verdict(pod), Some(verdict), "{pod}");
    }
}

/// Refuses pods whose gang spans other nodes, unless it is ending.
struct Gangs;

impl Policy for Gangs {
    fn describe() -> Description {
        description!("Treats gangs as one").wants(Grant::facts_of_peers())
    }
}

impl Planner for Gangs {
    fn plan(_drain: &Drain, node: &Node, draft: &mut Draft<'_>) -> Result<(), String> {
        for gang in facts::group_peers(draft.pods())? {
            for pod in draft.pods().iter().filter(|pod| gang.has(pod)) {
                if gang.others.iter().any(facts::Peer::is_terminating) {
                    draft.delete(pod, "its gang is ending");
                } else if gang.others.iter().any(|peer| peer.is_elsewhere(node)) {
                    draft.refuse(pod, "its gang spans other nodes");
                }
            }
        }
        for workload in facts::controller_peers(draft.pods())? {
            for pod in draft.pods().iter().filter(|pod| workload.has(pod)) {
                draft.explain(pod, format!("one of {}", workload.others.len() + 1));
            }
        }
        Ok(())
    }
}

#[test]
fn pods_have_peers_here_and_elsewhere() {
    let host = Host::new();
    let names = ["a/here", "a/wide", "a/ending", "a/waiting", "a/web", "a/none"];
    host.pods(names.map(pod));
    host.group_peers("ring", &["a/here"], [peer("here-2", "node-1")]);
    host.group_peers("wide", &["a/wide"], [peer("wide-2", "node-2")]);
    let mut ending = peer("ending-2", "node-2");
    ending.deletion_timestamp = Some(0);
    host.group_peers("ending", &["a/ending"], [peer("ending-3", "node-2"), ending]);
    host.group_peers("waiting", &["a/waiting"], [peer("waiting-2", "")]);
    host.controller_peers("web", &["a/web"], [peer("web-2", "node-2")]);
    let plan = host.plan::<Gangs>().unwrap();
    for (pod, verdict) in [
        ("a/here", Verdict::Evict),
        ("a/wide", Verdict::Refuse),
        ("a/ending", Verdict::Delete),
        ("a/waiting", Verdict::Evict),
        ("a/web", Verdict::Evict),
        ("a/none", Verdict::Evict),
    ] {
        assert_eq!(plan.verdict(pod), Some(verdict), "{pod}");
    }
}
