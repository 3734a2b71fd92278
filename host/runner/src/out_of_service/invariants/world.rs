//! An API server with one node, and all who write to it: our drain, the node's controllers and people. It checks each
//! write of the taint.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::client::Body;
use scupper_cluster::{Cluster, ConnectOptions};
use scupper_common::clock::Clock;
use scupper_engine::{Node, Uid};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep};

use super::Mutation;

pub(super) const NODE: &str = "worker-1";
const KEY: &str = "node.kubernetes.io/out-of-service";
/// How often a kubelet that is alive renews its Lease, and how long that is valid.
pub(super) const RENEW: Duration = Duration::from_secs(1);
const LENGTH: Duration = Duration::from_secs(4);
/// From the read of the Lease to the arrival of the write: a kubelet may come back meanwhile.
const UNDER_WAY: Duration = Duration::from_millis(700);

pub(super) type Shared = Arc<Mutex<World>>;

/// See the module.
pub(super) struct World {
    rng: u64,
    mutation: Option<Mutation>,
    node: Value,
    version: u64,
    pub(super) changed: watch::Sender<u64>,
    /// A process of the drain has the operator's word.
    pub(super) word: bool,
    /// Its taint stands, and no other client has replaced it.
    pub(super) is_tainted: bool,
    /// How often it was set and removed.
    pub(super) set: u32,
    pub(super) removed: u32,
    /// Since when the kubelet has reported that the node is Ready, or is not.
    reports_since: Option<Instant>,
    /// Since when the kubelet has been alive while its node is called Unknown.
    renews_since: Option<Instant>,
    /// The renewals of the kubelet's Lease, the newest last.
    renewals: Vec<Instant>,
    clock: Clock,
    /// Since when a process has been there.
    pub(super) alive_since: Option<Instant>,
    /// Until when the server answers nothing; there is one outage.
    outage_ends: Option<Instant>,
    /// The pods, and when each that was deleted is gone.
    pub(super) pods: BTreeMap<Uid, Option<Instant>>,
    pub(super) faults: Vec<String>,
}

/// What happens to the node without the drain.
#[derive(Clone, Copy, Debug)]
pub(super) enum WorldEvent {
    /// The kubelet is alive, and its node has this condition `Ready`; `None`: it is dead.
    Kubelet(Option<&'static str>),
    Cordon(bool),
    /// Somebody taints the node, or replaces our taint.
    Taint,
    /// Somebody removes every taint of this key.
    Untaint,
    /// A heartbeat.
    Touch,
}

/// The taint of the drain.
fn ours() -> Value {
    json!({"key": KEY, "value": "nodeshutdown", "effect": "NoExecute"})
}

impl World {
    pub(super) fn new(seed: u64, mutation: Option<Mutation>, clock: Clock) -> Self {
        let node = json!({
            "metadata": {"name": NODE, "uid": "n-1", "resourceVersion": "1", "annotations": {}},
            "spec": {"taints": []},
            "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]},
        });
        Self {
            rng: seed,
            mutation,
            node,
            version: 1,
            changed: watch::Sender::new(1),
            word: false,
            is_tainted: false,
            set: 0,
            removed: 0,
            reports_since: None,
            renews_since: None,
            renewals: Vec::new(),
            clock,
            alive_since: None,
            outage_ends: None,
            pods: BTreeMap::new(),
            faults: Vec::new(),
        }
    }

    /// Less than `end`. The sequence is splitmix64.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.rng = self.rng.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.rng ^ (self.rng >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    pub(super) fn millis(&mut self, end: u64) -> Duration {
        Duration::from_millis(self.below(end))
    }

    pub(super) fn happens(&mut self, what: WorldEvent) {
        match what {
            WorldEvent::Kubelet(status) => {
                self.node["status"]["conditions"][0]["status"] = json!(status.unwrap_or("Unknown"));
                let reports = status.filter(|status| *status != "Unknown");
                let since = self.reports_since.unwrap_or_else(Instant::now);
                self.reports_since = reports.map(|_| since);
                let since = self.renews_since.unwrap_or_else(Instant::now);
                self.renews_since = status.filter(|_| reports.is_none()).map(|_| since);
                self.renew();
            }
            WorldEvent::Cordon(on) => self.node["spec"]["unschedulable"] = json!(on),
            WorldEvent::Taint => {
                let effect = if self.below(3) == 0 {
                    "NoSchedule"
                } else {
                    "NoExecute"
                };
                let theirs = json!({"key": KEY, "value": "ticket-7", "effect": effect});
                // One taint of a key for each effect.
                let mut taints = self.taints();
                taints.retain(|taint| taint["effect"] != effect);
                taints.push(theirs);
                self.is_tainted &= taints.contains(&ours());
                self.node["spec"]["taints"] = json!(taints);
            }
            WorldEvent::Untaint => {
                self.node["spec"]["taints"] = json!([]);
                self.is_tainted = false;
            }
            WorldEvent::Touch => {}
        }
        self.bump();
    }

