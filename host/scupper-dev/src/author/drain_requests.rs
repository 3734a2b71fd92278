//! The DrainRequests of scenarios and snapshots, for policies that ask for them.

use std::sync::Arc;

use scupper_api::DrainRequestFields;
use scupper_cluster::{DrainRequestObject, Object, decode};
use serde_json::{Map, Value, json};

/// `spec.*` as in the API, so that a scenario may copy it from there.
const FIELDS: [&str; 9] = [
    "checkName",
    "entitiesImpacted",
    "errorCode",
    "healthEventID",
    "metadata",
    "nodeName",
    "podsToDrain",
    "reason",
    "recommendedAction",
];

/// The conditions of a complete and of a failed request, as NVSentinel is configured for Scupper.
const ENDS: [&str; 2] = ["DrainComplete", "DrainFailed"];

/// Requests as a scenario has them: each is its `spec`.
pub(super) fn of_specs(specs: &[Map<String, Value>]) -> Result<Vec<Arc<DrainRequestFields>>, String> {
    (1..)
        .zip(specs)
        .map(|(number, spec)| of_spec(number, spec))
        .collect()
}

fn of_spec(number: usize, spec: &Map<String, Value>) -> Result<Arc<DrainRequestFields>, String> {
    if let Some(unknown) = spec.keys().find(|key| !FIELDS.contains(&key.as_str())) {
        let known = FIELDS.join(", ");
        return Err(format!("a DrainRequest has no field `{unknown}`; it has {known}"));
    }
    let name = format!("request-{number}");
    let uid = format!("uid-of-{name}");
    let object = json!({
        "kind": "DrainRequest",
        "metadata": {"namespace": "nvsentinel", "name": name, "uid": uid},
        "spec": spec,
    });
    match decode(object).as_deref() {
        Ok([Object::DrainRequest(request)]) => Ok(Arc::clone(&request.fields)),
        Ok(_) => Err("not a DrainRequest".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// The requests for the node that have no answer yet.
pub(super) fn open_of(node: &str, all: Vec<DrainRequestObject>) -> Vec<Arc<DrainRequestFields>> {
    let is_over = |request: &DrainRequestObject| {
        let mut conditions = request.conditions.iter();
        conditions.any(|it| ENDS.contains(&it.kind.as_str()) && it.status.eq_ignore_ascii_case("true"))
    };
    let open = all
        .into_iter()
        .filter(|request| request.node == node && !request.deleting && !is_over(request));
    let mut open: Vec<_> = open.map(|request| request.fields).collect();
    open.sort_by_key(|request| request.created);
    open
}
