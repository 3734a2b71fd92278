//! Decides when a cordon requests a drain, and when an uncordon requests that the node returns to service. It must not
//! read a clock or do I/O.

use std::collections::VecDeque;
use std::time::Duration;

use scupper_engine::{Intent, Outcome, Time};

use crate::{DrainCommand, DrainReport, DriverChange, DriverState, ResumePoint, TriggerRequest};

/// The label with which a cordon requests a drain, and an uncordon the return to service: its value must be `true`.
pub const LABEL: &str = "scupper.dev/drain-on-cordon";
/// The label with which only an uncordon requests something: its value must be `true`. For nodes that another program
/// cordons before it says which of their pods must leave.
pub const UNCORDON_LABEL: &str = "scupper.dev/undo-on-uncordon";
/// The trigger's name in reports and checkpoints.
pub const TRIGGER: &str = scupper_engine::Trigger::Cordon.name();

/// The facts about the node that this trigger needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFacts {
    /// Its UID.
    pub uid: String,
    /// Its label says that a cordon drains it.
    pub drains_on_cordon: bool,
    /// Its label says that an uncordon returns it to service.
    pub undoes_on_uncordon: bool,
    /// It is cordoned.
    pub cordoned: bool,
    /// The driver itself made the cordon.
    pub own_cordon: bool,
    /// The node's condition `Drained` is True.
    pub drained: bool,
    /// A drain of some of its pods has ended well, and policies have something to undo at the uncordon.
    pub to_undo: bool,
    /// An unfinished request of this trigger, from the checkpoint on the node.
    pub resume_point: Option<ResumePoint>,
}

impl NodeFacts {
    /// A cordon from elsewhere, on a node with the label, that has not been drained yet.
    const fn requests_drain(&self) -> bool {
        self.drains_on_cordon && self.cordoned && !self.own_cordon
    }

    /// An uncordon returns it to service.
    const fn reverses_drains(&self) -> bool {
        self.drains_on_cordon || self.undoes_on_uncordon
    }
}

/// Time limits of this trigger's requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct CordonLimits {
    pub(super) drain: Option<Duration>,
    pub(super) uncordon: Duration,
}

/// A request that the driver has received and not ended.
#[derive(Debug)]
struct ActiveRequest {
    id: String,
    intent: Intent,
    /// The driver has reported that it runs the request.
    accepted: bool,
    /// The request was withdrawn.
    withdrawn: bool,
}

impl ActiveRequest {
    /// A drain that was not withdrawn.
    fn was_attempted(&self) -> bool {
        self.intent == Intent::Drain && !self.withdrawn
    }
}

/// The trigger's state.
#[derive(Debug)]
pub(super) struct CordonState {
    name: String,
    limits: CordonLimits,
    driver_state: DriverState,
    active: Option<ActiveRequest>,
    /// The checkpoint of a previous process was already examined.
    resume_checked: bool,
    /// This cordon is handled: it requests nothing more.
    cordon_handled: bool,
    /// A drain of this node has succeeded since its last uncordon.
    drained: bool,
    /// This uncordon is handled.
    uncordon_handled: bool,
    commands: VecDeque<DrainCommand>,
}

impl CordonState {
    pub(super) fn new(node: &str, limits: CordonLimits) -> Self {
        Self {
            name: node.to_owned(),
            limits,
            driver_state: DriverState::Idle,
            active: None,
            resume_checked: false,
            cordon_handled: false,
            drained: false,
            uncordon_handled: false,
            commands: VecDeque::new(),
        }
    }

    pub(super) fn poll_command(&mut self) -> Option<DrainCommand> {
        self.commands.pop_front()
    }

    /// Handles changes of the driver, in their order.
    pub(super) fn handle_driver_changes(&mut self, changes: Vec<DriverChange>) {
        for change in changes {
            match change {
                DriverChange::Report(report) => self.handle_report(report),
                DriverChange::State(driver_state) => self.handle_driver_state(driver_state),
            }
        }
    }

    /// Handles a change of the driver's activity.
    fn handle_driver_state(&mut self, driver_state: DriverState) {
        match &driver_state {
            DriverState::Idle => self.forget_active(|active| active.accepted || active.withdrawn),
            DriverState::Running { id, .. } => {
                if let Some(active) = self.active.as_mut().filter(|active| active.id == *id) {
                    active.accepted = true;
                }
                self.forget_active(|active| active.id != *id && (active.accepted || active.withdrawn));
            }
        }
        self.driver_state = driver_state;
    }

    /// Handles a report about a drain of any trigger: only the end of one counts here.
    fn handle_report(&mut self, report: DrainReport) {
        let DrainReport::Ended { id, outcome, partial } = report else {
            return;
        };
        // Of the node's other pods, a partial drain says nothing.
        if let Some(outcome) = outcome.as_ref().filter(|_| !partial) {
            self.ended(outcome);
        }
        let own = self.active.take_if(|active| active.id == id);
        if own.is_some_and(|own| own.was_attempted()) && outcome != Some(Outcome::Drained) {
            self.cordon_handled = true;
        }
    }