    /// Longer than the hooks of a cancel may take.
    pub(super) fn begin_outage(&mut self) {
        let takes = Duration::from_secs(15) + self.millis(4_000);
        self.outage_ends.get_or_insert_with(|| Instant::now() + takes);
    }

    fn is_away(&self) -> bool {
        self.outage_ends.is_some_and(|ends| Instant::now() < ends)
    }

    /// A kubelet that is alive renews its Lease.
    pub(super) fn renew(&mut self) {
        if self.reports_since.or(self.renews_since).is_some() {
            self.renewals.push(Instant::now());
        }
    }

    /// The kubelet's Lease; mutations make its readers believe that it has expired.
    fn lease(&self) -> Value {
        let is_hidden = matches!(
            self.mutation,
            Some(Mutation::TrustsUnknown | Mutation::TakesFalseForSilence | Mutation::TrustsAnOldState)
        );
        let renewals = if is_hidden { &[] } else { self.renewals.as_slice() };
        let ago = renewals.last().map_or(Duration::from_secs(600), Instant::elapsed);
        let millis = (self.clock.wall() - ago).as_millis();
        // The clock begins some minutes after the epoch.
        let (minutes, seconds, millis) = (millis / 60_000, millis / 1_000 % 60, millis % 1_000);
        json!({
            "metadata": {"name": NODE, "namespace": "kube-node-lease", "uid": "l-1",
                "resourceVersion": renewals.len().to_string()},
            "spec": {"leaseDurationSeconds": LENGTH.as_secs(),
                "renewTime": format!("1970-01-01T00:{minutes:02}:{seconds:02}.{millis:03}Z")},
        })
    }

    /// As another client left it before the drain: exactly the taint that the documentation of Kubernetes names.
    pub(super) fn begin_tainted(&mut self) {
        self.node["spec"]["taints"] = json!([ours()]);
    }

    fn taints(&self) -> Vec<Value> {
        let taints = self.node["spec"]["taints"].as_array();
        taints.cloned().unwrap_or_default()
    }

    /// Whether the node is marked by a drain of this id.
    pub(super) fn is_marked_by(&self, drain: &str) -> bool {
        self.node["metadata"]["annotations"][Node::OUT_OF_SERVICE] == drain
    }

