//! Plans the drains of several nodes before the first of them is cordoned. A node whose drain would be refused stays in
//! service until its turn, and the operator learns at the start what the last of twenty nodes needs. Where drivers drain,
//! they plan.

use std::time::Duration;

use futures::{StreamExt as _, stream};
use scupper_engine::Request;
use tokio::time::{sleep, timeout};

use super::run::new_id;
use scupper_cluster::Cluster;
use scupper_common::clock::Clock;
use scupper_common::error::chain;
use scupper_policy_reload::Session;
use scupper_runner::plan_check::{
    ANSWERED_WITHIN, PLAN_CHECK_ANNOTATION, PlanCheck, PlanCheckText, obstacle,
};

/// How many nodes this process plans at once.
const AT_ONCE: usize = 4;
/// A plan that takes longer is made at the node's turn: the drains of the others begin.
const WITHIN: Duration = Duration::from_secs(10);
/// How many drivers are asked at once.
const ASKED_AT_ONCE: usize = 32;
/// A driver answers in less, and its answer takes a moment.
const DRIVERS_WITHIN: Duration = ANSWERED_WITHIN.saturating_add(Duration::from_secs(1));
/// After this time the command says for which drivers it waits.
const SAID_AFTER: Duration = Duration::from_secs(2);

/// Returns the nodes whose drains can begin now, and those that have no plan in time. The log names each other node.
pub(super) async fn would_begin(
    cluster: &Cluster,
    session: &Session,
    clock: Clock,
    requests: Vec<Request>,
) -> Vec<String> {
    let plan = async |request: Request| {
        let node = request.node.clone();
        let obstacle = obstacle(cluster, session, clock, request, WITHIN).await;
        (node, obstacle)
    };
    let planned = stream::iter(requests).map(plan).buffered(AT_ONCE);
    planned.filter_map(without_obstacle).collect().await
}

/// The same by the drivers of these nodes, for drains with these flags, as a request carries them. A node whose driver does
/// not answer in time is returned too: its drain says what it lacks.
pub async fn would_begin_at_drivers(
    cluster: &Cluster,
    clock: Clock,
    nodes: &[String],
    flags: &str,
) -> Vec<String> {
    let question = PlanCheck {
        id: new_id(clock.now()),
        says: PlanCheckText::Flags(flags.to_owned()),
    };
    let ask = async |node: &String| (node.clone(), ask_driver(cluster, node, &question).await);
    let asked = stream::iter(nodes).map(ask).buffered(ASKED_AT_ONCE);
    asked.filter_map(without_obstacle).collect().await
}

async fn without_obstacle((node, obstacle): (String, Option<String>)) -> Option<String> {
    match obstacle {
        Some(obstacle) => {
            tracing::warn!(
                "node {node} is left as it is until its turn, because its drain cannot begin now. Correct this before \
                 then: {obstacle}"
            );
            None
        }
        None => Some(node),
    }
}

/// What the driver of a node says is in the way of its drain.
async fn ask_driver(cluster: &Cluster, node: &str, question: &PlanCheck) -> Option<String> {
    let key = PLAN_CHECK_ANNOTATION;
    if let Err(error) = cluster.set_node_annotation(node, key, &question.to_text()).await {
        // The cordon fails for the same reason, and says so.
        tracing::debug!(node, error = chain(&error), "the driver is not asked for a plan");
        return None;
    }
    let answer = timeout(DRIVERS_WITHIN, answer(cluster, node, question));
    tokio::pin!(answer);
    let answered = tokio::select! {
        answered = &mut answer => answered,
        () = sleep(SAID_AFTER) => {
            tracing::warn!(
                "node {node}: its driver has not said yet whether the drain can begin; waiting up to {}s in all",
                DRIVERS_WITHIN.as_secs()
            );
            answer.await
        }
    };
    if let Err(error) = cluster.remove_node_annotation(node, key).await {
        tracing::debug!(node, error = chain(&error), "the driver removes its answer");
    }
    answered.unwrap_or_else(|_| {
        tracing::warn!(
            "node {node}: its driver did not say within {}s whether the drain can begin; cordoning it with the others, \
             without that check",
            DRIVERS_WITHIN.as_secs()
        );
        None
    })
}

/// Waits for the answer. Of two commands that ask at the same time, the one whose question was replaced asks again once the
/// other one has its answer.
async fn answer(cluster: &Cluster, node: &str, question: &PlanCheck) -> Option<String> {
    let states = cluster.node_changes(node);
    futures::pin_mut!(states);
    while let Some(state) = states.next().await {
        match state.as_ref().and_then(PlanCheck::of) {
            Some(PlanCheck {
                id,
                says: PlanCheckText::Obstacle(obstacle),
            }) if id == question.id => {
                return obstacle;
            }
            Some(PlanCheck {
                says: PlanCheckText::Flags(_),
                ..
            }) => {}
            _ => {
                let text = question.to_text();
                let asked = cluster
                    .set_node_annotation(node, PLAN_CHECK_ANNOTATION, &text)
                    .await;
                if let Err(error) = asked {
                    tracing::debug!(node, error = chain(&error), "the driver could not be asked again");
                }
            }
        }
    }
    None
}