    /// Records how a drain or an uncordon ended, whichever trigger requested it: that decides what the next cordon or
    /// uncordon means.
    fn ended(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Drained => {
                self.drained = true;
                self.uncordon_handled = false;
            }
            Outcome::Uncordoned { cordon_kept } => {
                self.drained = false;
                self.uncordon_handled = true;
                // The uncordon kept a cordon made elsewhere: that cordon requests no second drain.
                self.cordon_handled = *cordon_kept;
            }
            _ => {}
        }
    }

    /// Forgets a request that the driver dropped without a report, such as one that was lost while it waited.
    fn forget_active(&mut self, gone: impl FnOnce(&ActiveRequest) -> bool) {
        let lost = self.active.take_if(|active| gone(active));
        if lost.is_some_and(|lost| lost.was_attempted()) {
            self.cordon_handled = true;
        }
    }

    /// Handles a change of the node. A request that the node no longer asks for is withdrawn at once.
    pub(super) fn handle_node(&mut self, node: &NodeFacts) {
        if node.cordoned {
            self.uncordon_handled = false;
        } else {
            self.cordon_handled = false;
        }
        let Some(active) = self.active.as_mut().filter(|active| !active.withdrawn) else {
            return;
        };
        let reason = match active.intent {
            Intent::Drain if !node.cordoned => "the node was uncordoned",
            Intent::Drain if !node.drains_on_cordon => "the label that asked for it was taken away",
            _ => return,
        };
        active.withdrawn = true;
        self.commands.push_back(DrainCommand::Cancel {
            id: active.id.clone(),
            reason: reason.to_owned(),
        });
    }

    /// True if this node calls for a new request.
    pub(super) fn wants(&self, node: &NodeFacts) -> bool {
        !self.resume_checked || self.wanted_intent(node).is_some()
    }

    fn wanted_intent(&self, node: &NodeFacts) -> Option<Intent> {
        let busy = self.active.is_some() || matches!(self.driver_state, DriverState::Running { .. });
        if busy {
            return None;
        }
        let drained = self.drained || node.drained;
        if node.requests_drain() && !drained && !self.cordon_handled {
            Some(Intent::Drain)
        } else if node.reverses_drains()
            && !node.cordoned
            && (drained || node.to_undo)
            && !self.uncordon_handled
        {
            Some(Intent::Uncordon)
        } else {
            None
        }
    }

    /// Starts the request that the node calls for. The caller has read the node since the driver last reported.
    pub(super) fn begin(&mut self, node: &NodeFacts, now: Time) {
        let resume_checked = std::mem::replace(&mut self.resume_checked, true);
        if let Some(resume_point) = node.resume_point.clone().filter(|_| !resume_checked) {
            self.restart(resume_point, node);
            return;
        }
        let Some(intent) = self.wanted_intent(node) else {
            return;
        };
        let (verb, limit) = match intent {
            Intent::Drain => ("cordon", self.limits.drain),
            Intent::Uncordon => ("uncordon", Some(self.limits.uncordon)),
        };
        self.send_request(TriggerRequest {
            id: format!("{verb}-{}-{}", node.uid, now.as_millis()),
            name: format!("{verb}-{}", self.name),
            trigger: TRIGGER.to_owned(),
            intent,
            deadline: limit.map(|limit| now + limit),
            flags: None,
            only_pods: None,
        });
    }

    /// Resumes the request of a previous process if the node still asks for it.
    fn restart(&mut self, resume_point: ResumePoint, node: &NodeFacts) {
        let ResumePoint {
            id,
            name,
            intent,
            deadline,
            ..
        } = resume_point;
        let wanted = match intent {
            Intent::Drain => node.requests_drain(),
            Intent::Uncordon => !node.cordoned,
        };
        if wanted {
            self.send_request(TriggerRequest {
                id,
                name,
                trigger: TRIGGER.to_owned(),
                intent,
                deadline,
                flags: None,
                only_pods: None,
            });
            return;
        }
        let reason = match intent {
            Intent::Drain => "the node does not ask for it any more",
            Intent::Uncordon => "the node was cordoned again",
        };
        self.commands.push_back(DrainCommand::Lost {
            id,
            reason: reason.to_owned(),
        });
    }

    fn send_request(&mut self, request: TriggerRequest) {
        if request.intent == Intent::Uncordon {
            self.uncordon_handled = true;
        }
        self.active = Some(ActiveRequest {
            id: request.id.clone(),
            intent: request.intent,
            accepted: false,
            withdrawn: false,
        });
        self.commands.push_back(DrainCommand::Begin(request));
    }
}

#[cfg(test)]
mod tests;
