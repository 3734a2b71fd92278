//! The program in `kubelet-plugin` mode beside a simulated API server and kubelet, the real Nova behind the node.

use std::path::{Path, PathBuf};

use scupper_simulator::api::objects::{self, Object};
use serde_json::{Value, json};

use crate::driver::{NODE, component, secret};
use crate::driver_mode::DriverMode;
use crate::testbed::{A, Testbed};

/// The credential with the minimal permissions for a drain.
const WHO: &str = "drain-limited";

/// `node-1`, a nova-compute pod and another pod on it. No driver runs there yet.
pub(crate) async fn node(bed: &Testbed, config: &[(&str, &str)], drain: Value) -> DriverMode {
    let pods = vec![compute_pod().build(), pod("cart").build()];
    DriverMode::new(NODE, pods, drain, policies(bed, config)).await
}

/// The same with these pods instead.
pub(crate) async fn node_with(bed: &Testbed, config: &[(&str, &str)], pods: Vec<Object>) -> DriverMode {
    let pods = pods.into_iter().map(Object::build).collect();
    DriverMode::new(NODE, pods, json!({}), policies(bed, config)).await
}

pub(crate) fn compute_pod() -> Object {
    objects::pod("openstack", "nova-compute", NODE)
        .owner_replicaset("nova-compute")
        .label("application", "nova")
        .label("component", "compute")
}

pub(crate) fn pod(name: &str) -> Object {
    objects::pod("shop", name, NODE).owner_replicaset(name)
}

/// `policies` of `scupper.yaml`, with additional configuration.
pub(crate) fn policies(bed: &Testbed, config: &[(&str, &str)]) -> Value {
    policies_at(bed, bed.nova_url(), config)
}

/// The same, with Nova at this address.
pub(crate) fn policies_at(bed: &Testbed, nova: &str, config: &[(&str, &str)]) -> Value {
    let file = secret_file(bed);
    json!([policy(bed, bed.keystone_url(), nova, &file, config)])
}

fn secret_file(bed: &Testbed) -> PathBuf {
    bed.file("secret-of-the-rig", &secret(bed, WHO))
}

/// The operator's configuration for this Keystone and this Nova.
pub(crate) fn policy(
    bed: &Testbed,
    keystone: &str,
    nova: &str,
    secret: &Path,
    more: &[(&str, &str)],
) -> Value {
    let (keystone, nova) = (keystone.trim_end_matches("/v3"), nova.trim_end_matches("/v2.1"));
    let grant = |origin: &str, methods: &[&str]| json!({"origin": origin, "methods": methods, "networks": ["loopback"]});
    let mut config = json!({
        "auth-url": keystone,
        "application-credential-id": bed.auth(WHO)["application_credential_id"],
        "region-name": "RegionOne",
        "compute-endpoint-override": format!("{nova}/v2.1"),
        "host-table": format!("{NODE}={A}"),
        "poll-seconds": "1",
    });
    for (key, value) in more {
        config[*key] = json!(value);
    }
    json!({
        "name": "openstack",
        "module": component(),
        "config": config,
        "grants": {
            "events": ["node"],
            "http": [grant(keystone, &["POST", "DELETE"]), grant(nova, &["GET", "POST", "PUT", "DELETE"])],
            "secrets": [
                {"name": "application-credential-secret", "file": secret, "origins": [keystone]},
                {
                    "name": "token",
                    "captured-from": {"origin": keystone, "header": "X-Subject-Token"},
                    "origins": [keystone, nova],
                },
            ],
        },
    })
}
