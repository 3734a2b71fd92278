//! Feeds changes of the requests and reports of the driver into the state, and carries out its commands and writes. It
//! must not decide anything.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, Stream, StreamExt as _};
use scupper_api::{DrainRequestRef, RequestCondition};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use super::conditions::ConditionNames;
use super::request::{RequestChange, ServedRequests};
use super::state::{ConditionWrite, RequestState, UnwrittenConditions};
use crate::{DrainCommand, DrainReport, ResumePoint};
use scupper_common::clock::Clock;

/// How often deadlines and pauses are looked at while a request is open.
const TURN: Duration = Duration::from_secs(1);
/// Writes under way at once: each reads the whole object first.
const MOST_WRITES: usize = 4;

/// Settings of the trigger.
#[derive(Clone, Debug)]
pub struct DrainRequestOptions {
    /// The namespaces whose requests arrive.
    pub namespaces: Vec<String>,
    /// The types of the conditions.
    pub conditions: ConditionNames,
    /// Time limit of a request, from the start of its drain.
    pub timeout: Option<Duration>,
    /// The current time.
    pub clock: Clock,
}

/// Reads the unfinished drain that a previous process left on the node.
pub type FindResumePoint = Arc<dyn Fn() -> BoxFuture<'static, Option<ResumePoint>> + Send + Sync>;

/// Writes conditions of a request; an error is logged and retried.
pub type SetConditions = Arc<
    dyn Fn(DrainRequestRef, Vec<RequestCondition>) -> BoxFuture<'static, Result<(), UnwrittenConditions>>
        + Send
        + Sync,
>;

/// Connects the trigger with the rest of the driver.
pub struct DrainRequestDeps<R> {
    /// Every change of the requests that name this node.
    pub requests: R,
    /// Reads the drain that a previous process left.
    pub find_resume_point: FindResumePoint,
    /// Writes conditions.
    pub set_conditions: SetConditions,
    /// Publishes which requests the current drain serves, before its command is sent. They stay until the next drain.
    pub served: watch::Sender<Option<ServedRequests>>,
    /// Receives the trigger's commands.
    pub commands: mpsc::Sender<DrainCommand>,
    /// What the driver reports of its drains.
    pub reports: mpsc::UnboundedReceiver<DrainReport>,
    /// True while no other instance of this driver runs and this one is not stopping.
    pub sole_instance: watch::Receiver<bool>,
}

/// Serves until the rest of the driver has ended.
pub async fn run<R>(options: DrainRequestOptions, deps: DrainRequestDeps<R>)
where
    R: Stream<Item = RequestChange> + Send + Unpin,
{
    let DrainRequestDeps {
        mut requests,
        find_resume_point,
        set_conditions,
        served,
        commands,
        mut reports,
        mut sole_instance,
    } = deps;
    let clock = options.clock;
    let mut state = RequestState::new(&options.namespaces, options.conditions, options.timeout);
    let mut writes = FuturesUnordered::new();
    loop {
        let is_sole = *sole_instance.borrow_and_update();
        if is_sole && state.needs_resume_point() {
            state.handle_resume_point(find_resume_point().await, clock.now());
        }
        state.advance(clock.now(), is_sole);
        if let Some(now_served) = state.served() {
            served.send_replace(Some(now_served));
        }
        while let Some(command) = state.poll_command() {
            tracing::info!(?command, "command to the driver");
            if commands.send(command).await.is_err() {
                return;
            }
        }
        while let Some(write) = (is_sole && writes.len() < MOST_WRITES)
            .then(|| state.poll_write(clock.now()))
            .flatten()
        {
            writes.push(carry_out(Arc::clone(&set_conditions), write));
        }
        tokio::select! {
            biased;
            report = reports.recv() => match report {
                Some(report) => state.handle_report(report, clock.now()),
                None => return,
            },
            changed = sole_instance.changed() => if changed.is_err() {
                return;
            },
            Some((write, written)) = writes.next(), if !writes.is_empty() => {
                state.handle_written(&write, &written, clock.now());
            }
            change = requests.next() => match change {
                Some(change) => state.handle_change(change, clock.now()),
                None => return,
            },
            () = sleep(TURN), if state.is_busy() => {}
        }
    }
}

fn carry_out(
    set_conditions: SetConditions,
    write: ConditionWrite,
) -> BoxFuture<'static, (ConditionWrite, Result<(), UnwrittenConditions>)> {
    async move {
        let written = set_conditions(write.reference.clone(), write.conditions.clone()).await;
        if let Err(error) = &written {
            tracing::warn!(%error, "the status of a DrainRequest could not be written");
        }
        (write, written)
    }
    .boxed()
}
