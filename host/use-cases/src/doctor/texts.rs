//! Every finding of the doctor but those of policies, which speak for themselves.

use std::collections::BTreeSet;

use scupper_api::{DrainRequestRef, LifecycleTransition, TransitionNodes};
use scupper_engine::{Checkpoint, Condition, NamedPods, Phase, Pod, SurgeMethod, SurgeSettings};

use super::*;
use scupper_cluster::{
    CLAIM_PURPOSE, DrainRequestObject, DrainRequestResource, needed, needed_for_certainty,
    needed_for_drain_requests, needed_for_fact, needed_for_local_data, needed_for_node_is_off,
    needed_for_pod_annotations, needed_for_surge, needed_for_volumes,
};
use scupper_config::DrainRequestsFile;
use scupper_policy_spec::FACTS;
use scupper_report::fixture;

fn served(group: &str, resources: &[&str]) -> LifecycleGroup {
    LifecycleGroup {
        group: group.to_owned(),
        resources: resources.iter().map(ToString::to_string).collect(),
    }
}

fn groups() -> Vec<Finding> {
    let ours = [
        "lifecycleevents",
        "lifecycleevents/status",
        "lifecycletransitions",
    ];
    let native = ["evictionrequests", "evictions"];
    let cases = [
        (&ours[..], &[][..]),
        (&ours, &ours),
        (&native, &ours),
        (&[], &ours),
        (&native, &[]),
        (&[], &[]),
    ];
    let found =
        cases.map(|(official, own)| group(&served(OFFICIAL_GROUP, official), &served(OWN_GROUP, own)));
    found.to_vec()
}

fn claimants() -> Vec<Finding> {
    let message = || "no handler for type SLMPlugin".to_owned();
    // A new answer of a kubelet does not compile here, and belongs into the list.
    let (Registration::Registered
    | Registration::Unsupported { .. }
    | Registration::Refused { .. }
    | Registration::Waiting
    | Registration::Silent) = Registration::Registered;
    let answers = [
        Ok(Registration::Registered),
        Ok(Registration::Unsupported { message: message() }),
        Ok(Registration::Refused { message: message() }),
        Ok(Registration::Waiting),
        Ok(Registration::Silent),
        Err(slm::SlmError::NoDirectory {
            path: "kubelet/plugins".into(),
        }),
    ];
    let options = DoctorOptions {
        connection: Connection::default(),
        node: None,
        driver: "drain.slm.k8s.io".to_owned(),
        kubelet_root: Some("kubelet".into()),
        lease_namespace: "scupper".to_owned(),
        evict_as_node: false,
        config: None,
    };
    let asked = answers.iter().map(Some);
    asked
        .chain([None])
        .map(|asked| claimant(asked, &options))
        .collect()
}

fn configurations() -> Vec<Finding> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scupper.yaml");
    let whole = |drain: &str| {
        format!("apiVersion: scupper.dev/v1alpha1\nkind: Configuration\npolicies: []\ndrain: {drain}\n")
    };
    let texts = [
        whole("{force: true}"),
        whole("{allow-overrides: [force, timeout]}"),
        "policies: {}".to_owned(),
    ];
    let read = texts.map(|text| {
        std::fs::write(&file, text).unwrap();
        let found = overrides(Some(&file));
        let shown = |text: &str| text.replace(&file.display().to_string(), "scupper.yaml");
        Finding {
            text: shown(&found.text),
            remedy: found.remedy.as_deref().map(shown),
            ..found
        }
    });
    [overrides(None)].into_iter().chain(read).collect()
}

fn nodes() -> Vec<Finding> {
    let cordoned = fixture::node(fixture::mark("command", Phase::Evicting));
    let mut plain = cordoned.clone();
    (plain.unschedulable, plain.checkpoint) = (false, None::<Checkpoint>);
    let gone = LeaseHolder::Abandoned {
        by: "scupper/scupper-x7d2p".to_owned(),
        silent_since: None,
    };
    [
        (None, LeaseHolder::Unknown),
        (Some(plain), LeaseHolder::Unknown),
        (Some(cordoned.clone()), LeaseHolder::Unknown),
        (Some(cordoned), gone),
    ]
    .map(|(it, holder)| node("worker-1", it, &holder))
    .to_vec()
}

