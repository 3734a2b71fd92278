//! Asks what its configuration lists under `ask`, one question a line, and answers with what it learned,
//! unless its configuration says under `then` what to do.

use guests::bindings::imports::scupper::drain::plan::{leaving, machine_is_off};
use guests::facts::{Budget, Device, DrainRequest, Job, Owner, Peer, PeerGroup, Volume};
use guests::{
    Call, Description, Drain, Entry, Finding, Grant, Node, Outcome, Phase, Plan, Pod, config, facts,
};

guests::about!(
    Description::new("asks", "0.1.0", "Asks about the cluster")
        .wants(Grant::facts_of_request())
        .wants(Grant::facts_of_namespaces())
        .wants(Grant::facts_of_budgets())
        .wants(Grant::facts_of_owners())
        .wants(Grant::facts_of_resources())
        .wants(Grant::facts_of_volumes())
        .wants(Grant::facts_of_peers())
);
guests::planner!(plan);
guests::hooks!([Phase::BeforeDrain], step);
guests::surroundings!(check);

fn plan(_drain: Drain, _node: Node, pods: Vec<Pod>, draft: Plan) -> Result<Plan, String> {
    let learned = learn(&pods);
    match config::get("then").as_deref() {
        Some("trap") if learned.contains("away") => panic!("it cannot go on"),
        Some("go on") => Ok(draft),
        Some("give reasons") => Ok(with_reason(draft, &learned)),
        _ => Err(learned),
    }
}

fn with_reason(mut draft: Plan, reason: &str) -> Plan {
    for decision in &mut draft.decisions {
        reason.clone_into(&mut decision.reason);
    }
    draft
}

fn step(call: &Call) -> Outcome {
    match config::get("then").as_deref() {
        Some("go on") => Outcome::Done,
        _ => Outcome::failed(learn(&call.pods)).into(),
    }
}

fn check(_node: Option<Node>) -> Vec<Finding> {
    vec![Finding::ok("facts", learn(&[]))]
}

fn learn(pods: &[Pod]) -> String {
    let ask = config::get("ask").unwrap_or_default();
    let answers: Vec<String> = ask.lines().flat_map(|question| answer(question, pods)).collect();
    answers.join("; ")
}

fn answer(question: &str, pods: &[Pod]) -> Vec<String> {
    let words: Vec<&str> = question.split(' ').collect();
    match words.as_slice() {
        ["leaving"] => vec![format!("leaving {:?}", leaving())],
        ["leaving", "count"] => vec![format!("leaving {}", leaving().len())],
        ["leaving", "for", "ever"] => loop {
            std::hint::black_box(leaving());
        },
        ["machine"] => vec![format!("machine-is-off {}", machine_is_off())],
        ["cluster"] => vec![format!("cluster {:?}", guests::cluster::uid())],
        ["request"] => vec![match facts::request() {
            Ok(request) => format!(
                "{} {} {:?}",
                request.trigger,
                request.name,
                request.label("ticket")
            ),
            Err(error) => error.to_string(),
        }],
        ["drain-requests"] => vec![match facts::drain_requests() {
            Ok(requests) => requests.iter().map(drain_request).collect::<Vec<_>>().join(", "),
            Err(error) => error.to_string(),
        }],
        ["namespace", name] => vec![namespace(name)],
        // So many different ones; the plan shows only the last answer.
        ["namespaces", times] => {
            let times: usize = times.parse().unwrap_or(0);
            let answers = (0..times).map(|number| namespace(&format!("other-{number}")));
            answers.last().into_iter().collect()
        }
        ["budgets"] => vec![match facts::budgets() {
            Ok(budgets) => budgets.iter().map(budget).collect::<Vec<_>>().join(", "),
            Err(error) => error.to_string(),
        }],
        ["owners"] => pods.iter().map(owners).collect(),
        ["job"] => pods.iter().map(job).collect(),
        ["resources"] => pods.iter().map(resources).collect(),
        ["volumes"] => pods.iter().map(volumes).collect(),
        ["volumes", "stranger"] => vec![volumes(&stranger(pods))],
        ["peers"] => vec![
            peers(facts::controller_peers(pods)),
            peers(facts::group_peers(pods)),
        ],
        ["peers", "groups"] => vec![peers(facts::group_peers(pods))],
        ["peers", "stranger"] => vec![peers(facts::group_peers(&[stranger(pods)]))],
        ["peers", "count"] => {
            let count = |group: PeerGroup| group.others.len().to_string();
            match facts::controller_peers(pods) {
                Ok(groups) => groups.into_iter().map(count).collect(),
                Err(error) => vec![error.to_string()],
            }
        }
        ["stranger"] => vec![owners(&stranger(pods))],
        ["resources", "stranger"] => vec![resources(&stranger(pods))],
        _ => vec![format!("what is {question}?")],
    }
}

