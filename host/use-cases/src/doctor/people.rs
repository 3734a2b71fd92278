//! The roles of `deploy/people.yaml`, beside the rights that commands need.

use std::path::Path;

use scupper_cluster::{
    DrainRequestResource, Right, needed_for_certainty, needed_for_drain_requests, needed_for_fact,
    needed_for_local_data, needed_for_volumes,
};
use scupper_config::DrainRequestsFile;
use scupper_driver::drain_request_kind;
use scupper_policy_spec::FACTS;
use serde_json::Value;

fn role(name: &str) -> Vec<Value> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/people.yaml");
    let text = std::fs::read_to_string(file).unwrap();
    let roles: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let role = roles.into_iter().find(|role| role["metadata"]["name"] == name);
    role.unwrap()["rules"].as_array().unwrap().clone()
}

fn grants(rules: &[Value], right: &Right) -> bool {
    let has = |rule: &Value, key: &str, value: &str| {
        let mut values = rule[key].as_array().unwrap().iter();
        values.any(|it| it == value)
    };
    let grants = |rule: &&Value| {
        has(rule, "apiGroups", &right.group)
            && has(rule, "resources", &right.resource)
            && has(rule, "verbs", right.verb)
    };
    rules.iter().any(|rule| grants(&rule))
}

/// A plan by policies may ask for all that, and `plan --drain-request` for the request.
#[test]
fn who_may_view_may_plan_with_every_configuration() {
    let kind: DrainRequestResource = drain_request_kind(&DrainRequestsFile::default());
    let requests = needed_for_drain_requests(&kind, "").into_iter();
    let facts = FACTS
        .iter()
        .flat_map(|fact| needed_for_fact(fact, "lifecycle.k8s.io"));
    let settings = [
        needed_for_certainty(),
        needed_for_local_data(),
        needed_for_volumes(),
    ];
    let read = requests.filter(|right| matches!(right.verb, "get" | "list"));
    let all: Vec<Right> = facts.chain(read).chain(settings.concat()).collect();
    let view = role("scupper-view");
    let missing: Vec<_> = all.iter().filter(|right| !grants(&view, right)).collect();
    let missing: Vec<_> = missing.into_iter().map(Right::name).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}
