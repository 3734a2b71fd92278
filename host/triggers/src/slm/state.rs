//! The trigger's state: the events of this node, the requests sent to the driver, and their outcomes. It receives
//! changes and calls, and returns answers, commands and warnings; it does no I/O. It must not know sockets, nor read a
//! clock.

mod resuming;
mod stale_end;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use scupper_api::ClaimStatus;
use scupper_engine::{Intent, Outcome, Time};

use super::call::{Call, CallDecision, CallEffect, EventProgress, Identity, Reply, decide};
use super::deadline::{own_deadline, with_margin};
use super::lifecycle::{LifecycleChange, LifecycleEvent, valid_flags};
use crate::{DrainCommand, DrainReport, DriverState, ResumePoint, TriggerRequest};

/// The trigger's name in reports.
const TRIGGER: &str = scupper_engine::Trigger::LifecycleEvent.name();

/// An output to pass on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SlmOutput {
    Command(DrainCommand),
    Warn {
        reason: &'static str,
        message: String,
    },
    /// The event fails because of its content, before anything begins.
    Refused {
        event: String,
        why: String,
    },
}

/// The trigger's state.
pub(super) struct SlmState {
    identity: Identity,
    /// `spec.sla` of our own transitions, by name.
    slas: BTreeMap<String, Duration>,
    events: BTreeMap<String, TrackedEvent>,
    /// The watch has delivered its first full list.
    listed: bool,
    active: Option<ActiveRequest>,
    driver_state: DriverState,
    resume_point: Option<ResumePoint>,
    /// Another instance of this driver may still be running, so nothing begins yet.
    paused: bool,
    /// Another instance that the kubelet calls is running, or was a moment ago.
    has_predecessor: bool,
    stopping: bool,
    outputs: VecDeque<SlmOutput>,
}

/// A known event.
struct TrackedEvent {
    event: LifecycleEvent,
    /// When this process first saw it claimed.
    claimed: Option<Time>,
    /// The kubelet has called this process, or a previous one, for it.
    called: bool,
    /// It was reported that the driver is busy with something else.
    reported_busy: bool,
    outcome: Option<Outcome>,
    /// The deadline that another process gave the drain: the time that its flags ask for began there.
    given: Option<Time>,
}

/// A request that the driver has received and not ended.
struct ActiveRequest {
    id: String,
    deadline: Option<Time>,
    /// The driver has reported that it runs the request.
    accepted: bool,
    /// The event ended or was withdrawn, and the driver was notified.
    withdrawn: bool,
}

impl SlmState {
    pub(super) fn new(identity: Identity, slas: BTreeMap<String, Duration>) -> Self {
        Self {
            identity,
            slas,
            events: BTreeMap::new(),
            listed: false,
            active: None,
            driver_state: DriverState::Idle,
            resume_point: None,
            paused: false,
            has_predecessor: false,
            stopping: false,
            outputs: VecDeque::new(),
        }
    }

    /// Returns the next output.
    pub(super) fn poll_output(&mut self) -> Option<SlmOutput> {
        self.outputs.pop_front()
    }

    /// Begins no further requests.
    pub(super) fn stop(&mut self) {
        self.stopping = true;
    }

    /// True if an event of ours is claimed or the driver runs a request: connections and transitions then stay as they
    /// are.
    pub(super) fn is_busy(&self) -> bool {
        self.any(&ClaimStatus::Claimed) || self.active.is_some()
    }

    /// True if an event of ours waits for the kubelet's claim.
    pub(super) fn has_pending_event(&self) -> bool {
        self.any(&ClaimStatus::Pending)
    }

    fn any(&self, claim: &ClaimStatus) -> bool {
        self.events
            .values()
            .any(|known| known.event.claim == *claim && self.identity.owns(&known.event))
    }

    /// Handles a call of the kubelet.
    pub(super) fn handle_call(&mut self, call: &Call, now: Time) -> CallDecision {
        let uid = self.uid_of(&call.event);
        let known = uid.as_ref().and_then(|uid| self.events.get(uid));
        let progress = known.map_or(EventProgress::NotBegun, |known| self.progress(known));
        let is_busy = progress == EventProgress::DriverBusy;
        let decision = decide(&self.identity, call, known.map(|known| &known.event), progress);
        if let Some(uid) = uid.as_ref().filter(|_| is_busy) {
            self.report_busy(uid);
        }
        if let (Some(uid), CallDecision::Answer(_, act)) = (uid, &decision) {
            if let Some(known) = self.events.get_mut(&uid) {
                if let (false, Some(why)) = (known.called, flags_problem(&known.event, &decision)) {
                    let event = known.event.name.clone();
                    self.outputs.push_back(SlmOutput::Refused { event, why });
                }
                known.called = true;
            }
            match act {
                Some(CallEffect::Begin(intent)) => self.begin(&uid, *intent),
                Some(CallEffect::Expire) => self.set_deadline(&uid, Some(now)),
                None => {}
            }
        }
        decision
    }