    fn bump(&mut self) {
        self.version += 1;
        self.node["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.changed.send_replace(self.version);
    }

    /// Answers a request.
    fn answer(&mut self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let is_node = path.ends_with(&format!("/nodes/{NODE}"));
        match method {
            "GET" if is_node => (200, self.shown()),
            "PATCH" if is_node => self.patch(body),
            "GET" if path.ends_with(&format!("/leases/{NODE}")) => (200, self.lease()),
            _ => (200, json!({"metadata": {"name": "event"}})),
        }
    }

    /// The node as a reader sees it; a mutation makes the hook believe what it should have checked.
    fn shown(&self) -> Value {
        let mut node = self.node.clone();
        match self.mutation {
            Some(Mutation::TrustsAnOldState) => {
                node["status"]["conditions"][0]["status"] = json!("Unknown");
                node["spec"]["unschedulable"] = json!(true);
            }
            Some(Mutation::TakesFalseForSilence) if node["status"]["conditions"][0]["status"] == "False" => {
                node["status"]["conditions"][0]["status"] = json!("Unknown");
            }
            Some(Mutation::RemovesAnyTaint) if !self.taints().is_empty() => {
                node["metadata"]["annotations"][Node::OUT_OF_SERVICE] = json!("drain");
                node["spec"]["taints"] = json!([ours()]);
            }
            _ => {}
        }
        node
    }

    fn patch(&mut self, patch: &Value) -> (u16, Value) {
        let read = &patch["metadata"]["resourceVersion"];
        let is_current = *read == self.node["metadata"]["resourceVersion"];
        let is_blind =
            self.mutation == Some(Mutation::TrustsAnOldState) && patch["spec"]["taints"].is_array();
        if !read.is_null() && !is_current && !is_blind {
            return (409, status(409, "Conflict"));
        }
        let before = self.taints();
        let mut merged = patch.clone();
        if let Some(meta) = merged["metadata"].as_object_mut() {
            meta.remove("resourceVersion");
        }
        merge(&mut self.node, &merged);
        self.check(&before);
        self.bump();
        (200, self.node.clone())
    }

    /// What a write of ours did to the taints of the key.
    fn check(&mut self, before: &[Value]) {
        let after = self.taints();
        let is_unknown = self.node["status"]["conditions"][0]["status"] == "Unknown";
        let is_recent = |renewed: &&Instant| renewed.elapsed() > UNDER_WAY && renewed.elapsed() < LENGTH;
        let renews = self
            .renewals
            .iter()
            .rev()
            .take(9)
            .any(|renewed| is_recent(&renewed));
        for added in after.iter().filter(|taint| !before.contains(taint)) {
            self.require(*added == ours(), "another taint was set");
            self.require(self.word, "the taint was set without the operator's word");
            self.require(
                self.node["spec"]["unschedulable"] == true,
                "the taint was set before the cordon",
            );
            self.require(is_unknown, "the taint was set on a node whose kubelet reports");
            self.require(
                !renews,
                "the taint was set on a node whose kubelet renews its Lease",
            );
            self.is_tainted = true;
            self.set += 1;
        }
        for gone in before.iter().filter(|taint| !after.contains(taint)) {
            let is_own = *gone == ours() && self.is_tainted;
            self.require(is_own, "a taint of another client was removed");
            self.is_tainted = false;
            self.removed += 1;
        }
    }

    /// A process removes its taint within these times from a node whose kubelet is alive again.
    pub(super) fn check_alive(&mut self, within: Duration, by_lease: Duration) {
        let is_late = |since: Option<Instant>, within| {
            let since = since.zip(self.alive_since);
            let since =
                since.map(|(kubelet, process)| kubelet.max(process).max(self.outage_ends.unwrap_or(process)));
            self.is_tainted && since.is_some_and(|since| since.elapsed() > within)
        };
        let (reports, renews) = (
            is_late(self.reports_since, within),
            is_late(self.renews_since, by_lease),
        );
        self.require(!reports, "a node whose kubelet reports again kept the taint");
        self.require(!renews, "a node whose kubelet renews its Lease kept the taint");
    }

    pub(super) fn require(&mut self, holds: bool, what: &str) {
        if !holds {
            self.faults.push(what.to_owned());
        }
    }
}

fn status(code: u16, reason: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": reason})
}

/// A JSON merge patch.
fn merge(into: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (name, value) in fields {
        match value {
            Value::Null => drop(into.as_object_mut().and_then(|into| into.remove(name))),
            value => merge(&mut into[name], value),
        }
    }
}

/// A client of this world. Requests and answers take their time; some requests fail, and some answers are lost. What
/// was sent arrives also if its sender dies meanwhile.
pub(super) fn cluster(world: &Shared, clock: Clock) -> Cluster {
    let world = Arc::clone(world);
    let service = tower::service_fn(move |request: Request<Body>| {
        let world = Arc::clone(&world);
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let body = serde_json::from_slice(&body).unwrap_or_default();
            let (send, answer) = oneshot::channel();
            tokio::spawn(serve(world, parts, body, send));
            let (code, value): (u16, Value) = answer.await.unwrap();
            let body = Body::from(value.to_string().into_bytes());
            Ok::<_, Infallible>(Response::builder().status(code).body(body).unwrap())
        }
    });
    Cluster::from_client(
        kube::Client::new(service, "default"),
        ConnectOptions::default(),
        clock,
    )
}

async fn serve(
    world: Shared,
    parts: http::request::Parts,
    body: Value,
    answer: oneshot::Sender<(u16, Value)>,
) {
    let (there, back, fate) = {
        let mut world = world.lock().unwrap();
        let fate = world.below(12);
        let fate = if world.is_away() { 0 } else { fate };
        (world.millis(300), world.millis(300), fate)
    };
    sleep(there).await;
    let answered = match fate {
        0 => (503, status(503, "ServiceUnavailable")),
        _ => world
            .lock()
            .unwrap()
            .answer(parts.method.as_str(), parts.uri.path(), &body),
    };
    sleep(back).await;
    let answered = match fate {
        1 => (500, status(500, "InternalError")),
        _ => answered,
    };
    // Its sender may be dead.
    answer.send(answered).unwrap_or_default();
}
