//! Nova is looked at again while the pods leave, and before the end.

use scupper_sdk::testing::{Host, pod};
use scupper_sdk::{Outcome, Pending, Phase, Subject};
use serde_json::json;

use super::nova::{Cloud, HOST};
use super::{pending, step, waits};
use crate::OpenStack;

const ENABLED: &str = "Warning ComputeServiceEnabledMeanwhile of node-1: nova-compute on compute-a was enabled, not by Scupper, \
                       while maintenance drains it: it may get servers, so the drain waits; disable it again, or cancel this \
                       drain";

/// A drained host with a server that was shut off and stays, and a nova-compute pod to evict.
fn drained(host: &Host) -> Cloud {
    let cloud = Cloud::new(host);
    let nova = pod("openstack/nova-compute")
        .with_label("application", "nova")
        .with_label("component", "compute");
    host.pods([pod("shop/cart"), nova]);
    host.plan::<OpenStack>().unwrap();
    cloud.server("off", "stopped");
    while step(host, Phase::BeforeDrain) != Outcome::Done {}
    cloud.with(|state| state.asked.clear());
    cloud
}

fn before_wave(host: &Host, wave: &str) -> Outcome {
    host.step::<OpenStack>(Phase::BeforeWave, Subject::Wave(wave.to_owned()))
}

