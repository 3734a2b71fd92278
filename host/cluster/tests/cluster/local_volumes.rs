//! Which claims only one node can use.

use std::collections::{BTreeMap, BTreeSet};

use scupper_engine::VolumeClaim;
use serde_json::{Value, json};

use crate::script::{cluster, not_found};

const CLAIMS: &str = "/api/v1/namespaces/shop/persistentvolumeclaims";
const VOLUMES: &str = "/api/v1/persistentvolumes";

fn name(claim: &str) -> VolumeClaim {
    VolumeClaim {
        namespace: "shop".to_owned(),
        name: claim.to_owned(),
    }
}

fn claim(name: &str, volume: &str) -> Value {
    json!({"metadata": {"namespace": "shop", "name": name}, "spec": {"volumeName": volume}})
}

/// Of `host`, or of any node.
fn volume(name: &str, host: Option<&str>) -> Value {
    let mut spec = json!({"csi": {"driver": "topolvm.io"}});
    if let Some(host) = host {
        let term = json!({"key": "topology.topolvm.io/node", "operator": "In", "values": [host]});
        spec["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}});
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

#[tokio::test(start_paused = true)]
async fn a_few_claims_and_volumes_are_read_one_by_one() {
    let (cluster, mut server) = cluster();
    let claims = ["gone", "here", "pending"].map(name).into();
    let (local, ()) = tokio::join!(cluster.local_claims("n1", &claims), async {
        let call = server.expect("GET", &format!("{CLAIMS}/gone")).await;
        call.answer(404, not_found("persistentvolumeclaims", "gone"));
        let call = server.expect("GET", &format!("{CLAIMS}/here")).await;
        call.answer(200, claim("here", "pv-1"));
        let call = server.expect("GET", &format!("{CLAIMS}/pending")).await;
        call.answer(200, claim("pending", ""));
        let call = server.expect("GET", &format!("{VOLUMES}/pv-1")).await;
        call.answer(200, volume("pv-1", Some("n1")));
    });
    assert_eq!(
        local.unwrap(),
        BTreeMap::from([(name("here"), "pv-1".to_owned())])
    );
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn many_come_in_two_lists() {
    let (cluster, mut server) = cluster();
    let claims: BTreeSet<_> = (0..5).map(|number| name(&format!("data-{number}"))).collect();
    let (local, ()) = tokio::join!(cluster.local_claims("n1", &claims), async {
        let all = (0..9).map(|number| claim(&format!("data-{number}"), &format!("pv-{number}")));
        let call = server.expect("GET", CLAIMS).await;
        call.answer(200, json!({"metadata": {}, "items": all.collect::<Vec<_>>()}));
        let all = (0..9).map(|number| volume(&format!("pv-{number}"), [None, Some("n1")][number % 2]));
        let call = server.expect("GET", VOLUMES).await;
        call.answer(200, json!({"metadata": {}, "items": all.collect::<Vec<_>>()}));
    });
    let expected = [1, 3].map(|number| (name(&format!("data-{number}")), format!("pv-{number}")));
    assert_eq!(
        local.unwrap(),
        BTreeMap::from(expected),
        "data-5 is not asked for"
    );
    server.finish(cluster).await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_read_is_an_error() {
    let (cluster, mut server) = cluster();
    let claims = [name("here")].into();
    let (local, ()) = tokio::join!(cluster.local_claims("n1", &claims), async {
        let call = server.expect("GET", &format!("{CLAIMS}/here")).await;
        call.fail(403, "Forbidden", "persistentvolumeclaims is forbidden");
    });
    let problem = local.unwrap_err().to_string();
    assert!(
        problem.contains("persistentvolumeclaims is forbidden"),
        "{problem}"
    );
    server.finish(cluster).await;
}