fn drain_request(request: &DrainRequest) -> String {
    let DrainRequest {
        namespace,
        name,
        uid,
        labels,
        annotations,
        creation_timestamp,
        check_name,
        error_codes,
        recommended_action,
        health_event_id,
        reason,
        entities_impacted,
        metadata,
        pods_to_drain,
    } = request;
    let entries = |entries: &[Entry]| {
        let entries = entries.iter();
        entries
            .map(|it| format!("{}={}", it.key, it.value))
            .collect::<Vec<_>>()
    };
    let entities = entities_impacted.iter();
    let entities: Vec<_> = entities.map(|it| format!("{}:{}", it.type_, it.value)).collect();
    let pods = pods_to_drain.iter();
    let pods: Vec<_> = pods.map(|it| format!("{}/{}", it.namespace, it.name)).collect();
    format!(
        "{namespace}/{name} {uid} {:?} {:?} {creation_timestamp:?} {check_name} {error_codes:?} {recommended_action} \
         {health_event_id} {reason} {entities:?} {:?} {pods:?}",
        entries(labels),
        entries(annotations),
        entries(metadata)
    )
}

/// A pod that the call does not have.
fn stranger(pods: &[Pod]) -> Pod {
    Pod {
        uid: "another-pod".to_owned(),
        ..pods.first().unwrap().clone()
    }
}

fn namespace(name: &str) -> String {
    match facts::namespace(name) {
        Ok(namespace) => format!("{} {:?}", namespace.name, namespace.label("team")),
        Err(error) => error.to_string(),
    }
}

fn budget(budget: &Budget) -> String {
    let Budget {
        namespace,
        name,
        pods,
        expected_pods,
        desired_healthy,
        current_healthy,
        disruptions_allowed,
        unhealthy_pod_eviction_policy,
        observed,
    } = budget;
    format!(
        "{namespace}/{name} {pods:?} {expected_pods} {desired_healthy} {current_healthy} {disruptions_allowed} \
         {unhealthy_pod_eviction_policy:?} {observed} {}",
        budget.can_never_allow()
    )
}

fn owners(pod: &Pod) -> String {
    let owner = |owner: &Owner| {
        let Owner {
            kind,
            name,
            replicas,
            ready_replicas,
            strategy,
            ..
        } = owner;
        let tier = owner.label("tier");
        format!("{kind}/{name} {tier:?} {replicas:?} {ready_replicas:?} {strategy:?}")
    };
    match facts::owners(pod) {
        Ok(owners) => owners.iter().map(owner).collect::<Vec<_>>().join(" < "),
        Err(error) => error.to_string(),
    }
}

fn job(pod: &Pod) -> String {
    match facts::job(pod) {
        Ok(Some(job)) => {
            let Job {
                name,
                failed,
                backoff_limit,
                backoff_limit_per_index,
                on_disruption,
            } = &job;
            let fails = job.fails_with(pod);
            format!("{name} {failed} {backoff_limit} {backoff_limit_per_index:?} {on_disruption:?} {fails}")
        }
        Ok(None) => "no job".to_owned(),
        Err(error) => error.to_string(),
    }
}

fn resources(pod: &Pod) -> String {
    let device = |device: &Device| {
        let Device {
            source,
            driver,
            pool,
            name,
            admin_access,
            ..
        } = device;
        let uuid = device.attribute("uuid");
        format!("{source:?} {driver} {pool:?} {name} {admin_access} {uuid:?}")
    };
    match facts::resources(pod) {
        Ok(resources) => {
            let requests = resources.requests.iter();
            let requests = requests.map(|request| format!("{}={}", request.name, request.amount));
            let devices = resources.devices.iter().map(device);
            let unknown = resources
                .unallocated_claims
                .iter()
                .map(|claim| format!("{claim}?"));
            requests
                .chain(devices)
                .chain(unknown)
                .collect::<Vec<_>>()
                .join(", ")
        }
        Err(error) => error.to_string(),
    }
}

fn volumes(pod: &Pod) -> String {
    let volume = |volume: &Volume| {
        let Volume {
            name,
            kind,
            node_local,
            claim,
        } = volume;
        let stays = if *node_local { " node-local" } else { "" };
        let claim = claim.as_ref().map(|claim| {
            let modes = claim.access_modes.join("+");
            format!(
                " {}={:?} {:?} {} {modes} {:?}",
                claim.name, claim.volume, claim.kind, claim.storage_class, claim.attached_to
            )
        });
        format!("{name} {kind}{stays}{}", claim.unwrap_or_default())
    };
    match facts::volumes(pod) {
        Ok(volumes) => volumes.iter().map(volume).collect::<Vec<_>>().join(", "),
        Err(error) => error.to_string(),
    }
}

fn peers(found: Result<Vec<PeerGroup>, facts::Error>) -> String {
    let peer = |peer: &Peer| {
        let Peer {
            name, node, phase, ..
        } = peer;
        let flags = [("ready ", peer.ready), ("terminating ", peer.is_terminating())];
        let flags: String = flags
            .into_iter()
            .filter_map(|(flag, is_set)| is_set.then_some(flag))
            .collect();
        format!("{name} {node:?} {phase:?} {}", flags.trim_end())
    };
    let group = |group: &PeerGroup| {
        let others: Vec<_> = group.others.iter().map(peer).collect();
        format!("{} {:?}: {}", group.name, group.pods, others.join(", "))
    };
    match found {
        Ok(groups) => groups.iter().map(group).collect::<Vec<_>>().join(" | "),
        Err(error) => error.to_string(),
    }
}
