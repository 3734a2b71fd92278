//! One LifecycleEvent, from when it is made to its end.

use std::time::Duration;

use futures::{Stream, StreamExt as _};
use scupper_api::{ClaimStatus, LifecycleEvent, LifecycleTransition};
use scupper_engine::{Checkpoint, Intent, Uid};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::create::HandOver;
use super::deadline_limit::DeadlineLimit;
use super::driver_findings::DriverFindings;
use super::event_presence::{EventPresence, Presence};
use super::queue_wait::QueueWait;
use super::result::{EventResult, node_left, policy_messages, result_and_events};
use super::status_diff::StatusDiff;
use super::unreported_end::UnreportedEnd;
use super::{HandOverEnd, HandOverError};
use crate::driver_pods;
use scupper_report::{FollowEvent, LeaseHolder, NodeStatus};
use scupper_runner::pre_flight::RefusedSince;

/// How often to read what a watch may not show.
const LOOK: Duration = Duration::from_secs(10);
/// How often to check grace periods, because a pod may outlive its own without any change that a watch shows; and how often
/// to try again what the API server does not do.
const TICK: Duration = Duration::from_secs(1);
/// After so long without a claim the command says whom it waits for.
const SILENCE: Duration = Duration::from_secs(2);
/// How long a driver may take to release what was taken back, and the API server to delete it.
const FAREWELL: Duration = Duration::from_secs(60);
/// An API server that restarts refuses for a while what it granted before.
const REFUSED: Duration = Duration::from_secs(60);
/// How long after the drain's own deadline the driver may say so.
const LATE: Duration = Duration::from_secs(60);
/// What is still on its way at the end comes within this, and without a longer pause than the second.
const LINGER: Duration = Duration::from_secs(1);
const QUIET: Duration = Duration::from_millis(150);

/// The state of the LifecycleEvent.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ClaimStage {
    /// No driver has claimed it.
    Requested,
    /// The driver drains.
    Taken,
    /// It was taken back.
    TakenBack { end: HandOverEnd, was_taken: bool },
}

/// The LifecycleEvent to follow.
pub(super) struct FollowedEvent {
    pub(super) event: LifecycleEvent,
    /// A driver was at it when the command came: what is there already is told, and its limits are those of its own request.
    pub(super) is_joined: bool,
}

/// Follows one LifecycleEvent.
pub(super) struct Follower<'a> {
    hand_over: HandOver<'a>,
    node: &'a str,
    event: LifecycleEvent,
    is_joined: bool,
    diff: StatusDiff,
    limit: DeadlineLimit<'a>,
    stage: ClaimStage,
    presence: EventPresence,
    /// When to read the LifecycleEvent itself.
    look: Instant,
    /// Since when the API server refuses that.
    refused: RefusedSince,
    timer: Option<Instant>,
    /// When to say that no driver has claimed it; `None`: it was said.
    silence: Option<Instant>,
    queue: QueueWait,
    findings: DriverFindings,
    unreported: UnreportedEnd,
    /// The node as it was seen last.
    last: Option<NodeStatus>,
    /// The end of the LifecycleEvent. It is reported after the changes of pods that the other watch still brings.
    last_state: Option<FollowEvent>,
}

impl<'a> Follower<'a> {
    pub(super) fn new(
        hand_over: HandOver<'a>,
        node: &'a str,
        followed: FollowedEvent,
        transition: &'a LifecycleTransition,
        first: Option<NodeStatus>,
    ) -> Self {
        let FollowedEvent { event, is_joined } = followed;
        let mut diff = StatusDiff::default();
        let options = hand_over.options;
        let is_drain = options.intent == Intent::Drain;
        let limit = DeadlineLimit::of(
            transition,
            (is_drain && !is_joined).then_some(options.timeout),
            options.clock.now(),
        );
        if let Some(first) = first.as_ref().filter(|_| !is_joined) {
            // The first status is not reported, except for what will block the pods.
            let before = diff.begin(&event, first, hand_over.options.clock.now());
            for seen in before
                .iter()
                .filter(|seen| matches!(seen, FollowEvent::NotReady { .. }))
            {
                (hand_over.report)(node, seen);
            }
        }
        Self {
            hand_over,
            node,
            event,
            is_joined,
            diff,
            limit,
            // Whoever joins never takes back what another has requested.
            stage: if is_joined {
                ClaimStage::Taken
            } else {
                ClaimStage::Requested
            },
            presence: EventPresence::default(),
            // Of a drain that is under way already, the driver may be gone already.
            look: Instant::now() + if is_joined { Duration::ZERO } else { LOOK },
            refused: RefusedSince::default(),
            timer: (!is_joined).then(|| Instant::now() + hand_over.options.claim_timeout),
            silence: (!is_joined).then(|| Instant::now() + SILENCE),
            queue: QueueWait::new(
                hand_over.lease_reader(),
                options.claim_timeout,
                options.timeout.filter(|_| is_drain && !is_joined),
            ),
            findings: DriverFindings::default(),
            unreported: UnreportedEnd::default(),
            last: first,
            last_state: None,
        }
    }