/// A request of a node, with the type of its condition that is true.
fn drain_request(name: &str, node: &str, condition: Option<&str>) -> DrainRequestObject {
    let text = str::to_owned;
    let condition = condition.map(|kind| Condition {
        kind: text(kind),
        status: text("True"),
        reason: String::new(),
        message: String::new(),
        since: None,
    });
    DrainRequestObject {
        reference: DrainRequestRef {
            namespace: text("nvsentinel"),
            name: text(name),
            uid: text(name),
        },
        created: None,
        deleting: false,
        node: text(node),
        problem: None,
        pods: Ok(NamedPods::new()),
        conditions: condition.into_iter().collect(),
        fields: std::sync::Arc::default(),
    }
}

/// Of two nodes: a request that waits, some that are answered, and one whose node exists.
fn unserved(kind: &DrainRequestResource, more: usize) -> Option<Finding> {
    let nodes = ["worker-1", "worker-2"].map(str::to_owned).into();
    let mut requests = vec![
        drain_request("served", "worker-1", Some("DrainInProgress")),
        drain_request("done", "worker-9", Some("DrainComplete")),
        drain_request("failed", "worker-9", Some("DrainFailed")),
    ];
    let without_node = (0..more).map(|number| drain_request(&format!("lost-{number}"), "worker-9", None));
    requests.extend(without_node);
    requests.extend((more > 0).then(|| drain_request("without-a-node", "", None)));
    drain_requests::unserved_requests(kind, &DrainRequestsFile::default(), &nodes, &requests)
}

#[test]
fn requests_that_end_or_whose_node_exists_are_served() {
    assert_eq!(unserved(&kind(), 0), None);
}

fn kind() -> DrainRequestResource {
    DrainRequestResource {
        group: "nvsentinel.nvidia.com".to_owned(),
        version: "v1alpha1".to_owned(),
        plural: "drainrequests".to_owned(),
    }
}

#[test]
fn nodes_that_a_quarantine_drains_whole_are_named() {
    assert_eq!(drain_requests::drained_whole(&[]), None);
    let nodes: Vec<String> = (0..12).map(|number| format!("gpu-{number}")).collect();
    let found = drain_requests::drained_whole(&nodes).unwrap();
    assert_eq!(found.state, FindingState::Note);
    assert!(found.text.ends_with("gpu-8, gpu-9, 2 more"), "{}", found.text);
    let remedy = "kubectl label node -l scupper.dev/drain-on-cordon=true scupper.dev/drain-on-cordon- \
                  scupper.dev/undo-on-uncordon=true";
    assert_eq!(found.remedy.as_deref(), Some(remedy));
}

fn transition(name: &str, sla: Option<u64>) -> LifecycleTransition {
    let text = str::to_owned;
    LifecycleTransition {
        name: text(name),
        driver: text("drain.slm.k8s.io"),
        start: text("drain-started"),
        end: text("drain-complete"),
        nodes: TransitionNodes::AllNodes,
        sla: sla.map(Duration::from_secs),
    }
}

/// The uncordon has a limit of its own, whatever the file says.
fn transitions() -> Vec<Finding> {
    let driver = "drain.slm.k8s.io";
    let with = |name: &str, sla| {
        let uncordon = transition("drain.slm.k8s.io-uncordon", Some(300));
        [transition(name, sla), uncordon]
    };
    let hour = Duration::from_secs(3600);
    let of_node = "drain.slm.k8s.io.worker-1";
    [
        published::found(driver, &[], Some(None)),
        published::found(driver, &with(driver, None), None),
        published::found(driver, &with(driver, None), Some(Some(hour))),
        published::found(driver, &with(of_node, Some(1800)), Some(Some(hour))),
        published::found(driver, &with(driver, Some(1800)), Some(None)),
        published::found(driver, &with(driver, Some(3600)), Some(Some(hour))),
        vec![
            published::driver_pod("worker-1", Ok(Some(driver_pod(true)))),
            published::driver_pod("worker-1", Ok(Some(driver_pod(false)))),
            published::driver_pod("worker-1", Ok(None)),
        ],
    ]
    .concat()
}

