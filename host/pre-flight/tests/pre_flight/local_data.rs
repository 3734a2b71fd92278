//! Data that does not follow its pod.

use std::collections::BTreeMap;

use scupper_engine::{LocalData, Pod, PodPhase, Settings, Verdict, VolumeClaim};
use scupper_pre_flight::{Certainty, Concern, Finding, Input, LocalVolumes, examine};

use crate::objects::{evict_all, labels, pod};

fn claim(name: &str) -> VolumeClaim {
    VolumeClaim {
        namespace: "shop".to_owned(),
        name: name.to_owned(),
    }
}

fn claiming(name: &str, claims: &[&str]) -> Pod {
    Pod {
        volume_claims: claims.iter().map(|claim| (*claim).to_owned()).collect(),
        ..pod(name, labels(&[]), None)
    }
}

/// The findings of a drain that evicts all pods but `kept`.
fn found(pods: &[Pod], kept: Option<&str>, volumes: &LocalVolumes) -> Vec<Finding> {
    let mut plan = evict_all(pods);
    for (pod, decision) in pods.iter().zip(&mut plan.decisions) {
        if kept == Some(pod.id.name.as_str()) {
            decision.verdict = Verdict::Keep;
        }
    }
    examine(&Input {
        pods,
        plan: &plan,
        settings: &Settings::default(),
        budgets: &[],
        time_left: None,
        namespaces: &BTreeMap::new(),
        volumes,
    })
}

fn local(claims: &[(&str, &str)]) -> LocalVolumes {
    let claims = claims
        .iter()
        .map(|(name, volume)| (claim(name), (*volume).to_owned()));
    LocalVolumes {
        claims: claims.collect(),
        unread: None,
    }
}

#[test]
fn each_pod_whose_volume_only_this_node_can_use_is_named_with_its_claims() {
    let mut finished = claiming("done", &["data-0"]);
    finished.phase = PodPhase::Succeeded;
    let pods = [
        claiming("db-0", &["data-0", "logs-0", "free"]),
        claiming("db-1", &["free"]),
        claiming("stays", &["data-0"]),
        finished,
    ];
    let volumes = local(&[("data-0", "pv-1"), ("logs-0", "pv-2"), ("elsewhere", "pv-3")]);
    let findings = found(&pods, Some("stays"), &volumes);
    let [finding] = findings.as_slice() else {
        panic!("{findings:?}")
    };
    assert_eq!(
        (finding.certainty, finding.concern),
        (Certainty::Likely, Concern::LocalVolume)
    );
    assert_eq!(finding.pods, [pods[0].id.clone()]);
    assert_eq!(
        finding.reason,
        "a replacement of the pod cannot start on another node with its data: only this node can use volume pv-1 of \
         claim data-0, pv-2 of claim logs-0"
    );
    assert_eq!(finding.change, "copy the data elsewhere and delete the claim");
}

#[test]
fn a_claim_of_the_same_name_in_another_namespace_is_another_claim() {
    let volumes = LocalVolumes {
        claims: BTreeMap::from([(
            VolumeClaim {
                namespace: "other".to_owned(),
                name: "data-0".to_owned(),
            },
            "pv-1".to_owned(),
        )]),
        unread: None,
    };
    assert_eq!(found(&[claiming("db-0", &["data-0"])], None, &volumes), []);
}

#[test]
fn what_could_not_be_read_is_a_finding_about_pods_with_claims() {
    let volumes = LocalVolumes {
        unread: Some("persistentvolumes is forbidden".to_owned()),
        ..local(&[])
    };
    let pods = [claiming("db-0", &["data-0"]), claiming("web", &[])];
    let findings = found(&pods, None, &volumes);
    let [finding] = findings.as_slice() else {
        panic!("{findings:?}")
    };
    assert_eq!(finding.concern, Concern::UnknownVolume);
    assert_eq!(finding.pods, [pods[0].id.clone()]);
    assert!(
        finding.reason.ends_with("persistentvolumes is forbidden"),
        "{}",
        finding.reason
    );
    assert_eq!(found(&[claiming("web", &[])], None, &volumes), []);
}

#[test]
fn directories_of_the_node_are_named_once_for_all_pods_that_use_them() {
    let mut pods = [claiming("a", &[]), claiming("b", &[]), claiming("c", &[])];
    pods[0].host_paths = ["/data/1", "/data/2", "/data/3", "/data/4"]
        .map(str::to_owned)
        .to_vec();
    pods[1].host_paths = pods[0].host_paths.clone();
    let findings = found(&pods, None, LocalVolumes::NONE);
    let [finding] = findings.as_slice() else {
        panic!("{findings:?}")
    };
    assert_eq!((finding.concern, finding.pods.len()), (Concern::LocalData, 2));
    assert_eq!(
        finding.reason,
        "data in hostPath volumes stays on this node (/data/1, /data/2, /data/3 and 1 more)"
    );
}

#[test]
fn only_pods_that_lose_their_volume_or_may_are_refused_and_only_where_the_settings_say_so() {
    let mut pods = [claiming("db-0", &["data-0"])];
    pods[0].empty_dir = true;
    pods[0].host_paths = vec!["/data".to_owned()];
    let volumes = LocalVolumes {
        unread: Some("forbidden".to_owned()),
        ..local(&[("data-0", "pv-1")])
    };
    let findings = found(&pods, None, &volumes);
    assert_eq!(findings.len(), 4, "{findings:?}");
    let refused = |local_data, refuse_certain| {
        let settings = Settings {
            local_data,
            refuse_certain,
            ..Settings::default()
        };
        let refused = findings.iter().filter(|finding| finding.refuses(&settings));
        refused.map(|finding| finding.concern).collect::<Vec<_>>()
    };
    let both = [Concern::LocalVolume, Concern::UnknownVolume];
    assert_eq!(refused(LocalData::Refuse, false), both);
    assert_eq!(refused(LocalData::Refuse, true), both);
    assert_eq!(refused(LocalData::Warn, true), []);
    assert_eq!(refused(LocalData::Unread, true), []);
}
