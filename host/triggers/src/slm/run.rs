//! The door from its opening to its end: everything made, joined and ended. It must not know what is said.

use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use futures::future::BoxFuture;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::door::Door;
use super::endpoints::Endpoints;
use super::keeper::{self, Situation};
use super::registration::Registration;
use super::self_claim::{self, Machine};
use super::transitions::{self, Transitions};
use super::worker::{Hears, Tells, Worker};
use super::{Board, ClaimApi, LifecycleChange, SlmError, SlmOptions, TransitionChange};
use crate::{Demand, Resume, Standing};

/// Calls that may wait; the kubelet makes one at a time.
const CALLS: usize = 16;
/// Warnings that may wait.
const WARNINGS: usize = 16;
/// How long the last warnings may take to be written.
const WARNED_WITHIN: Duration = Duration::from_secs(2);
/// Below this most drains end `SlaExpired`.
const SHORTEST_SENSIBLE_SLA: Duration = Duration::from_secs(60);

/// Looks what another process of this driver was at, once that has ended; waits for whoever must be asked.
pub type LookBack = Arc<dyn Fn() -> BoxFuture<'static, Option<Resume>> + Send + Sync>;

/// What connects the door with the rest of the driver.
pub struct Wires<E, T> {
    /// The LifecycleEvents of this node.
    pub events: E,
    /// The LifecycleTransitions of this driver.
    pub transitions: T,
    /// Where wishes go.
    pub demands: mpsc::Sender<Demand>,
    /// What the driver is at.
    pub standing: watch::Receiver<Standing>,
    /// How it stands between the kubelet and us.
    pub registration: watch::Sender<Registration>,
    /// No other instance of this driver is at work, and this one does not stop: for the other doors.
    pub alone: watch::Sender<bool>,
    /// Called whenever the door's loop turns, which is once a second at least.
    pub turned: Arc<dyn Fn() + Send + Sync>,
    /// Looks what another process has left.
    pub look_back: LookBack,
    /// How events are claimed where the kubelet does not do it.
    pub claims: Arc<dyn ClaimApi>,
}

/// Serves the kubelet until `stop`, and then until a successor is there or the grace is over.
///
/// # Errors
/// The first thing without which the door cannot work.
pub async fn run<E, T>(
    options: SlmOptions,
    board: Arc<dyn Board>,
    wires: Wires<E, T>,
    stop: CancellationToken,
) -> Result<(), SlmError>
where
    E: Stream<Item = LifecycleChange> + Send + Unpin,
    T: Stream<Item = TransitionChange> + Send + Unpin + 'static,
{
    options.check()?;
    if options.sla.is_some_and(|sla| sla < SHORTEST_SENSIBLE_SLA) {
        tracing::warn!(sla = ?options.sla, "the kubelet needs about 40 seconds for an event that takes no time at all");
    }
    let Wires {
        events,
        transitions,
        demands,
        standing,
        registration,
        alone,
        turned,
        look_back,
        claims,
    } = wires;
    let (calls, inbox) = mpsc::channel(CALLS);
    let (words, heard) = mpsc::unbounded_channel();
    let (warnings, warned) = mpsc::channel(WARNINGS);
    let (situation, situations) = watch::channel(Situation::default());

    let (claimer, claiming) = mpsc::unbounded_channel();
    let claim = self_claim::Worker {
        machine: Machine::new(&options.driver_name, &options.node_name)
            .keeping(options.keep_finished.into())
            .bearing(options.forbidden_timeout.into()),
        api: claims,
        calls: calls.clone(),
        warnings: warnings.clone(),
        clock: options.clock,
    };

    let endpoints = tokio::select! {
        opened = Endpoints::open(&options, calls, words) => opened?,
        () = stop.cancelled() => return Ok(()),
    };
    let keeping = keeper::keep(
        Transitions::new(&options),
        Arc::clone(&board),
        transitions,
        situations,
    );
    let keeping = tokio::spawn(keeping);
    let warning = tokio::spawn(keeper::warn_people(board, warned));
    let claiming = tokio::spawn(claim.work(claiming));

    let door = Door::new(transitions::identity(&options), transitions::lengths(&options));
    let tells = Tells {
        demands,
        warnings,
        situation,
        registration,
        alone,
        turned,
        claimer,
        look_back,
    };
    let hears = Hears {
        events,
        calls: inbox,
        words: heard,
        standing,
        stop,
    };
    let ended = Worker::new(&options, door, endpoints, tells).work(hears).await;
    keeping.abort();
    claiming.abort();
    if timeout(WARNED_WITHIN, warning).await.is_err() {
        tracing::warn!("the last warnings could not be emitted as Events in time");
    }
    ended
}