    /// Follows it to its end, or until the command stops.
    pub(super) async fn run(
        mut self,
        mut statuses: impl Stream<Item = NodeStatus> + Unpin,
    ) -> Result<HandOverEnd, HandOverError> {
        if let Some(there) = self.last.take_if(|_| self.is_joined)
            && let Some(last) = self.observe(&there)
        {
            return Ok(self.ended(last).await);
        }
        loop {
            let (look, timer, unreported) = (self.look, self.timer, self.unreported.due());
            tokio::select! {
                Some(status) = statuses.next() => if let Some(last) = self.observe(&status) {
                    self.observe_last_changes(&mut statuses).await;
                    return Ok(self.ended(last).await);
                },
                () = self.hand_over.left.cancelled(), if !matches!(self.stage, ClaimStage::TakenBack { .. }) => {
                    if self.stage == ClaimStage::Taken {
                        let is_driver_gone = self.queue.is_driver_gone();
                        self.report(&FollowEvent::Detached { is_driver_gone });
                        return Ok(HandOverEnd::Detached);
                    }
                    self.take_back(HandOverEnd::Cancelled, "the driver has not claimed it yet").await?;
                }
                () = sleep_until(look) => {
                    self.look = Instant::now() + LOOK;
                    self.look_ahead().await?;
                    if let Some(last) = self.read_event().await? {
                        self.observe_last_changes(&mut statuses).await;
                        return Ok(self.ended(last).await);
                    }
                }
                () = sleep_until(unreported.unwrap_or(look)), if unreported.is_some() => {
                    if let Some(last) = self.read_event().await? {
                        self.observe_last_changes(&mut statuses).await;
                        return Ok(self.ended(last).await);
                    }
                    if self.unreported.is_certain(&self.queue, self.node, &self.event.uid).await {
                        let state = self.unreported.state();
                        return Ok(self.ended(state).await);
                    }
                }
                () = sleep_until(self.findings.due().unwrap_or(look)), if self.findings.due().is_some() => {
                    let hand_over = self.hand_over;
                    let found = self.findings.look(hand_over.cluster, self.node, &self.event.name).await;
                    found.iter().for_each(|found| self.report(found));
                }
                () = sleep_until(self.silence.unwrap_or(look)), if self.is_unclaimed() => self.report_silence(),
                () = sleep(TICK), if self.is_pod_terminating() => self.report_progress(),
                () = sleep_until(timer.unwrap_or(look)), if timer.is_some() => {
                    if let Some(end) = self.overdue().await? {
                        return Ok(end);
                    }
                }
            }
        }
    }

    fn is_unclaimed(&self) -> bool {
        self.silence.is_some() && self.stage == ClaimStage::Requested && !self.diff.is_queued()
    }

    fn report_silence(&mut self) {
        self.silence = None;
        let pods = self.last.iter().flat_map(|last| &last.pods);
        let mut pods = pods.into_iter();
        let pod = pods.find(|pod| driver_pods::is_of_driver(pod));
        let pod = pod.map(|pod| (pod.id.clone(), pod.ready));
        let left = self
            .timer
            .map(|timer| timer.saturating_duration_since(Instant::now()));
        let left = left.unwrap_or_default();
        self.report(&FollowEvent::Unclaimed { pod, left });
    }

    fn report(&self, seen: &FollowEvent) {
        (self.hand_over.report)(self.node, seen);
    }

    fn report_changes(&mut self, status: &NodeStatus) {
        let now = self.hand_over.options.clock.now();
        let is_ours = |event: &&LifecycleEvent| event.uid == self.event.uid;
        let ours = status.lifecycle_events.iter().find(is_ours);
        let is_over = ours.is_some_and(|event| event.claim.is_terminal());
        for seen in self.diff.observe(&self.event, status, now) {
            match seen {
                FollowEvent::State { .. } if is_over => self.last_state = Some(seen),
                _ => {
                    if matches!(seen, FollowEvent::Planned { .. }) {
                        self.findings.planned();
                    }
                    self.report(&seen);
                }
            }
        }
        self.last = Some(status.clone());
    }

