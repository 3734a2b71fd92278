//! A kubelet's requests to the API server for SLM, and their responses.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, TypeMeta};
use kube::core::response::StatusSummary;
use kube::error::Status;
use scupper_contract::CONDITION;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::event::{name, seconds};
use super::options::{Faults, Mode, Options};

/// Attempts at a write after conflicts.
const CONFLICT_ATTEMPTS: usize = 5;
pub(super) const CONFLICT: u16 = 409;
pub(super) const NOT_FOUND: u16 = 404;
const FORBIDDEN: u16 = 403;

/// The client of the API server.
#[derive(Debug)]
pub(super) struct Objects {
    pub events: Api<DynamicObject>,
    transitions: Api<DynamicObject>,
    nodes: Api<Node>,
    node: String,
    types: TypeMeta,
    mode: Mode,
    conflict_pause: Duration,
    faults: Faults,
}

/// The fields of a transition.
#[derive(Clone, Debug)]
pub(super) struct Transition {
    pub name: String,
    pub start: String,
    pub end: String,
    pub driver: String,
    pub sla: Option<SignedDuration>,
}

impl Objects {
    pub(super) fn new(options: &Options, faults: &Faults) -> Self {
        let client = &options.client;
        Self {
            events: Api::all_with(client.clone(), &options.events),
            transitions: Api::all_with(client.clone(), &options.transitions),
            nodes: Api::all(client.clone()),
            node: options.node.clone(),
            types: TypeMeta {
                api_version: options.events.api_version.clone(),
                kind: options.events.kind.clone(),
            },
            mode: options.mode,
            conflict_pause: options.timing.conflict_pause,
            faults: faults.clone(),
        }
    }

    pub(super) async fn event(&self, name: &str) -> kube::Result<DynamicObject> {
        self.events.get(name).await
    }

    pub(super) async fn replace(&self, event: &DynamicObject) -> kube::Result<DynamicObject> {
        self.events
            .replace(name(event), &PostParams::default(), &self.typed(event))
            .await
    }

    /// Writes an event's status, in one attempt.
    pub(super) async fn replace_status(&self, event: &DynamicObject) -> kube::Result<DynamicObject> {
        if self.faults.takes_status_write() {
            return Err(refused(
                CONFLICT,
                "the object has been modified (by order of the test)",
            ));
        }
        self.events
            .replace_status(name(event), &PostParams::default(), &self.typed(event))
            .await
    }

    /// GET and PUT, repeated on conflicts. `change` returns whether a write is needed.
    pub(super) async fn update(
        &self,
        name: &str,
        change: impl Fn(&mut DynamicObject) -> bool,
    ) -> kube::Result<DynamicObject> {
        let mut attempt = 1;
        loop {
            let mut event = self.event(name).await?;
            if !change(&mut event) {
                return Ok(event);
            }
            match self.replace(&event).await {
                Err(error) if code(&error) == CONFLICT && attempt < CONFLICT_ATTEMPTS => attempt += 1,
                written => return written,
            }
            sleep(self.conflict_pause).await;
        }
    }

    /// GET and PUT of the status, repeated on conflicts. `None`: no write was needed.
    pub(super) async fn update_status(
        &self,
        name: &str,
        change: impl Fn(&mut DynamicObject) -> bool,
    ) -> kube::Result<Option<DynamicObject>> {
        let mut attempt = 1;
        loop {
            let mut event = self.event(name).await?;
            if !change(&mut event) {
                return Ok(None);
            }
            match self.replace_status(&event).await {
                Err(error) if code(&error) == CONFLICT && attempt < CONFLICT_ATTEMPTS => attempt += 1,
                written => return written.map(Some),
            }
            sleep(self.conflict_pause).await;
        }
    }

    pub(super) async fn delete(&self, name: &str) -> kube::Result<()> {
        self.events
            .delete(name, &DeleteParams::default())
            .await
            .map(|_| ())
    }

    pub(super) async fn transition(&self, name: &str) -> Result<Transition, String> {
        let object = self
            .transitions
            .get(name)
            .await
            .map_err(|error| format!("transition {name}: {error}"))?;
        let text = |field: &str| {
            let value = object
                .data
                .pointer(&format!("/spec/{field}"))
                .and_then(Value::as_str);
            value.map(str::to_owned)
        };
        let sla = match text("sla") {
            None => None,
            Some(sla) => Some(
                sla.parse()
                    .map_err(|error| format!("transition {name}: spec.sla: {error}"))?,
            ),
        };
        let or_empty = |field| text(field).unwrap_or_default();
        Ok(Transition {
            name: name.to_owned(),
            start: or_empty("start"),
            end: or_empty("end"),
            driver: or_empty("driver"),
            sla,
        })
    }

    pub(super) async fn delete_transitions(&self, selector: &str) -> kube::Result<()> {
        let which = ListParams::default().fields(selector);
        self.transitions
            .delete_collection(&DeleteParams::default(), &which)
            .await
            .map(|_| ())
    }

    /// The reason of the node's SLM condition; empty if there is none.
    pub(super) async fn reason(&self) -> kube::Result<String> {
        let node = self.nodes.get(&self.node).await?;
        let conditions = node
            .status
            .and_then(|status| status.conditions)
            .unwrap_or_default();
        let ours = conditions
            .into_iter()
            .find(|condition| condition.type_ == CONDITION);
        Ok(ours.and_then(|condition| condition.reason).unwrap_or_default())
    }

    /// Writes the condition. Refuses other nodes, as a server does for a kubelet.
    pub(super) async fn patch(
        &self,
        node: &str,
        reason: &str,
        transition: &str,
        now: Timestamp,
    ) -> kube::Result<()> {
        let (delay, refuse) = self.faults.patch();
        if let Some(delay) = delay {
            sleep(delay).await;
        }
        if let Some(status) = refuse {
            return Err(refused(status, "refused by order of the test"));
        }
        if node != self.node {
            let text = format!("node \"{}\" is not allowed to modify node \"{node}\"", self.node);
            return Err(refused(FORBIDDEN, &text));
        }
        let now = seconds(now);
        let patch = json!({"status": {"conditions": [{
            "type": CONDITION,
            "status": "True",
            "reason": reason,
            "message": format!("Lifecycle Transition '{transition}'"),
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }]}});
        let how = PatchParams::default();
        self.nodes
            .patch_status(node, &how, &Patch::Strategic(patch))
            .await
            .map(|_| ())
    }

    /// The value of `status.driver` once the event is claimed.
    pub(super) fn driver_value(&self, driver: &str, transition: Option<&Transition>) -> Value {
        match (self.mode, transition) {
            (Mode::Prototype, _) => json!(driver),
            (Mode::Proposal, None) => json!({"name": driver}),
            (Mode::Proposal, Some(transition)) => {
                json!({"name": driver, "start": transition.start, "end": transition.end})
            }
        }
    }

    fn typed(&self, event: &DynamicObject) -> DynamicObject {
        // Items of a list have no kind.
        DynamicObject {
            types: Some(self.types.clone()),
            ..event.clone()
        }
    }
}

/// The HTTP status of a response; 0 if there was none.
pub(super) fn code(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        _ => 0,
    }
}

fn refused(code: u16, message: &str) -> kube::Error {
    kube::Error::Api(Box::new(Status {
        status: Some(StatusSummary::Failure),
        code,
        message: message.to_owned(),
        metadata: None,
        reason: String::new(),
        details: None,
    }))
}