fn waiting(outcome: Outcome) -> Pending {
    match outcome {
        Outcome::Pending(pending) => pending,
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_a_change_a_look_takes_three_requests_and_no_wave_is_held() {
    let host = Host::new();
    let cloud = drained(&host);
    assert_eq!(before_wave(&host, "all"), Outcome::Done);
    assert_eq!(cloud.with(|state| state.asked.len()), 0);
    assert_eq!(before_wave(&host, "nova-compute"), Outcome::Done);
    assert_eq!(step(&host, Phase::AfterDrain), Outcome::Done);
    let asked = [
        "GET /os-services?",
        "GET /os-migrations?host=",
        "GET /servers/detail?",
    ];
    for begins in asked {
        assert_eq!(cloud.count(begins), 2, "{begins}");
    }
    // Each hook also logs in, chooses the version, and logs out.
    assert_eq!(cloud.with(|state| state.asked.len()), 2 * (asked.len() + 3));
}

/// A tenant starts it while the pods leave.
#[test]
fn a_server_that_was_started_meanwhile_is_migrated_before_nova_compute_leaves() {
    let host = Host::new();
    let cloud = drained(&host);
    cloud.set("off", "OS-EXT-STS:vm_state", json!("active"));
    let first = waiting(before_wave(&host, "nova-compute"));
    assert_eq!(waits(&first), ["server vm-off (off): migration requested"]);
    cloud.end_all("completed");
    let second = waiting(before_wave(&host, "nova-compute"));
    assert!(second.progress.contains("checking once more"), "{second:?}");
    assert_eq!(before_wave(&host, "nova-compute"), Outcome::Done);
    assert_eq!(cloud.count("POST /servers/off/action"), 1);
}

/// nova-compute runs outside of the cluster, or in a pod that stays.
#[test]
fn a_server_that_was_started_meanwhile_is_migrated_before_the_end() {
    let host = Host::new();
    let cloud = drained(&host);
    cloud.set("off", "OS-EXT-STS:vm_state", json!("active"));
    waiting(step(&host, Phase::AfterDrain));
    cloud.end_all("completed");
    waiting(step(&host, Phase::AfterDrain));
    assert_eq!(step(&host, Phase::AfterDrain), Outcome::Done);
    assert!(cloud.with(|state| state.servers[0]["host"] == "compute-b"));
}

#[test]
fn a_drain_is_not_done_while_a_server_runs_on_a_host_without_nova_compute() {
    let host = Host::new();
    let cloud = drained(&host);
    cloud.set("off", "OS-EXT-STS:vm_state", json!("active"));
    cloud.server("still-off", "stopped");
    cloud.with(|state| state.services[0]["state"] = json!("down"));
    let message = super::failed(&host, Phase::AfterDrain);
    assert_eq!(
        message,
        "1 server on compute-a cannot leave, because nova-compute is down there: server vm-off (off); start nova-compute and \
         drain the node again, or evacuate the host with your high-availability tool"
    );
    assert_eq!(cloud.count("POST /servers"), 0);
}

#[test]
fn an_operator_who_enables_nova_compute_is_not_overridden_and_one_event_says_so() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    cloud.server("s2", "active");
    host.config("parallel", "1");
    pending(&host);
    let enable = |cloud: &Cloud| cloud.with(|state| state.services[0]["status"] = json!("enabled"));
    enable(&cloud);
    cloud.end_all("completed");
    for _ in 0..3 {
        let waiting = pending(&host);
        assert_eq!(
            waiting.progress,
            "an operator enabled nova-compute on compute-a; disable it again, or cancel this drain"
        );
        assert_eq!(
            waits(&waiting),
            ["nova-compute on compute-a: enabled by an operator: it may get servers"]
        );
    }
    assert_eq!((cloud.count("PUT"), cloud.count("POST /servers")), (1, 1));
    let said = |host: &Host| host.events().iter().filter(|event| *event == ENABLED).count();
    assert_eq!(said(&host), 1, "{:?}", host.events());
    // With whatever reason.
    cloud.with(|state| {
        state.services[0]["status"] = json!("disabled");
        state.services[0]["disabled_reason"] = json!("as it was");
    });
    pending(&host);
    assert_eq!((cloud.count("PUT"), cloud.count("POST /servers")), (1, 2));
    enable(&cloud);
    pending(&host);
    assert_eq!(said(&host), 2, "it was enabled twice: {:?}", host.events());
}

#[test]
fn nova_compute_that_was_enabled_while_pods_left_holds_the_drain_in_every_later_phase() {
    let host = Host::new();
    let cloud = drained(&host);
    cloud.with(|state| state.services[0]["status"] = json!("enabled"));
    cloud.server("new", "active");
    for outcome in [before_wave(&host, "nova-compute"), step(&host, Phase::AfterDrain)] {
        let waiting = waiting(outcome);
        assert!(
            waiting.progress.starts_with("an operator enabled nova-compute"),
            "{waiting:?}"
        );
    }
    assert_eq!(cloud.count("PUT"), 0);
    cloud.with(|state| state.services[0]["status"] = json!("disabled"));
    waiting(step(&host, Phase::AfterDrain));
    assert_eq!(cloud.count("POST /servers/new/action"), 1);
    cloud.end_all("completed");
    while step(&host, Phase::AfterDrain) != Outcome::Done {}
    assert_eq!(cloud.service(HOST)["status"], "disabled");
}

/// The hypervisor driver enables what it had disabled itself.
#[test]
fn nova_itself_is_not_taken_for_an_operator() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    cloud.server("s1", "active");
    cloud.with(|state| {
        state.services[0]["status"] = json!("disabled");
        state.services[0]["disabled_reason"] = json!("AUTO: Connection to libvirt lost: 1");
    });
    pending(&host);
    cloud.with(|state| {
        state.services[0]["status"] = json!("enabled");
        state.services[0]["disabled_reason"] = json!(null);
    });
    pending(&host);
    let reason = cloud.service(HOST)["disabled_reason"].clone();
    assert_eq!(
        reason,
        json!("scupper: node=node-1 cluster=uid-of-cluster drain=uid-of-maintenance")
    );
    let reasons = host.events();
    let reasons: Vec<_> = reasons
        .iter()
        .filter_map(|event| event.split(' ').nth(1))
        .collect();
    assert_eq!(reasons, ["ComputeServiceFoundDisabled", "ComputeServiceDisabled"]);
}
