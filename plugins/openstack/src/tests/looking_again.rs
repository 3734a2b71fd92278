//! Nova is looked at again while the pods leave, before the end, and in a cancel.

use scupper_sdk::http::{Error, Method, Response};
use scupper_sdk::testing::{Host, pod};
use scupper_sdk::{Outcome, Pending, Phase, Subject};
use serde_json::json;

use super::emptying::MARK;
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
    assert_eq!(reason, json!(MARK));
    let reasons = host.events();
    let reasons: Vec<_> = reasons
        .iter()
        .filter_map(|event| event.split(' ').nth(1))
        .collect();
    assert_eq!(reasons, ["ComputeServiceFoundDisabled", "ComputeServiceDisabled"]);
}

/// The node was cordoned by someone else, and each hook begins with an empty state.
#[test]
fn under_a_foreign_cordon_an_outage_or_a_rejected_credential_does_not_end_the_drain_in_a_later_phase() {
    for status in [503, 401, 403] {
        let host = Host::new();
        let cloud = drained(&host);
        host.cordon(false);
        cloud.with(|state| state.instead = Box::new(move |_| Some(Ok(Response::new(status, "no")))));
        waiting(before_wave(&host, "nova-compute"));
        waiting(step(&host, Phase::AfterDrain));
        cloud.with(|state| state.instead = Box::new(|_| None));
        assert_eq!(before_wave(&host, "nova-compute"), Outcome::Done, "{status}");
        assert_eq!(step(&host, Phase::AfterDrain), Outcome::Done, "{status}");
    }
}

#[test]
fn nova_itself_is_not_taken_for_an_operator_in_a_later_phase_either() {
    let host = Host::new();
    let cloud = drained(&host);
    cloud.server("new", "active");
    cloud.with(|state| state.services[0]["disabled_reason"] = json!("AUTO: Connection to libvirt lost: 1"));
    waiting(step(&host, Phase::AfterDrain));
    cloud.with(|state| {
        state.services[0]["status"] = json!("enabled");
        state.services[0]["disabled_reason"] = json!(null);
        state.instead = Box::new(|request| {
            let is_put = request.method == Method::Put;
            is_put.then(|| Ok(Response::new(503, "busy")))
        });
    });
    let refused = waiting(step(&host, Phase::AfterDrain));
    assert!(refused.progress.contains("disabling nova-compute"), "{refused:?}");
    cloud.with(|state| state.instead = Box::new(|_| None));
    waiting(step(&host, Phase::AfterDrain));
    assert_eq!(cloud.service(HOST)["status"], "disabled");
    cloud.end_all("completed");
    while step(&host, Phase::AfterDrain) != Outcome::Done {}
    assert_eq!(cloud.count("POST /servers/new/action"), 1);
}

/// It has 15 s in all.
#[test]
fn a_cancel_looks_again_at_once_whatever_the_poll_interval() {
    let host = Host::new();
    let cloud = Cloud::new(&host);
    host.config("poll-seconds", "60");
    pending(&host);
    let looks_again = |what: &str| match step(&host, Phase::OnCancel) {
        Outcome::Pending(pending) => assert_eq!(pending.again_after, 1_000, "{what}: {pending:?}"),
        other => panic!("{other:?}"),
    };
    cloud.with(|state| {
        state.instead = Box::new(|_| Some(Err(Error::Timeout("no response".to_owned()))));
    });
    looks_again("no response");
    cloud.with(|state| {
        state.instead = Box::new(|_| Some(Ok(Response::new(503, "busy").with_header("Retry-After", "30"))));
    });
    looks_again("busy");
    cloud.with(|state| {
        state.instead = Box::new(|_| None);
        state.page = 1;
    });
    for number in 0..80 {
        cloud.server(&format!("s{number:02}"), "active");
    }
    looks_again("long list");
    cloud.with(|state| state.servers.clear());
    assert_eq!(step(&host, Phase::OnCancel), Outcome::Done);
    assert_eq!(cloud.service(HOST)["status"], "enabled");
}