    /// A kubelet has claimed an event that must wait. Only the kubelet could move the event's time limit, and does not.
    fn report_busy(&mut self, uid: &str) {
        let what = match &self.driver_state {
            DriverState::Running { what, .. } => what.as_str(),
            DriverState::Idle => "another LifecycleEvent",
        };
        let Some(known) = self.events.get_mut(uid).filter(|known| !known.reported_busy) else {
            return;
        };
        known.reported_busy = true;
        let limit = if known.event.sla.is_some() {
            "; its time limit runs"
        } else {
            ""
        };
        self.outputs.push_back(SlmOutput::Warn {
            reason: "LifecycleEventWaits",
            message: format!(
                "LifecycleEvent {} waits until {what} has ended{limit}",
                known.event.name
            ),
        });
    }

    /// Handles a change from the watch of events.
    pub(super) fn handle_change(&mut self, change: LifecycleChange, now: Time) {
        match change {
            LifecycleChange::Applied(event) => self.apply(event, now),
            LifecycleChange::Deleted(uid) => self.forget(&uid),
            LifecycleChange::Listed(events) => {
                let gone = |uid: &&String| events.iter().all(|event| event.uid != **uid);
                let gone: Vec<_> = self.events.keys().filter(gone).cloned().collect();
                for uid in gone {
                    self.forget(&uid);
                }
                for event in events {
                    self.apply(event, now);
                }
                self.listed = true;
            }
        }
        self.drop_missing_resume_point();
    }

    /// Handles a change of the driver's activity. A request that it no longer has was dropped without a report, such as
    /// one that was lost while it waited.
    pub(super) fn handle_driver_state(&mut self, driver_state: DriverState) {
        match &driver_state {
            DriverState::Idle => {
                self.active.take_if(|active| active.accepted || active.withdrawn);
            }
            DriverState::Running { id, .. } => {
                let other =
                    |active: &mut ActiveRequest| active.id != *id && (active.accepted || active.withdrawn);
                self.active.take_if(other);
                if let Some(active) = self.active.as_mut().filter(|active| active.id == *id) {
                    active.accepted = true;
                }
            }
        }
        self.driver_state = driver_state;
    }

    /// Handles a report about a drain of any trigger: only the end of one counts here.
    pub(super) fn handle_report(&mut self, report: DrainReport) {
        let DrainReport::Ended { id, outcome, .. } = report else {
            return;
        };
        self.active.take_if(|active| active.id == id);
        if let (Some(known), Some(outcome)) = (self.events.get_mut(&id), outcome) {
            known.outcome = Some(outcome);
        }
    }

    /// Returns the newest event of that name: the deletion of an older one may have been missed.
    fn uid_of(&self, name: &str) -> Option<String> {
        let named = || self.events.values().filter(|known| known.event.name == name);
        let claimed = named().find(|known| known.event.claim == ClaimStatus::Claimed);
        claimed
            .or_else(|| named().next())
            .map(|known| known.event.uid.clone())
    }

