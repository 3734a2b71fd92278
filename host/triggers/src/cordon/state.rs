//! When a cordon is a wish to drain, and when an uncordon is one to give the node back. It must not read a clock nor
//! do anything.

use std::collections::VecDeque;
use std::time::Duration;

use scupper_engine::{Intent, Outcome, Time};

use crate::{DrainCommand, DrainRequest, DriverState, ResumePoint};

/// The label that makes a cordon a wish: with the value `true`.
pub const LABEL: &str = "scupper.dev/drain-on-cordon";
/// Who asks, in reports and checkpoints.
pub const TRIGGER: &str = scupper_engine::Trigger::Cordon.name();

/// The node, as far as this door cares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFacts {
    /// Its UID.
    pub uid: String,
    /// The label asks for it.
    pub labelled: bool,
    /// It is cordoned.
    pub cordoned: bool,
    /// The cordon is ours.
    pub own_cordon: bool,
    /// Its condition says that it is drained.
    pub drained: bool,
    /// What of a wish of this door stands on it and is not over.
    pub resume_point: Option<ResumePoint>,
}

impl NodeFacts {
    /// Somebody else has cordoned it and wants it drained therefore.
    const fn requests_drain(&self) -> bool {
        self.labelled && self.cordoned && !self.own_cordon
    }
}

/// How long wishes of this door may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct CordonLimits {
    pub(super) drain: Option<Duration>,
    pub(super) uncordon: Duration,
}

/// What the driver was asked for by this door and has not ended.
#[derive(Debug)]
struct ActiveRequest {
    id: String,
    intent: Intent,
    /// The driver has been seen at it.
    accepted: bool,
    /// It was taken back.
    withdrawn: bool,
}

impl ActiveRequest {
    /// It was a drain, and nobody took it back.
    fn was_attempted(&self) -> bool {
        self.intent == Intent::Drain && !self.withdrawn
    }
}

/// The door's memory.
#[derive(Debug)]
pub(super) struct CordonState {
    name: String,
    limits: CordonLimits,
    driver_state: DriverState,
    active: Option<ActiveRequest>,
    /// What another process has left was looked for, after it had ended.
    resume_checked: bool,
    /// This cordon has been dealt with: it is no wish any more.
    cordon_handled: bool,
    /// A drain of this node has ended well since it was given back.
    drained: bool,
    /// This uncordon has been dealt with.
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

    /// The driver shows what it is at.
    pub(super) fn handle_driver_state(&mut self, driver_state: DriverState) {
        match &driver_state {
            DriverState::Idle => self.forget_active(|active| active.accepted || active.withdrawn),
            DriverState::Running { id } => {
                if let Some(active) = self.active.as_mut().filter(|active| active.id == *id) {
                    active.accepted = true;
                }
                self.forget_active(|active| active.id != *id && (active.accepted || active.withdrawn));
            }
            DriverState::Ended { id, outcome } => {
                self.ended(outcome);
                let own = self
                    .active
                    .take_if(|active| active.id == *id || active.accepted || active.withdrawn);
                if own.is_some_and(|own| own.was_attempted()) && *outcome != Outcome::Drained {
                    self.cordon_handled = true;
                }
            }
        }
        self.driver_state = driver_state;
    }

    /// Whoever asked for it: how a drain ends, and an uncordon, decides what the next cordon or uncordon means.
    fn ended(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Drained => {
                self.drained = true;
                self.uncordon_handled = false;
            }
            Outcome::Uncordoned { cordon_kept } => {
                self.drained = false;
                self.uncordon_handled = true;
                // Given back, although somebody's cordon stays: that cordon asks for no second drain.
                self.cordon_handled = *cordon_kept;
            }
            _ => {}
        }
    }

    /// It ended, and its end was not seen.
    fn forget_active(&mut self, gone: impl FnOnce(&ActiveRequest) -> bool) {
        let lost = self.active.take_if(|active| gone(active));
        if lost.is_some_and(|lost| lost.was_attempted()) {
            self.cordon_handled = true;
        }
    }

    /// The node is like this. What was begun and is not wanted any more is taken back at once.
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
            Intent::Drain if !node.labelled => "the label that asked for it was taken away",
            _ => return,
        };
        active.withdrawn = true;
        self.commands.push_back(DrainCommand::Cancel {
            id: active.id.clone(),
            reason: reason.to_owned(),
        });
    }

    /// Something is to be begun, if the node is like this.
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
        } else if node.labelled && !node.cordoned && drained && !self.uncordon_handled {
            Some(Intent::Uncordon)
        } else {
            None
        }
    }

    /// Begins what is to be begun. The node was looked at just now, since the driver showed what it is at.
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
        self.send_request(DrainRequest {
            id: format!("{verb}-{}-{}", node.uid, now.as_millis()),
            name: format!("{verb}-{}", self.name),
            trigger: TRIGGER.to_owned(),
            intent,
            deadline: limit.map(|limit| now + limit.into()),
            flags: None,
        });
    }

    /// What another process was at goes on if the node still asks for it.
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
            self.send_request(DrainRequest {
                id,
                name,
                trigger: TRIGGER.to_owned(),
                intent,
                deadline,
                flags: None,
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

    fn send_request(&mut self, request: DrainRequest) {
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
