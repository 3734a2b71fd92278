//! No output contains a credential: not after a whole drain, and not after one that fails, with servers in between that
//! repeat the requests they received.

use scupper_simulator::api::objects;

use crate::driver::{NODE, secret};
use crate::leaks::{Captured, Node, Secrets, Setup, traitor};
use crate::rig::policy;
use crate::testbed::{B, Testbed};

const WHO: &str = "drain-limited";

pub(crate) async fn whole_drains(bed: &Testbed) {
    let nova = bed.nova();
    let captured = Captured::default();
    let keystone = traitor(bed.keystone_url(), &captured, &[1]);
    let compute = traitor(bed.nova_url(), &captured, &[2, 7, 15]);
    let known = secret(bed, WHO);
    let file = bed.file("searched-secret", &known);
    let pod = |name: &str| objects::pod("shop", name, NODE).owner_replicaset("cart").build();
    let setup = Setup {
        node: NODE,
        policy: policy(
            bed,
            &keystone.url,
            &compute.url,
            &file,
            &[("attempts", "1"), ("on-failure", "undo"), ("token-timeout", "5s")],
        ),
        objects: vec![pod("cart-1")],
    };
    let node = Node::start(setup, captured).await;

    let ids = bed.boot(2, &["--seconds", "1"]);
    assert_eq!(node.drain("drain-1").await, "Succeeded", "{}", node.reported());
    assert_eq!(
        node.give_back("uncordon-1").await,
        "Succeeded",
        "{}",
        node.reported()
    );
    for id in &ids {
        assert_eq!(nova.host_of(id), B);
    }
    // A drain that fails, and reverts its changes.
    node.apply(pod("cart-2"));
    bed.boot(1, &["--mode", "refuse-dest"]);
    assert_ne!(node.drain("drain-2").await, "Succeeded", "{}", node.reported());
    reported_on_the_node(&node);
    // One with a secret that Keystone rejects.
    let wrong: String = known.chars().rev().collect();
    std::fs::write(&file, &wrong).unwrap();
    assert_ne!(node.drain("drain-3").await, "Succeeded", "{}", node.reported());
    assert!(
        node.reported().contains("Keystone rejects the credential"),
        "{}",
        node.reported()
    );

    let mut secrets = Secrets::default();
    secrets.add("the secret", &known);
    secrets.add("the wrong secret", &wrong);
    let tokens = compute.tokens();
    assert!(tokens.len() >= 3, "{} tokens", tokens.len());
    for token in &tokens {
        secrets.add("a token", token);
    }
    let all = node.everything([
        "/v2.1/os-services",
        "scupper.dev/drain",
        "scupper_policy_calls_total",
        "RegionTwo",
    ]);
    secrets.search(&all);
    // The servers' own messages arrived, without the repeated requests.
    assert!(node.reported().contains("[secret "), "{}", node.reported());
}

/// Each change once, after any number of polls.
fn reported_on_the_node(node: &Node) {
    node.reported_so_often(&[
        (
            "Normal ComputeServiceDisabled: policy openstack: nova-compute on compute-a is disabled for drain-",
            2,
        ),
        (
            "Normal ComputeServiceEnabled: policy openstack: nova-compute on compute-a is enabled again: ",
            2,
        ),
        (
            "Warning ServerMigrationFailed: policy openstack: server vm-0 (",
            1,
        ),
        (
            "Warning ServersLeftBehind: policy openstack: 1 of 1 server stays on compute-a: server vm-0 (",
            1,
        ),
        ("Warning ServerMigrationAborted: policy openstack: ", 0),
    ]);
    let events = node.events();
    let failed = events
        .iter()
        .find(|reported| reported.contains("ServerMigrationFailed"));
    assert!(failed.unwrap().contains("refuses this server"), "{events:#?}");
}