    fn progress<'a>(&self, known: &'a TrackedEvent) -> EventProgress<'a> {
        if let Some(outcome) = &known.outcome {
            return EventProgress::Ended(outcome);
        }
        let uid = &known.event.uid;
        let working = matches!(&self.driver_state, DriverState::Running { id, .. } if id == uid);
        match &self.active {
            _ if self.stopping || self.paused => EventProgress::HandingOver,
            Some(active) if active.id == *uid => EventProgress::Running,
            Some(_) => EventProgress::DriverBusy,
            None if matches!(self.driver_state, DriverState::Running { .. }) && !working => {
                EventProgress::DriverBusy
            }
            None => EventProgress::NotBegun,
        }
    }

    fn apply(&mut self, mut event: LifecycleEvent, now: Time) {
        let uid = event.uid.clone();
        let before = self.events.remove(&uid);
        self.keep_flags(&mut event, before.as_ref());
        let remembered = self
            .resume_point
            .as_ref()
            .is_some_and(|resume_point| resume_point.id == uid);
        let claimed = match &before {
            Some(TrackedEvent {
                claimed: Some(first), ..
            }) => Some(*first),
            _ => (event.claim == ClaimStatus::Claimed).then_some(now),
        };
        let was_alive = before
            .as_ref()
            .is_some_and(|known| !known.event.claim.is_terminal());
        let reported_busy = before.as_ref().is_some_and(|known| known.reported_busy);
        let given = before.as_ref().and_then(|known| known.given);
        let (called, outcome) = before.map_or((false, None), |known| (known.called, known.outcome));
        let known = TrackedEvent {
            event,
            claimed,
            // While another instance exists, the kubelet calls that one.
            called: called || remembered || self.has_predecessor,
            reported_busy,
            outcome,
            given,
        };
        self.warn_of_stale_end(&known, was_alive);
        self.events.insert(uid.clone(), known);
        self.resume_event(&uid);
        self.update_active(&uid);
    }

    /// A drain that has begun keeps the flags that it began with: a configuration that was read meanwhile may allow fewer.
    fn keep_flags(&self, event: &mut LifecycleEvent, before: Option<&TrackedEvent>) {
        let has_begun = self.active.as_ref().is_some_and(|active| active.id == event.uid);
        let known = before.and_then(|before| before.event.flags.as_ref());
        if let (true, Some(Err(_)), Some(Ok(flags))) = (has_begun, &event.flags, known) {
            event.flags = Some(Ok(flags.clone()));
        }
    }

    /// Applies a changed event to the active request.
    fn update_active(&mut self, uid: &str) {
        let Some(known) = self.events.get(uid) else {
            return;
        };
        let Some(active) = self
            .active
            .as_mut()
            .filter(|active| active.id == uid && !active.withdrawn)
        else {
            return;
        };
        let event = &known.event;
        let id = uid.to_owned();
        if event.claim.is_terminal() {
            active.withdrawn = true;
            let reason = format!(
                "LifecycleEvent {} has ended: {}",
                event.name,
                event.claim.as_str()
            );
            self.outputs
                .push_back(SlmOutput::Command(DrainCommand::Lost { id, reason }));
        } else if event.deleting {
            active.withdrawn = true;
            let reason = format!("LifecycleEvent {} was deleted", event.name);
            self.outputs
                .push_back(SlmOutput::Command(DrainCommand::Cancel { id, reason }));
        } else {
            let deadline = self.deadline_of(uid);
            self.set_deadline(uid, deadline);
        }
    }

    fn forget(&mut self, uid: &str) {
        let Some(known) = self.events.remove(uid) else {
            return;
        };
        if let Some(active) = self
            .active
            .as_mut()
            .filter(|active| active.id == uid && !active.withdrawn)
        {
            active.withdrawn = true;
            let reason = format!("LifecycleEvent {} is gone", known.event.name);
            self.outputs.push_back(SlmOutput::Command(DrainCommand::Cancel {
                id: uid.to_owned(),
                reason,
            }));
        }
    }

    fn deadline_of(&self, uid: &str) -> Option<Time> {
        let known = self.events.get(uid)?;
        let claimed = known.claimed?;
        let wanted = valid_flags(&known.event).and_then(|flags| flags.timeout);
        let length = match wanted {
            Some(wanted) => Some(with_margin(wanted)),
            None => self.slas.get(&known.event.transition).copied(),
        };
        let given = known.event.sla.map(|sla| own_deadline(sla, length, claimed));
        let wanted = wanted.map(|wanted| {
            known
                .given
                .map_or(claimed + wanted, |given| given.min(claimed + wanted))
        });
        given.into_iter().chain(wanted).min()
    }

    fn set_deadline(&mut self, uid: &str, deadline: Option<Time>) {
        let changed = |active: &&mut ActiveRequest| active.id == uid && active.deadline != deadline;
        let Some(active) = self.active.as_mut().filter(changed) else {
            return;
        };
        active.deadline = deadline;
        self.outputs.push_back(SlmOutput::Command(DrainCommand::Deadline {
            id: uid.to_owned(),
            deadline,
        }));
    }

    fn begin(&mut self, uid: &str, intent: Intent) {
        let deadline = self.deadline_of(uid);
        let Some(known) = self.events.get(uid) else {
            return;
        };
        let request = TriggerRequest {
            id: uid.to_owned(),
            name: known.event.name.clone(),
            trigger: TRIGGER.to_owned(),
            intent,
            deadline,
            flags: valid_flags(&known.event).cloned(),
            only_pods: None,
        };
        let accepted = matches!(&self.driver_state, DriverState::Running { id, .. } if id == uid);
        self.active = Some(ActiveRequest {
            id: uid.to_owned(),
            deadline,
            accepted,
            withdrawn: false,
        });
        self.outputs
            .push_back(SlmOutput::Command(DrainCommand::Begin(request)));
    }
}

/// Returns the problem with the event's flags that the decision reports.
fn flags_problem(event: &LifecycleEvent, decision: &CallDecision) -> Option<String> {
    let Some(Err(problem)) = event.flags.as_ref() else {
        return None;
    };
    let reported = matches!(decision, CallDecision::Answer(Reply::Error(why), _) if why == problem);
    reported.then(|| problem.clone())
}

#[cfg(test)]
mod tests;