fn driver_pod(ready: bool) -> Pod {
    let mut pod = fixture::running("scupper-x7d2p");
    (pod.id.namespace, pod.ready) = ("scupper".to_owned(), ready);
    pod
}

const ACCOUNT: &str = "system:serviceaccount:scupper:scupper";

#[test]
fn a_driver_has_an_account_of_its_namespace_or_name() {
    for (user, is_driver) in [
        (ACCOUNT, true),
        ("system:serviceaccount:scupper:other", true),
        ("system:serviceaccount:drains:scupper", true),
        ("system:serviceaccount:ops:robot", false),
        ("scupper", false),
        ("kubernetes-admin", false),
        ("the caller", false),
    ] {
        assert_eq!(
            rights::is_account_of_drivers(user, "scupper"),
            is_driver,
            "{user}"
        );
    }
}

#[test]
fn every_finding() {
    let mut all = needed(OWN_GROUP, true, "scupper");
    all.extend(FACTS.into_iter().flat_map(|it| needed_for_fact(it, OWN_GROUP)));
    let kind = kind();
    all.extend(needed_for_drain_requests(&kind, "nvsentinel"));
    all.extend(needed_for_volumes());
    all.extend(needed_for_local_data());
    for method in [SurgeMethod::Restart, SurgeMethod::Scale] {
        let surge = SurgeSettings {
            method,
            namespaces: BTreeSet::new(),
            timeout: SurgeSettings::TIMEOUT,
        };
        all.extend(needed_for_surge(&surge));
        let namespaces = BTreeSet::from(["shop".to_owned()]);
        all.extend(needed_for_surge(&SurgeSettings { namespaces, ..surge }));
    }
    all.extend(needed_for_pod_annotations());
    let off = needed_for_node_is_off();
    let off = [&[][..], &off[2..3], &off[..]].map(node_is_off::found);
    let namespaces = ["nvsentinel".to_owned()];
    let requests = [true, false].map(|is_served| drain_requests::found(&kind, &namespaces, is_served));
    let optional = needed_for_certainty();
    let mut if_it_claims = needed(OWN_GROUP, true, "scupper");
    if_it_claims.retain(|right| right.purpose == CLAIM_PURPOSE);
    if_it_claims.iter_mut().for_each(|right| right.required = false);
    let findings = [
        groups(),
        nodes(),
        claimants(),
        configurations(),
        requests.to_vec(),
        vec![drain_requests::unselectable(&kind)],
        [1, 12]
            .into_iter()
            .filter_map(|more| unserved(&kind, more))
            .collect(),
        rights::found("ops@example.com", all.len(), Vec::new(), "scupper"),
        rights::found("ops@example.com", all.len(), all[..1].to_vec(), "scupper"),
        rights::found(ACCOUNT, all.len(), all, "scupper"),
        rights::found(ACCOUNT, 99, if_it_claims, "scupper"),
        [&optional[..], &optional[..1], &[]]
            .into_iter()
            .filter_map(|missing| rights::uncertain("ops@example.com", missing))
            .collect(),
        off.to_vec(),
        transitions(),
    ];
    let lines = findings.concat().into_iter().map(|found| {
        let Finding {
            subject,
            state,
            text,
            remedy,
        } = found;
        let remedy = remedy.map(|remedy| format!("\n    do: {remedy}"));
        format!("{state:?} {subject}: {text}{}\n", remedy.unwrap_or_default())
    });
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("doctor-findings", lines.collect::<String>());
    });
}
