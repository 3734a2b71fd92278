//! Answers a command that asks whether a drain of this node could begin, by the driver's policies and settings, before it
//! cordons the node ahead of its drain.

use std::sync::Arc;
use std::time::Duration;

use scupper_engine::{Checkpoint, Intent, Node, Request, Trigger};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::adapters::transition_api;
use crate::manager::drain_settings::DrainSettingsSource;
use scupper_cluster::Cluster;
use scupper_common::clock::Clock;
use scupper_policy_reload::Catalogue;
use scupper_runner::plan_check::{
    ANSWERED_WITHIN, PLAN_CHECK_ANNOTATION, PlanCheck, PlanCheckText, obstacle,
};

/// An answer that its command has not removed is removed after this time: the command is gone.
const KEPT: Duration = Duration::from_secs(20);

/// What it takes to plan a drain.
pub(super) struct PlanAnswers {
    pub(super) cluster: Cluster,
    pub(super) clock: Clock,
    pub(super) catalogue: Arc<Catalogue>,
    pub(super) drain_settings: Arc<DrainSettingsSource>,
}

impl PlanAnswers {
    /// Ends with the watch of the node.
    pub(super) async fn run(self, mut nodes: watch::Receiver<Option<Node>>) {
        // The watch may still show the question that was answered.
        let mut last = String::new();
        let mut removed_at = None;
        loop {
            let node = nodes.borrow_and_update().clone();
            let found = node.and_then(|node| PlanCheck::of(&node).map(|check| (node, check)));
            if let Some((node, check)) = &found
                && let PlanCheckText::Flags(flags) = &check.says
                && check.id != last
            {
                let obstacle = self.obstacle(node, flags).await;
                self.write(node, Some(&check.answered(obstacle))).await;
                last.clone_from(&check.id);
                continue;
            }
            let answered = found.filter(|(_, check)| matches!(check.says, PlanCheckText::Obstacle(_)));
            let first = || Instant::now() + KEPT;
            removed_at = answered.as_ref().map(|_| removed_at.unwrap_or_else(first));
            tokio::select! {
                changed = nodes.changed() => if changed.is_err() {
                    return;
                },
                () = sleep_until(removed_at.unwrap_or_else(first)), if removed_at.is_some() => {
                    if let Some((node, _)) = &answered {
                        self.write(node, None).await;
                    }
                    removed_at = None;
                }
            }
        }
    }

    /// What is in the way of a drain with these flags. A node that is being drained is not cordoned ahead anyway.
    async fn obstacle(&self, node: &Node, flags: &str) -> Option<String> {
        if node.checkpoint.as_ref().is_some_and(Checkpoint::is_under_way) {
            return None;
        }
        let requested = match transition_api::flags(flags, &self.drain_settings) {
            Ok(requested) => requested,
            Err(problem) => return Some(problem),
        };
        let settings = self.drain_settings.now(Trigger::LifecycleEvent);
        let settings = settings.with_request(&requested.flags);
        let session = self.catalogue.session();
        let limit = requested.timeout.or(settings.time_limit);
        let now = self.clock.now();
        let request = Request {
            id: "plan-check".to_owned(),
            name: "plan-check".to_owned(),
            trigger: Trigger::LifecycleEvent.name().to_owned(),
            intent: Intent::Drain,
            node: node.name.clone(),
            deadline: limit.map(|limit| now + limit),
            settings: settings.engine,
            policies: session.infos(),
        };
        obstacle(&self.cluster, &session, self.clock, request, ANSWERED_WITHIN).await
    }

    /// A command that gets no answer cordons the node all the same, so a write that fails is not repeated.
    async fn write(&self, node: &Node, answer: Option<&PlanCheck>) {
        let (cluster, key) = (&self.cluster, PLAN_CHECK_ANNOTATION);
        let written = match answer {
            Some(answer) => {
                cluster
                    .set_node_annotation(&node.name, key, &answer.to_text())
                    .await
            }
            None => cluster.remove_node_annotation(&node.name, key).await,
        };
        if let Err(error) = written {
            tracing::warn!(node = node.name, %error, "could not answer whether a drain could begin");
        }
    }
}
