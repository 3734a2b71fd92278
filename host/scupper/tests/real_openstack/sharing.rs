//! Several nodes, hosts and marks.

use std::sync::{Arc, Barrier};

use serde_json::json;

use crate::driver::NODE;
use crate::driver_mode::DriverMode;
use crate::proxy::{Fault, Proxy};
use crate::rig;
use crate::testbed::{A, B, Testbed};

/// A third host, gone for good, has the mark of an earlier drain of this node.
pub(crate) async fn leftover(bed: &Testbed) {
    let nova = bed.nova();
    let ids = bed.boot(1, &["--mode", "stuck"]);
    let left = format!("scupper: node={NODE} cluster=testbed drain=earlier");
    bed.ghost("compute-0", &left);
    // A policy that takes the first service with a mark of this node would take this one.
    let listed = nova.get("/os-services?binary=nova-compute");
    assert_eq!(listed["services"][0]["host"], "compute-0", "{listed}");
    let mut node = rig::node(bed, &[("cluster", "testbed")], json!({})).await;
    node.start().await;
    node.begin_drain("drain-1");
    nova.until("it moves", |nova| nova.migrations(&ids[0]) == ["running"])
        .await;
    node.cancel("drain-1").await;
    assert_eq!(nova.migrations(&ids[0]), ["cancelled"], "{}", node.reported());
    assert_eq!(nova.service(A)["status"], "enabled", "{}", node.reported());
    assert_eq!(nova.service("compute-0")["disabled_reason"], left.as_str());

    nova.stop(&ids[0]).await;
    assert_eq!(node.drain("drain-2").await, "Succeeded", "{}", node.reported());
    assert_eq!(
        node.uncordon("uncordon-2").await,
        "Succeeded",
        "{}",
        node.reported()
    );
    assert_eq!(nova.service(A)["status"], "enabled", "{}", node.reported());
    assert_eq!(nova.service("compute-0")["disabled_reason"], left.as_str());
    let events = node.events("ComputeServiceStaysDisabled");
    assert!(
        events.len() == 1
            && events[0].contains("nova-compute on compute-0 stays disabled: a drain of node-1"),
        "{events:?}"
    );
}

/// By mistake another node has the same host, which is under that node's maintenance.
pub(crate) async fn of_another_node(bed: &Testbed) {
    let nova = bed.nova();
    let theirs = "scupper: node=node-2 cluster=testbed drain=d2";
    nova.disable(A, theirs);
    let mut node = rig::node(bed, &[("cluster", "testbed")], json!({})).await;
    node.start().await;
    assert_ne!(node.drain("drain-1").await, "Succeeded", "{}", node.reported());
    let words =
        format!("compute-a is disabled for another Kubernetes node: {theirs}; two nodes cannot share");
    assert!(node.reported().contains(&words), "{}", node.reported());
    assert!(!node.is_cordoned(), "{}", node.reported());
    assert_eq!(
        node.uncordon("uncordon-1").await,
        "Succeeded",
        "{}",
        node.reported()
    );
    assert_eq!(nova.service(A)["disabled_reason"], theirs);
    // A table with one host for two nodes is not even loaded.
    let table = format!("{NODE}={A},node-2={A}");
    node.configure(json!({}), rig::policies(bed, &[("host-table", &table)]));
    let both = format!("{NODE} and node-2 cannot both be {A}");
    node.until("the driver keeps the former one", || {
        node.reported().contains(&both)
    })
    .await;
}

/// The operator drains both hosts at once: one of them gives its own back.
pub(crate) async fn two_drains(bed: &Testbed) {
    let nova = bed.nova();
    bed.boot(1, &["--mode", "stuck"]);
    bed.boot(1, &["--mode", "stuck", "--host", B]);
    let table = format!("{NODE}={A},node-2={B}");
    let mut node = rig::node(bed, &[("host-table", &table)], json!({})).await;
    let second = scupper_simulator::api::objects::node("node-2").build();
    node.api.store().apply(second).unwrap();
    let args = [
        "drain",
        NODE,
        "node-2",
        "--local",
        "--parallel",
        "2",
        "--timeout",
        "30s",
    ];
    let ended = node.types(&args).ended().await;
    assert_ne!(ended.code, Some(0), "{ended:#?}");
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert!(
        said.contains("no other compute host is enabled and up")
            && said.contains("is disabled by scupper: node="),
        "{ended:#?}"
    );
    let disabled = [A, B].map(|host| nova.service(host)["status"] == "disabled");
    assert_ne!(
        disabled,
        [true, true],
        "the whole cloud is out of service: {ended:#?}"
    );
}

/// A drain of one of two hosts by its own driver.
struct HostDrain {
    driver: DriverMode,
    event: &'static str,
    host: &'static str,
    other: &'static str,
}

impl HostDrain {
    fn is_refused(&self) -> bool {
        let Self { host, other, .. } = self;
        let words = format!(
            "no other compute host is enabled and up: 1 server on {host} cannot leave; {other} is disabled by scupper: node="
        );
        self.driver.reported().contains(&words)
    }

    fn is_decided(&self) -> bool {
        self.is_refused() || self.driver.reported().contains("1 moving")
    }
}

/// Two drivers, whose requests to disable meet: neither drain has seen what the other does.
pub(crate) async fn two_drains_in_driver_mode(bed: &Testbed) {
    let nova = bed.nova();
    bed.boot(1, &["--mode", "stuck"]);
    bed.boot(1, &["--mode", "stuck", "--host", B]);
    let both = Arc::new(Barrier::new(2));
    let proxies = [(); 2].map(|()| meeting(bed, &both));
    let table = format!("{NODE}={A},node-2={B}");
    let [first, second] = proxies
        .each_ref()
        .map(|proxy| rig::policies_at(bed, &proxy.url, &[("host-table", &table)]));
    let first = DriverMode::new(NODE, Vec::new(), json!({}), first).await;
    let second = first.beside("node-2", Vec::new(), json!({}), second);
    let mut drains =
        [(first, "drain-1", A, B), (second, "drain-2", B, A)].map(|(driver, event, host, other)| HostDrain {
            driver,
            event,
            host,
            other,
        });
    for drain in &mut drains {
        drain.driver.start().await;
    }
    for drain in &drains {
        drain.driver.begin_drain(drain.event);
    }
    for drain in &drains {
        drain
            .driver
            .until("it is refused, or goes on", || drain.is_decided())
            .await;
    }
    let disabled = [A, B].map(|host| nova.service(host)["status"] == "disabled");
    let mut refused = 0;
    for HostDrain { driver, event, .. } in drains.iter().filter(|drain| drain.is_refused()) {
        assert_eq!(driver.ends(event).await, "Failed", "{}", driver.reported());
        refused += 1;
    }
    for HostDrain { driver, event, .. } in drains.iter().filter(|drain| !drain.is_refused()) {
        driver.cancel(event).await;
    }
    let reported = drains.each_ref().map(|drain| drain.driver.reported()).concat();
    assert!(refused > 0, "{reported}");
    assert_ne!(
        disabled,
        [true, true],
        "the whole cloud is out of service: {reported}"
    );
    for host in [A, B] {
        assert_eq!(nova.service(host)["status"], "enabled", "{reported}");
    }
}

/// Nova, whose first request to disable a host waits until the other proxy has one.
fn meeting(bed: &Testbed, both: &Arc<Barrier>) -> Proxy {
    let both = Arc::clone(both);
    let mut has_met = false;
    Proxy::start(bed.nova_url(), move |seen| {
        if seen.method == "PUT" && !std::mem::replace(&mut has_met, true) {
            both.wait();
        }
        Fault::Pass
    })
}
