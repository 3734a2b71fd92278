//! The stand-in for NVSentinel: fault-quarantine cordons the node, and node-drainer hands its drain over. That creates
//! a DrainRequest from its template, polls one condition, and deletes the request once this is True.

use std::time::Duration;

use scupper_simulator::api::{Kind, Store};
use serde_json::{Value, json};

use super::cluster_objects::NODE;
use super::demo_cluster::{DemoError, LIMIT};

const GROUP: &str = "nvsentinel.nvidia.com";
const REQUESTS: &str = "drainrequests.nvsentinel.nvidia.com";
const NAMESPACE: &str = "nvsentinel";
/// `customDrain.statusConditionType`
const COMPLETE: &str = "DrainComplete";
/// The demo ends at this one; node-drainer does not read it.
const FAILED: &str = "DrainFailed";
const POLL: Duration = Duration::from_millis(20);

/// A health event, as node-drainer gets it.
pub(super) struct HealthEvent {
    pub(super) id: &'static str,
    pub(super) check: &'static str,
    pub(super) code: &'static str,
    pub(super) action: &'static str,
    pub(super) reason: &'static str,
    /// Type and value of each affected part.
    pub(super) entities: &'static [(&'static str, &'static str)],
}

/// node-drainer.
pub(super) struct NodeDrainer<S> {
    pub(super) store: Store,
    pub(super) say: S,
}

/// A condition of a request.
#[derive(PartialEq)]
struct Condition {
    kind: String,
    status: String,
    reason: String,
    message: String,
}

/// The kind of its requests.
pub(super) fn kind() -> Kind {
    Kind::custom(GROUP, "v1alpha1", "drainrequests", "DrainRequest").namespaced()
}

/// The cordon and the label of fault-quarantine.
pub(super) fn quarantine(store: &Store) -> Result<(), DemoError> {
    let cordon = |node: &mut Value| {
        if let Some(spec) = node.pointer_mut("/spec").and_then(Value::as_object_mut) {
            spec.insert("unschedulable".to_owned(), true.into());
        }
        if let Some(labels) = node
            .pointer_mut("/metadata/labels")
            .and_then(Value::as_object_mut)
        {
            labels.insert(
                "dgxc.nvidia.com/nvsentinel-state".to_owned(),
                "quarantined".into(),
            );
        }
    };
    let cordoned = store.edit("nodes", "", NODE, cordon);
    cordoned.map(drop).map_err(DemoError::Scene)
}

impl<S: Fn(&str)> NodeDrainer<S> {
    /// Hands a drain over, and waits until it is complete.
    pub(super) async fn drain(&self, event: &HealthEvent) -> Result<(), DemoError> {
        (self.say)(&event.for_people());
        self.store.apply(event.request()).map_err(DemoError::Scene)?;
        let name = event.request_name();
        let waited = tokio::time::timeout(LIMIT, self.completion(&name)).await;
        waited.unwrap_or_else(|_| Err(stuck(&name, "no answer")))
    }

    /// Shows the final conditions of the request, and deletes it.
    pub(super) fn finish(&self, event: &HealthEvent) {
        let name = event.request_name();
        let mut text =
            format!("\n$ kubectl -n {NAMESPACE} get drainrequest {name} -o yaml    # its conditions");
        for Condition {
            kind,
            status,
            reason,
            message,
        } in self.conditions(&name)
        {
            text.push_str(&format!(
                "\n            {kind:<15}  {status:<5}  {reason}: {message}"
            ));
        }
        (self.say)(&text);
        (self.say)(&format!(
            "\n$ kubectl -n {NAMESPACE} delete drainrequest {name}    # node-drainer has its answer"
        ));
        self.store.delete(REQUESTS, NAMESPACE, &name);
    }

    /// Waits until the request is complete, and reports each change of its conditions.
    async fn completion(&self, name: &str) -> Result<(), DemoError> {
        let mut known = Vec::new();
        loop {
            let conditions = self.conditions(name);
            for condition in conditions.iter().filter(|condition| !known.contains(*condition)) {
                let Condition { kind, status, .. } = condition;
                (self.say)(&format!("            ({kind}={status}: {})", condition.message));
            }
            let true_one = |wanted: &str| {
                let mut all = conditions.iter();
                all.find(|condition| condition.kind == wanted && condition.status == "True")
            };
            if let Some(failed) = true_one(FAILED) {
                return Err(stuck(name, &failed.message));
            }
            if true_one(COMPLETE).is_some() {
                return Ok(());
            }
            known = conditions;
            tokio::time::sleep(POLL).await;
        }
    }

    fn conditions(&self, name: &str) -> Vec<Condition> {
        let request = self.store.get(REQUESTS, NAMESPACE, name).unwrap_or_default();
        conditions_of(&request).collect()
    }
}

impl Condition {
    fn of(condition: &Value) -> Self {
        let text = |key: &str| {
            let text = condition.get(key).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        Self {
            kind: text("type"),
            status: text("status"),
            reason: text("reason"),
            message: text("message"),
        }
    }
}

fn conditions_of(request: &Value) -> impl Iterator<Item = Condition> {
    let conditions = request.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().map(Condition::of)
}

/// A drain waits for what policies do first.
pub(super) fn is_deferred(store: &Store) -> bool {
    let defers = |request: &Value| {
        let mut conditions = conditions_of(request);
        conditions.any(|it| (it.kind.as_str(), it.status.as_str()) == ("DrainDeferred", "True"))
    };
    store.list(REQUESTS).iter().any(defers)
}

fn stuck(request: &str, message: &str) -> DemoError {
    DemoError::Stuck {
        event: request.to_owned(),
        message: message.to_owned(),
    }
}

impl HealthEvent {
    /// As node-drainer names its requests.
    fn request_name(&self) -> String {
        format!("drain-{NODE}-{}", self.id)
    }

    fn entities(&self) -> Vec<Value> {
        let entity = |(kind, value): &(&str, &str)| json!({"type": kind, "value": value});
        self.entities.iter().map(entity).collect()
    }

    /// What the template makes of the event. node-drainer itself sets the name and the label.
    fn request(&self) -> Value {
        json!({
            "apiVersion": format!("{GROUP}/v1alpha1"), "kind": "DrainRequest",
            "metadata": {"name": self.request_name(), "namespace": NAMESPACE,
                "labels": {"nvsentinel.nvidia.com/node-name": NODE}},
            "spec": {"nodeName": NODE, "checkName": self.check, "errorCode": [self.code],
                "recommendedAction": self.action, "healthEventID": self.id, "reason": self.reason,
                "entitiesImpacted": self.entities()},
        })
    }

    fn for_people(&self) -> String {
        let Self {
            check,
            code,
            action,
            reason,
            ..
        } = self;
        let entity = |(kind, value): &(&str, &str)| format!("{{type: {kind}, value: {value}}}");
        let entities: Vec<String> = self.entities.iter().map(entity).collect();
        let (name, entities) = (self.request_name(), entities.join(", "));
        let indent = "\n            ";
        format!(
            "\n$ kubectl create -f drain-request.yaml    # node-drainer: the DrainRequest {name}\
             {indent}spec:\
             {indent}  nodeName: {NODE}\
             {indent}  checkName: {check}\
             {indent}  errorCode: [\"{code}\"]\
             {indent}  recommendedAction: {action}\
             {indent}  entitiesImpacted: [{entities}]\
             {indent}  reason: {reason}"
        )
    }
}
