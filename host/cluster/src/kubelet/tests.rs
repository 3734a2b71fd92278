//! Which of the signs counts, and its text.

use serde_json::{Value, json};

use super::*;

const NOW: Time = Time::from_millis(1_000_000_000);

fn ago(seconds: u64) -> Time {
    NOW - Duration::from_secs(seconds)
}

fn stamp(time: Time) -> Value {
    json!(super::super::wire::micros(time))
}

fn ready(status: &str, heartbeat: Option<Time>) -> Vec<Condition> {
    let ready = json!({"type": "Ready", "status": status, "reason": "Reason", "message": "a message",
        "lastHeartbeatTime": heartbeat.map(stamp), "lastTransitionTime": stamp(ago(60))});
    vec![serde_json::from_value(ready).unwrap()]
}

fn lease(version: &str, renewed: Option<Time>) -> Lease {
    serde_json::from_value::<super::super::leases::WireLease>(json!({
        "metadata": {"name": "n1", "namespace": KUBELET_LEASE_NAMESPACE, "uid": "l-1", "resourceVersion": version},
        "spec": {"holderIdentity": "n1", "leaseDurationSeconds": 40, "renewTime": renewed.map(stamp)},
    }))
    .unwrap()
    .into_lease()
}

fn told(conditions: &[Condition], lease: Option<&Lease>, before: Option<&KubeletSilence>) -> String {
    match judge(conditions, lease, before, NOW) {
        KubeletState::Silent(_) => "silent".to_owned(),
        KubeletState::Alive(sign) => sign.to_string(),
    }
}

#[test]
fn only_a_kubelet_that_is_unknown_with_an_old_heartbeat_and_an_expired_lease_is_silent() {
    let old = || Some(lease("5", Some(ago(41))));
    let unknown = |heartbeat| ready("Unknown", heartbeat);
    for (conditions, lease, expected) in [
        (unknown(Some(ago(300))), old(), "silent"),
        (unknown(None), None, "silent"),
        (unknown(Some(ago(41))), Some(lease("5", None)), "silent"),
        (Vec::new(), old(), "has no condition Ready"),
        (
            ready("True", Some(ago(4))),
            old(),
            "reported Ready=True (Reason: a message) 4s ago",
        ),
        (
            ready("False", Some(ago(4))),
            old(),
            "reported Ready=False (Reason: a message) 4s ago",
        ),
        (
            ready("False", None),
            None,
            "reported Ready=False (Reason: a message) 1m00s ago",
        ),
        (
            unknown(Some(ago(300))),
            Some(lease("5", Some(ago(39)))),
            "renewed its Lease in kube-node-lease 39s ago",
        ),
        (
            unknown(Some(ago(39))),
            old(),
            "posted the status of its node 39s ago",
        ),
        (
            unknown(Some(ago(39))),
            None,
            "posted the status of its node 39s ago",
        ),
        (
            unknown(None),
            Some(lease("5", Some(NOW + Duration::from_secs(90)))),
            "renewed its Lease in kube-node-lease at a time that is 1m30s ahead of this machine's clock",
        ),
    ] {
        assert_eq!(told(&conditions, lease.as_ref(), None), expected);
    }
}

/// The kubelet's clock may be behind.
#[test]
fn a_lease_that_changes_between_two_reads_is_a_sign_of_life_whatever_its_time_is() {
    let unknown = ready("Unknown", None);
    let judged = judge(&unknown, Some(&lease("5", Some(ago(600)))), None, NOW);
    let KubeletState::Silent(before) = judged else {
        panic!("{judged:?}")
    };
    let again = |version| told(&unknown, Some(&lease(version, Some(ago(590)))), Some(&before));
    assert_eq!(again("5"), "silent");
    assert_eq!(again("6"), "renewed its Lease in kube-node-lease 9m50s ago");
    assert_eq!(told(&unknown, None, Some(&before)), "silent", "its owner is gone");
    let none = KubeletSilence::default();
    let made = told(&unknown, Some(&lease("1", Some(ago(590)))), Some(&none));
    assert_eq!(made, "renewed its Lease in kube-node-lease 9m50s ago");
}