    fn is_pod_terminating(&self) -> bool {
        let pods = self.last.iter().flat_map(|last| &last.pods);
        pods.into_iter().any(|pod| pod.deletion.is_some())
    }

    /// The same node at a later time.
    fn report_progress(&mut self) {
        if let Some(last) = self.last.take() {
            self.report_changes(&last);
        }
    }

    /// Reports the pods that were not evicted, each with its reason, unless that was reported before.
    fn report_remaining(&mut self) {
        let now = self.hand_over.options.clock.now();
        let remaining = self.last.iter().flat_map(|last| last.remaining(now));
        let untold = remaining.filter(|(pod, _)| !self.diff.is_waiting(pod));
        let untold: Vec<_> = untold.map(|(pod, reason)| (pod.clone(), reason)).collect();
        for seen in self.diff.pods_wait(untold) {
            self.report(&seen);
        }
    }

    /// The other watch may still bring changes of the node from before the end.
    async fn observe_last_changes(&mut self, statuses: &mut (impl Stream<Item = NodeStatus> + Unpin)) {
        let until = Instant::now() + LINGER;
        while let Ok(Some(status)) = timeout_at(until.min(Instant::now() + QUIET), statuses.next()).await {
            self.report_changes(&status);
        }
    }

    /// What it was last, when it is over; that is nothing when it was not seen to end.
    fn observe(&mut self, status: &NodeStatus) -> Option<Option<String>> {
        let was_queued = self.diff.is_queued();
        self.report_changes(status);
        if was_queued && !self.diff.is_queued() && self.stage == ClaimStage::Requested {
            self.timer = Some(Instant::now() + self.hand_over.options.claim_timeout);
        }
        self.show(status);
        if self.stage == ClaimStage::Taken {
            self.unreported.observe(&self.event.uid, status);
        }
        match self.presence.observe(&self.event.name, status) {
            Presence::Here(event) => {
                if let Some(seen) = self.limit.observe(event) {
                    self.report(&seen);
                }
                let claim = event.claim.clone();
                self.is(&claim)
            }
            Presence::NotYet => None,
            // Only the event itself says so: a list that the API server refuses is empty.
            Presence::Gone => {
                self.look = Instant::now();
                None
            }
        }
    }

    /// In the live display.
    fn show(&self, status: &NodeStatus) {
        let Some(board) = &self.hand_over.options.board else {
            return;
        };
        let uid = Uid::new(self.event.uid.clone());
        match self.queue.is_driver_gone() {
            true => {
                let mut status = status.clone();
                status.lease_holder = LeaseHolder::gone();
                board.observe(&self.event.name, &uid, &status);
            }
            false => board.observe(&self.event.name, &uid, status),
        }
    }

    async fn read_event(&mut self) -> Result<Option<Option<String>>, HandOverError> {
        let found = match self.hand_over.cluster.stored_event(&self.event.name).await {
            Ok(found) => found,
            // A server that does not answer may answer another time.
            Err(error) if self.refused.may_pass(&error, REFUSED) => {
                tracing::debug!(%error, "the LifecycleEvent could not be looked at");
                return Ok(None);
            }
            Err(source) => {
                let event = self.event.name.clone();
                return Err(HandOverError::Follow { event, source });
            }
        };
        self.refused.end();
        match found {
            Some(found) if found.event.uid == self.event.uid => Ok(self.is(&found.event.claim)),
            _ => Ok(Some(None)),
        }
    }

    /// It is in this state.
    fn is(&mut self, status: &ClaimStatus) -> Option<Option<String>> {
        if status.is_terminal() {
            return Some(Some(status.as_str().to_owned()));
        }
        if *status != ClaimStatus::Pending {
            match &mut self.stage {
                stage @ ClaimStage::Requested => {
                    *stage = ClaimStage::Taken;
                    let wanted = self.hand_over.options.timeout;
                    self.timer = wanted.map(|wanted| Instant::now() + wanted + LATE);
                }
                ClaimStage::TakenBack { was_taken, .. } => *was_taken = true,
                ClaimStage::Taken => {}
            }
        }
        None
    }

    /// Withdraws a request that need not wait any longer for what is ahead of it. Says if the driver of this drain is gone.
    async fn look_ahead(&mut self) -> Result<(), HandOverError> {
        let mark = self.last.as_ref().and_then(|last| last.node.checkpoint.as_ref());
        let has_lease = mark.is_some_and(Checkpoint::is_under_way);
        let behind = self.diff.queued_behind().map(str::to_owned);
        let Some(behind) = behind.filter(|_| self.stage == ClaimStage::Requested) else {
            self.queue
                .look_at_driver(self.node, &self.event.uid, has_lease)
                .await;
            if let Some(last) = &self.last {
                self.show(last);
            }
            return Ok(());
        };
        let state = self.queue.look(self.node, has_lease).await;
        match state.withdrawal(&behind, self.node, &self.hand_over.options.driver) {
            Some((end, why)) => self.take_back(end, &why).await,
            None => Ok(()),
        }
    }

