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
/// Why the trigger withdraws a drain.
pub(super) const UNCORDONED: &str = "the node was uncordoned";
pub(super) const UNLABELLED: &str = "the label that asked for it was taken away";
/// Why an uncordon is withdrawn.
const CORDONED_AGAIN: &str = "the node was cordoned again";

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
    /// Its conditions say that an earlier drain by its cordon has ended without success.
    pub tried: bool,
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
    /// A drain of this node has succeeded since its last uncordon, well or badly as that ended.
    drained: bool,
    /// A drain of this node has succeeded, and no uncordon has reversed all of it.
    to_reverse: bool,
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
            to_reverse: false,
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
        let own = self.active.take_if(|active| active.id == id);
        let is_own_uncordon = own.as_ref().is_some_and(|own| own.intent == Intent::Uncordon);
        // Of the node's other pods, a partial drain says nothing. A cordon that an uncordon of this trigger kept is newer.
        if let Some(outcome) = outcome.as_ref().filter(|_| !partial && !is_own_uncordon) {
            self.ended(outcome);
        }
        if let Some(own) = own {
            self.own_ended(&own, outcome.as_ref());
        }
    }

    /// A request of this trigger is over. However an uncordon ended, the node has taken pods since it was drained. What it did
    /// not reverse, the next one does.
    fn own_ended(&mut self, own: &ActiveRequest, outcome: Option<&Outcome>) {
        match own.intent {
            Intent::Uncordon => {
                self.drained = false;
                self.to_reverse &= !matches!(outcome, Some(Outcome::Uncordoned { .. }));
            }
            Intent::Drain => self.cordon_handled |= !own.withdrawn && outcome != Some(&Outcome::Drained),
        }
    }

    /// Records how a drain or an uncordon ended, whichever trigger requested it: that decides what the next cordon or
    /// uncordon means.
    fn ended(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Drained => {
                self.drained = true;
                self.to_reverse = true;
                self.uncordon_handled = false;
            }
            Outcome::Uncordoned { cordon_kept } => {
                self.drained = false;
                self.to_reverse = false;
                self.uncordon_handled = true;
                // The uncordon kept a cordon made elsewhere: that cordon requests no second drain.
                self.cordon_handled = *cordon_kept;
            }
            _ => {}
        }
    }

    /// Forgets a request that the driver dropped without a report, such as one that was lost while it waited.
    fn forget_active(&mut self, gone: impl FnOnce(&ActiveRequest) -> bool) {
        if let Some(lost) = self.active.take_if(|active| gone(active)) {
            self.own_ended(&lost, None);
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
            Intent::Drain if !node.cordoned => UNCORDONED,
            Intent::Drain if !node.drains_on_cordon => UNLABELLED,
            Intent::Uncordon if node.cordoned => CORDONED_AGAIN,
            Intent::Drain | Intent::Uncordon => return,
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
            && (drained || self.to_reverse || node.to_undo)
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
        // Only of the cordon that a starting driver finds: a later one is a new request.
        self.cordon_handled |= !resume_checked && node.cordoned && node.tried;
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
            Intent::Uncordon => CORDONED_AGAIN,
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
