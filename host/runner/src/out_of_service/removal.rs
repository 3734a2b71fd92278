//! Removes the taint of a drain that is rolled back. No hook does it: the hooks of all policies share fifteen seconds, and
//! one of them may take all of these.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use scupper_cluster::Cluster;
use scupper_engine::{Drain, Node, Phase, StepOutcome, Time};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::{Instant, sleep};

use super::{AGAIN, POLICY, again, emit, still_there, taint_removed};
use crate::reporter::policy_messages::PolicyMessages;

/// How long it is tried while the deadline is far, as long as the node's last write.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long it is tried in any case: as long as the engine runs hooks and tries its last write.
const AT_LEAST: Duration = Duration::from_secs(30);

/// The removal in one process. It works only while something waits for it, and ends with the runner.
#[derive(Default)]
pub(crate) struct TaintRemoval {
    /// Held while the taint is being set.
    setting: Arc<Mutex<()>>,
    outcome: Option<Shared<BoxFuture<'static, StepOutcome>>>,
    /// The taint stays with the cordon, as long as the node shows no sign of life.
    stays: bool,
}

impl TaintRemoval {
    /// The taint is being set for as long as the guard lives: its removal waits.
    pub(crate) fn setting(&self) -> Option<OwnedMutexGuard<()>> {
        Arc::clone(&self.setting).try_lock_owned().ok()
    }

    /// Begins once the drain is rolled back. A taint stays with the cordon until the node is alive.
    pub(crate) fn follow(&mut self, drain: &Drain, now: Time, cluster: &Cluster, messages: &PolicyMessages) {
        let request = drain.request();
        let is_meant = request.policies.iter().any(|policy| policy.name == POLICY);
        if self.outcome.is_some() || !is_meant || drain.phase() != Phase::RollingBack {
            return;
        }
        let Some(node) = drain.node() else { return };
        let is_off = Node::may_be_off(&node.conditions);
        self.stays = drain.held() && is_off;
        if self.stays {
            return;
        }
        let limit = request.deadline.map_or(PATIENCE, |deadline| deadline.since(now));
        let removal = Removal {
            cluster: cluster.clone(),
            messages: messages.clone(),
            node: node.name.clone(),
            own: is_off.then(|| request.id.clone()),
            limit: limit.clamp(AT_LEAST, PATIENCE),
        };
        let setting = Arc::clone(&self.setting);
        let removing = async move {
            let _set = setting.lock().await;
            removal.run().await
        };
        self.outcome = Some(removing.boxed().shared());
    }

    /// What the drain's hook answers.
    pub(crate) fn outcome(&self) -> impl Future<Output = StepOutcome> + Send + use<> {
        let (outcome, stays) = (self.outcome.clone(), self.stays);
        async move {
            match outcome {
                Some(outcome) => outcome.await,
                None if stays => StepOutcome::Done,
                None => again("nothing is known of the node yet".to_owned()),
            }
        }
    }

    /// It has begun and has not ended.
    pub(crate) fn is_under_way(&self) -> bool {
        let outcome = self.outcome.as_ref();
        outcome.is_some_and(|outcome| outcome.peek().is_none())
    }

    /// Works at it until it ends; for ever if it is not under way.
    pub(crate) async fn end(&self) {
        match &self.outcome {
            Some(outcome) if self.is_under_way() => drop(outcome.clone().await),
            _ => pending().await,
        }
    }
}

struct Removal {
    cluster: Cluster,
    messages: PolicyMessages,
    node: String,
    /// Only the taint of this drain.
    own: Option<String>,
    limit: Duration,
}

impl Removal {
    async fn run(self) -> StepOutcome {
        let (node, until) = (&self.node, Instant::now() + self.limit);
        loop {
            let removed = self.cluster.unmark_out_of_service(node, self.own.as_deref());
            let error = match removed.await {
                Ok(is_removed) => {
                    if is_removed {
                        emit(&self.cluster, node, &taint_removed()).await;
                        self.messages.add(node, taint_removed());
                    }
                    return StepOutcome::Done;
                }
                // The taint has gone with the Node.
                Err(error) if error.is_not_found() => return StepOutcome::Done,
                Err(error) => error,
            };
            let message = error.to_string();
            tracing::debug!(node, message, "the taint is not removed yet");
            if error.is_final() || Instant::now() >= until {
                self.messages.add(node, still_there(node, &message));
                let retry_after = None;
                return StepOutcome::Failed { message, retry_after };
            }
            sleep(AGAIN).await;
        }
    }
}
