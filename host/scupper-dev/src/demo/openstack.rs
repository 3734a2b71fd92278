//! The demo on a real OpenStack: real servers on a host of a real Nova, represented by a simulated Kubernetes node.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use scupper_simulator::api::{Store, StoreError, objects};

use super::DemoOutput;
use super::demo_cluster::{
    AbortOnDrop, DRIVER, DemoCluster, DemoError, EVENTS, UNCORDON, interrupts, worker,
};
use super::openstack_testbed::{Cloud, HOST};
use scupper_driver::PoliciesOptions;
use scupper_policy_spec::{HttpGrant, Networks, PolicySpec, SecretGrant, SecretSource};

/// The node's name in Kubernetes.
const NODE: &str = "node-1";
/// The number of servers, and the seconds of each one's migration.
const SERVERS: &str = "5";
const SECONDS: &str = "2";
const POLL: Duration = Duration::from_millis(700);

/// The paths that the demo needs.
#[derive(Clone, Copy)]
pub(super) struct Places<'a> {
    pub(super) policy: &'a Path,
    /// The program that starts the testbed, and its folder.
    pub(super) testbed: &'a Path,
    pub(super) state: &'a Path,
}

/// Runs it, and ends OpenStack in any case, Ctrl-C included.
pub(super) async fn run(places: Places<'_>, output: &DemoOutput) -> Result<(), DemoError> {
    let interrupted = interrupts().map_err(DemoError::Signals)?;
    output.speaker()(
        "A real OpenStack starts: Keystone, Placement, Glance and Nova with two compute hosts (half a minute, the first time two).",
    );
    // A testbed that is starting is ended once it has started.
    let cloud = Cloud::start(places.testbed, places.state).await?;
    tokio::select! {
        played = scenes(places, &cloud, output) => played,
        () = interrupted => Err(DemoError::Stopped),
    }
}

async fn scenes(places: Places<'_>, cloud: &Cloud, output: &DemoOutput) -> Result<(), DemoError> {
    let say = output.speaker();
    let cluster = super::cluster_objects::cluster().await?;
    build(&cluster.store()).map_err(DemoError::Scene)?;
    say(&format!(
        "The node {NODE} of Kubernetes is simulated, its host in Nova is {HOST}; the driver and openstack.wasm are the real ones.\n"
    ));
    say(&format!(
        "$ openstack server create --min {SERVERS} --max {SERVERS} …    # by another tenant, on {HOST}"
    ));
    cloud
        .ask("boot", &[SERVERS, "--host", HOST, "--seconds", SECONDS])
        .await?;
    show(cloud, &say).await?;
    let policies = PoliciesOptions {
        policies: vec![policy(places.policy, cloud)],
        ..PoliciesOptions::default()
    };
    let demo_cluster = DemoCluster::set(cluster, NODE, policies, output).await?;
    let _watch = AbortOnDrop(tokio::spawn(watch(cloud.clone(), say.clone())));
    say(&format!(
        "\n$ kubectl create -f drain.yaml    # a LifecycleEvent: transition {DRIVER}, node {NODE}"
    ));
    demo_cluster.transition("drain-node-1", DRIVER).await?;
    show(cloud, &say).await?;
    say(&format!(
        "\n$ kubectl create -f maintenance-complete.yaml    # transition {UNCORDON}"
    ));
    demo_cluster
        .transition("maintenance-complete-node-1", UNCORDON)
        .await?;
    show(cloud, &say).await?;
    demo_cluster.clear().await
}

/// Nova's report about its hosts and the servers on them.
async fn show(cloud: &Cloud, say: &impl Fn(&str)) -> Result<(), DemoError> {
    let mut text =
        "\n$ openstack compute service list; openstack server list --all-projects --long".to_owned();
    for line in cloud.services().await? {
        text.push_str(&format!("\n            {line}"));
    }
    for (name, host) in cloud.servers().await? {
        text.push_str(&format!("\n            {name} on {host}"));
    }
    say(&text);
    Ok(())
}

/// Prints servers that Nova reports on another host.
async fn watch(cloud: Cloud, say: impl Fn(&str)) {
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    loop {
        let now = cloud.servers().await.unwrap_or_default();
        for (name, host) in &now {
            let before = known.get(name);
            if before.is_some_and(|before| before != host) {
                say(&format!("            (Nova: {name} is on {host} now)"));
            }
        }
        known = now;
        tokio::time::sleep(POLL).await;
    }
}

/// A compute node's pods: nova-compute is evicted after all others, the exporter is kept.
fn build(store: &Store) -> Result<(), StoreError> {
    let compute = objects::pod("openstack", "nova-compute", NODE)
        .label("application", "nova")
        .label("component", "compute")
        .owner_statefulset("nova-compute")
        .takes(0.7);
    worker(store, NODE, compute)
}

/// The operator's settings in scupper.yaml.
fn policy(file: &Path, cloud: &Cloud) -> PolicySpec {
    let (keystone, nova) = (cloud.keystone(), cloud.nova());
    let keys = [
        ("auth-url", keystone.clone()),
        ("application-credential-id", cloud.credential_id()),
        ("region-name", "RegionOne".to_owned()),
        ("compute-url", nova.clone()),
        ("host-table", format!("{NODE}={HOST}")),
        ("poll-seconds", "1".to_owned()),
    ];
    let grant = |origin: &str, methods: &[&str]| HttpGrant {
        origin: origin.to_owned(),
        methods: methods.iter().map(ToString::to_string).collect(),
        networks: Networks {
            loopback: true,
            private: false,
        },
        ..HttpGrant::default()
    };
    let secret = |name: &str, source, origins| SecretGrant {
        name: name.to_owned(),
        source,
        origins,
    };
    let captured = SecretSource::Captured {
        origin: keystone.clone(),
        header: "X-Subject-Token".to_owned(),
    };
    let stored = SecretSource::File(PathBuf::from(cloud.secret_file()));
    PolicySpec {
        name: "openstack".to_owned(),
        file: file.to_owned(),
        config: keys.map(|(key, value)| (key.to_owned(), value)).into(),
        grants: EVENTS.parse().into_iter().collect(),
        http: vec![
            grant(&keystone, &["POST", "DELETE"]),
            grant(&nova, &["GET", "POST", "PUT", "DELETE"]),
        ],
        secrets: vec![
            secret("application-credential-secret", stored, vec![keystone.clone()]),
            secret("token", captured, vec![keystone, nova]),
        ],
        ..PolicySpec::default()
    }
}
