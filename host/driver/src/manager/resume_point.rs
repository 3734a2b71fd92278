//! Where another process left a drain, by its checkpoint on the node. It is read when it is needed, because that process
//! may have continued to write after this one started.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use scupper_engine::{Checkpoint, Intent, Node, Outcome, Request, Trigger};
use tokio::sync::watch;
use tokio::time::sleep;

use scupper_cluster::Cluster;
use scupper_common::clock::Clock;
use scupper_triggers::{DriverState, ResumePoint, slm};

/// A node that could not be read is read again after so long.
const RETRY: Duration = Duration::from_secs(2);

/// The node as it is now; `None`: it does not exist. Waits for an API server that does not answer.
pub(crate) async fn current_node(cluster: &Cluster, name: &str) -> Option<Node> {
    loop {
        match cluster.node(name).await {
            Ok(node) => return node,
            Err(error) => tracing::warn!(%error, "the node could not be read; trying again"),
        }
        sleep(RETRY).await;
    }
}

/// The checkpoint that a former process of this driver left on the node. It is read once: after that process has ended,
/// and before any trigger begins something.
#[derive(Clone)]
pub(crate) struct LeftDrain(watch::Sender<Option<Option<Checkpoint>>>);

impl LeftDrain {
    pub(crate) fn new() -> Self {
        Self(watch::channel(None).0)
    }

    /// The node was read.
    fn set(&self, mark: Option<Checkpoint>) {
        self.0.send_replace(Some(mark));
    }

    /// The checkpoint, once it is read.
    pub(crate) async fn mark(&self) -> Option<Checkpoint> {
        let mut read = self.0.subscribe();
        let read = read.wait_for(Option::is_some).await.ok()?;
        read.clone().flatten()
    }

    /// The checkpoint as far as it is read.
    pub(crate) fn mark_so_far(&self) -> Option<Checkpoint> {
        self.0.borrow().clone().flatten()
    }
}

/// A trigger of this driver continues it or drops it: until then nothing else begins. A command's drain has no trigger here.
pub(crate) fn goes_first(mark: &Checkpoint) -> bool {
    let is_of_trigger = matches!(
        Trigger::of(&mark.trigger),
        Trigger::LifecycleEvent | Trigger::DrainRequest | Trigger::Cordon
    );
    is_of_trigger && mark.is_under_way()
}

/// How the SLM trigger finds the drain that another process left; the other triggers learn of it as well. The driver is busy
/// with it before any trigger may begin.
pub(crate) fn finder(
    cluster: &Cluster,
    name: &str,
    clock: Clock,
    left: LeftDrain,
    driver_state: watch::Sender<DriverState>,
) -> slm::FindResumePoint {
    let (cluster, name) = (cluster.clone(), name.to_owned());
    Arc::new(move || {
        let (cluster, name) = (cluster.clone(), name.clone());
        let (left, driver_state) = (left.clone(), driver_state.clone());
        async move {
            let node = current_node(&cluster, &name).await;
            let mark = node.and_then(|node| node.checkpoint);
            if let Some(mark) = mark.as_ref().filter(|mark| goes_first(mark)) {
                driver_state.send_replace(DriverState::Running {
                    id: mark.id.clone(),
                    what: what(&mark.trigger, &mark.name),
                });
            }
            left.set(mark.clone());
            mark.and_then(|mark| of_event(mark, clock))
        }
        .boxed()
    })
}

/// A drain, for users.
pub(crate) fn what(trigger: &str, name: &str) -> String {
    format!("the drain for {trigger} {name}")
}

/// The drain of a LifecycleEvent that another process left on the node.
fn of_event(mark: Checkpoint, clock: Clock) -> Option<ResumePoint> {
    (Trigger::of(&mark.trigger) == Trigger::LifecycleEvent).then(|| ResumePoint {
        intent: mark.intent,
        deadline: mark.deadline.map(|wall| clock.moment_of_wall(wall)),
        only_pods: mark.only_pods,
        finished: !mark.is_under_way(),
        id: mark.id,
        name: mark.name,
    })
}

/// The unfinished drain by a cordon that another process left on the node.
pub(crate) fn of_cordon(mark: &Checkpoint, clock: Clock) -> Option<ResumePoint> {
    unfinished(mark, Trigger::Cordon, clock)
}

/// The unfinished drain for DrainRequests that another process left on the node.
pub(crate) fn of_drain_request(mark: &Checkpoint, clock: Clock) -> Option<ResumePoint> {
    unfinished(mark, Trigger::DrainRequest, clock)
}

fn unfinished(mark: &Checkpoint, trigger: Trigger, clock: Clock) -> Option<ResumePoint> {
    let is_unfinished = Trigger::of(&mark.trigger) == trigger && mark.is_under_way();
    is_unfinished.then(|| ResumePoint {
        id: mark.id.clone(),
        name: mark.name.clone(),
        intent: mark.intent,
        // The node holds a wall-clock time.
        deadline: mark.deadline.map(|wall| clock.moment_of_wall(wall)),
        only_pods: mark.only_pods,
        finished: false,
    })
}

/// The unfinished drain or uncordon that a command began on the node.
pub(crate) fn of_command(node: &Node) -> Option<&Checkpoint> {
    let mark = node.checkpoint.as_ref()?;
    (Trigger::of(&mark.trigger) == Trigger::Command && mark.is_under_way()).then_some(mark)
}

/// Another process has already drained the cordoned node that this request is about.
pub(crate) fn drained_by_another(request: &Request, node: &Node) -> Option<Outcome> {
    let is_for_cordon = Trigger::of(&request.trigger) == Trigger::Cordon && request.intent == Intent::Drain;
    (is_for_cordon && node.unschedulable && is_marked_drained(node)).then_some(Outcome::Drained)
}

/// The node's condition says that it is drained.
pub(crate) fn is_marked_drained(node: &Node) -> bool {
    let mut conditions = node.conditions.iter();
    conditions.any(|condition| condition.kind == "Drained" && condition.status == "True")
}
