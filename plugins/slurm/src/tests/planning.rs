//! The plan: Slurm pods last, all else as it was.

use scupper_sdk::testing::{Host, pod};

use super::slurmd;
use crate::Slurm;

#[test]
fn slurm_pods_leave_last_and_all_else_is_as_it_was() {
    let host = Host::new();
    host.pods([
        slurmd("worker-0", &[]),
        pod("shop/cart"),
        slurmd("worker-1", &["Idle"]),
        pod("kube-system/proxy").of_daemon_set(),
    ]);
    let plan = host.plan::<Slurm>().unwrap();
    assert_eq!(
        plan.waves(),
        ["all: shop/cart", "slurm: slurm/worker-0 slurm/worker-1"]
    );
    assert_eq!(plan.plan().decisions, host.draft().plan().decisions);
}

#[test]
fn the_driver_goes_after_them() {
    let host = Host::new();
    let mut driver = pod("scupper/driver");
    driver.driver = true;
    host.pods([driver, slurmd("worker-0", &[]), pod("shop/cart")]);
    let waves = host.plan::<Slurm>().unwrap().waves();
    assert_eq!(
        waves,
        [
            "all: shop/cart",
            "slurm: slurm/worker-0",
            "driver: scupper/driver"
        ]
    );
}

#[test]
fn a_slurm_pod_that_stays_is_left_alone() {
    let host = Host::new();
    host.pods([slurmd("worker-0", &[]).of_daemon_set(), pod("shop/cart")]);
    assert_eq!(host.plan::<Slurm>().unwrap().waves(), ["all: shop/cart"]);
}

#[test]
fn without_slurm_pods_the_draft_is_the_plan() {
    let host = Host::new();
    host.pods([pod("shop/cart"), pod("shop/db")]);
    assert_eq!(host.plan::<Slurm>().unwrap().plan(), host.draft().plan());
}
