//! The plan: nova-compute leaves last, the rest is unchanged.

use scupper_sdk::testing::{Host, pod};

use super::nova::Cloud;
use crate::OpenStack;

fn nova_compute() -> scupper_sdk::Pod {
    pod("openstack/nova-compute-x")
        .with_label("application", "nova")
        .with_label("component", "compute")
}

#[test]
fn the_nova_compute_pod_is_evicted_last_and_the_rest_of_the_plan_is_unchanged() {
    let host = Host::new();
    Cloud::new(&host);
    host.pods([
        nova_compute(),
        pod("shop/cart"),
        pod("openstack/nova-api").with_label("application", "nova"),
    ]);
    let plan = host.plan::<OpenStack>().unwrap();
    assert_eq!(
        plan.waves(),
        [
            "all: shop/cart openstack/nova-api",
            "nova-compute: openstack/nova-compute-x"
        ]
    );
    assert_eq!(plan.plan().decisions, host.draft().plan().decisions);
}

#[test]
fn a_nova_compute_pod_of_a_daemon_set_is_kept() {
    let host = Host::new();
    Cloud::new(&host);
    host.pods([nova_compute().of_daemon_set(), pod("shop/cart")]);
    assert_eq!(host.plan::<OpenStack>().unwrap().waves(), ["all: shop/cart"]);
}

#[test]
fn the_label_of_nova_compute_pods_is_configurable() {
    let host = Host::new();
    Cloud::new(&host);
    host.config("nova-compute-label", "app=hypervisor");
    host.pods([
        pod("x/agent").with_label("app", "hypervisor"),
        nova_compute(),
        pod("shop/cart"),
    ]);
    let plan = host.plan::<OpenStack>().unwrap();
    assert_eq!(plan.waves()[1], "nova-compute: x/agent");
}