    /// The time of this stage is over.
    async fn overdue(&mut self) -> Result<Option<HandOverEnd>, HandOverError> {
        let within = self.hand_over.options.claim_timeout;
        match &self.stage {
            // Its driver is there, and at something else.
            ClaimStage::Requested if self.diff.is_queued() => self.timer = Some(Instant::now() + within),
            ClaimStage::Requested => {
                let (driver, node) = (&self.hand_over.options.driver, self.node);
                let verb = self.hand_over.options.intent.name();
                let why = format!(
                    "driver {driver} has not claimed it within {within:?}; to do it from here: scupper {verb} {node} --local"
                );
                self.take_back(HandOverEnd::NotTaken, &why).await?;
            }
            ClaimStage::Taken => {
                self.take_back(HandOverEnd::Deadline, "the driver exceeded the deadline")
                    .await?;
            }
            ClaimStage::TakenBack { end, .. } => {
                let message = format!(
                    "LifecycleEvent {} is deleted, and a finalizer still keeps it",
                    self.event.name
                );
                self.report(&FollowEvent::Ended {
                    outcome: "Cancelled".to_owned(),
                    message,
                    left: None,
                });
                return Ok(Some(end.clone()));
            }
        }
        Ok(None)
    }

    /// What stays is claimed by a driver that starts hours later, so an API server that fails is asked again.
    async fn take_back(&mut self, end: HandOverEnd, why: &str) -> Result<(), HandOverError> {
        let was_taken = self.stage == ClaimStage::Taken;
        self.stage = ClaimStage::TakenBack { end, was_taken };
        let until = Instant::now() + FAREWELL;
        let mut is_reported = false;
        while let Err(source) = self.hand_over.cluster.delete_event(&self.event).await {
            let may_pass = source.is_temporary() || source.is_forbidden();
            if !may_pass || Instant::now() >= until {
                return Err(HandOverError::Withdraw {
                    event: self.event.name.clone(),
                    node: self.node.to_owned(),
                    source,
                });
            }
            if !std::mem::replace(&mut is_reported, true) {
                tracing::warn!(error = %source, "{why}: the LifecycleEvent could not be withdrawn; trying for a minute");
            }
            sleep(TICK).await;
        }
        self.report(&FollowEvent::Withdrawn { why: why.to_owned() });
        self.timer = Some(Instant::now() + FAREWELL);
        Ok(())
    }

    async fn ended(mut self, last: Option<String>) -> HandOverEnd {
        if let Some(seen) = self.last_state.take() {
            self.report(&seen);
        }
        let was_begun =
            last.is_some() || !matches!(self.stage, ClaimStage::TakenBack { was_taken: false, .. });
        let reported = match &self.stage {
            ClaimStage::TakenBack {
                end,
                was_taken: false,
            } if last.is_none() => EventResult::untouched(end.clone()),
            stage => {
                let HandOver { cluster, .. } = self.hand_over;
                let (reported, notes) =
                    result_and_events(cluster, self.node, &self.event, last.as_deref()).await;
                let found = self.findings.news(&self.event.name, &notes);
                found.iter().for_each(|found| self.report(found));
                let since = self.event.created.unwrap_or_default();
                policy_messages(&notes, since).for_each(|said| self.report(&said));
                match stage {
                    ClaimStage::TakenBack { end, .. } if reported.end == HandOverEnd::Cancelled => {
                        EventResult {
                            end: end.clone(),
                            ..reported
                        }
                    }
                    _ => reported,
                }
            }
        };
        if matches!(
            reported.end,
            HandOverEnd::Failed | HandOverEnd::Policy | HandOverEnd::Deadline
        ) {
            self.report_remaining();
        }
        let is_drain = self.hand_over.options.intent == Intent::Drain;
        let stays = self.unreported.text(&self.event.name);
        let (cluster, is_done) = (self.hand_over.cluster, reported.end == HandOverEnd::Done);
        let left = match was_begun && is_drain {
            true => node_left(cluster, self.node, is_done, stays.is_some()).await,
            false => None,
        };
        let left: Vec<_> = left.into_iter().chain(stays).collect();
        self.report(&FollowEvent::Ended {
            outcome: reported.outcome,
            message: reported.message,
            left: (!left.is_empty()).then(|| left.join("; ")),
        });
        reported.end
    }
}
