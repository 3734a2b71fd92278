//! When a cordon is a wish to drain, and when an uncordon is one to give the node back. It must not read a clock nor
//! do anything.

use std::collections::VecDeque;
use std::time::Duration;

use scupper_engine::{Intent, Outcome, Time};

use crate::{Demand, Standing, Wish};

/// The label that makes a cordon a wish: with the value `true`.
pub const LABEL: &str = "scupper.dev/drain-on-cordon";
/// Who asks, in reports and checkpoints.
pub const TRIGGER: &str = "cordon";

/// The node, as far as this door cares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeView {
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
    pub left: Option<Left>,
}

impl NodeView {
    /// Somebody else has cordoned it and wants it drained therefore.
    const fn is_asking(&self) -> bool {
        self.labelled && self.cordoned && !self.own_cordon
    }
}

/// What another process of the driver was at for this door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The wish.
    pub id: String,
    /// What it is called by people.
    pub name: String,
    /// Drain or uncordon.
    pub intent: Intent,
    /// When it must have ended.
    pub deadline: Option<Time>,
}

/// How long wishes of this door may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) drain: Option<Duration>,
    pub(super) uncordon: Duration,
}

/// What the driver was asked for by this door and has not ended.
#[derive(Debug)]
struct Active {
    id: String,
    intent: Intent,
    /// The driver has been seen at it.
    taken: bool,
    /// It was taken back.
    over: bool,
}

impl Active {
    /// It was a drain, and nobody took it back.
    fn was_tried(&self) -> bool {
        self.intent == Intent::Drain && !self.over
    }
}

/// The door's memory.
#[derive(Debug)]
pub(super) struct Watch {
    name: String,
    limits: Limits,
    standing: Standing,
    active: Option<Active>,
    /// What another process has left was looked for, after it had ended.
    looked_back: bool,
    /// This cordon has been dealt with: it is no wish any more.
    dealt_with: bool,
    /// A drain of this node has ended well since it was given back.
    drained: bool,
    /// This uncordon has been dealt with.
    given_back: bool,
    demands: VecDeque<Demand>,
}

impl Watch {
    pub(super) fn new(node: &str, limits: Limits) -> Self {
        Self {
            name: node.to_owned(),
            limits,
            standing: Standing::Idle,
            active: None,
            looked_back: false,
            dealt_with: false,
            drained: false,
            given_back: false,
            demands: VecDeque::new(),
        }
    }

    pub(super) fn poll_demand(&mut self) -> Option<Demand> {
        self.demands.pop_front()
    }

    /// The driver shows what it is at.
    pub(super) fn handle_standing(&mut self, standing: Standing) {
        match &standing {
            Standing::Idle => self.lose_track(|active| active.taken || active.over),
            Standing::Working { id } => {
                if let Some(active) = self.active.as_mut().filter(|active| active.id == *id) {
                    active.taken = true;
                }
                self.lose_track(|active| active.id != *id && (active.taken || active.over));
            }
            Standing::Ended { id, outcome } => {
                self.ended(outcome);
                let own = self
                    .active
                    .take_if(|active| active.id == *id || active.taken || active.over);
                if own.is_some_and(|own| own.was_tried()) && *outcome != Outcome::Drained {
                    self.dealt_with = true;
                }
            }
        }
        self.standing = standing;
    }

    /// Whoever asked for it: how a drain ends, and an uncordon, decides what the next cordon or uncordon means.
    fn ended(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Drained => {
                self.drained = true;
                self.given_back = false;
            }
            Outcome::Uncordoned { cordon_kept } => {
                self.drained = false;
                self.given_back = true;
                // Given back, although somebody's cordon stays: that cordon asks for no second drain.
                self.dealt_with = *cordon_kept;
            }
            _ => {}
        }
    }

    /// It ended, and its end was not seen.
    fn lose_track(&mut self, gone: impl FnOnce(&Active) -> bool) {
        let lost = self.active.take_if(|active| gone(active));
        if lost.is_some_and(|lost| lost.was_tried()) {
            self.dealt_with = true;
        }
    }

    /// The node is like this. What was begun and is not wanted any more is taken back at once.
    pub(super) fn handle_node(&mut self, node: &NodeView) {
        if node.cordoned {
            self.given_back = false;
        } else {
            self.dealt_with = false;
        }
        let Some(active) = self.active.as_mut().filter(|active| !active.over) else {
            return;
        };
        let reason = match active.intent {
            Intent::Drain if !node.cordoned => "the node was uncordoned",
            Intent::Drain if !node.labelled => "the label that asked for it was taken away",
            _ => return,
        };
        active.over = true;
        self.demands.push_back(Demand::Cancel {
            id: active.id.clone(),
            reason: reason.to_owned(),
        });
    }

    /// Something is to be begun, if the node is like this.
    pub(super) fn wants(&self, node: &NodeView) -> bool {
        !self.looked_back || self.wish(node).is_some()
    }

    fn wish(&self, node: &NodeView) -> Option<Intent> {
        let busy = self.active.is_some() || matches!(self.standing, Standing::Working { .. });
        if busy {
            return None;
        }
        let drained = self.drained || node.drained;
        if node.is_asking() && !drained && !self.dealt_with {
            Some(Intent::Drain)
        } else if node.labelled && !node.cordoned && drained && !self.given_back {
            Some(Intent::Uncordon)
        } else {
            None
        }
    }

    /// Begins what is to be begun. The node was looked at just now, since the driver showed what it is at.
    pub(super) fn begin(&mut self, node: &NodeView, now: Time) {
        let looked_back = std::mem::replace(&mut self.looked_back, true);
        if let Some(left) = node.left.clone().filter(|_| !looked_back) {
            self.resume(left, node);
            return;
        }
        let Some(intent) = self.wish(node) else {
            return;
        };
        let (verb, limit) = match intent {
            Intent::Drain => ("cordon", self.limits.drain),
            Intent::Uncordon => ("uncordon", Some(self.limits.uncordon)),
        };
        self.ask(Wish {
            id: format!("{verb}-{}-{}", node.uid, now.as_millis()),
            name: format!("{verb}-{}", self.name),
            trigger: TRIGGER.to_owned(),
            intent,
            deadline: limit.map(|limit| now + limit.into()),
            flags: None,
        });
    }

    /// What another process was at goes on if the node still asks for it.
    fn resume(&mut self, left: Left, node: &NodeView) {
        let Left {
            id,
            name,
            intent,
            deadline,
        } = left;
        let wanted = match intent {
            Intent::Drain => node.is_asking(),
            Intent::Uncordon => !node.cordoned,
        };
        if wanted {
            self.ask(Wish {
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
        self.demands.push_back(Demand::Lost {
            id,
            reason: reason.to_owned(),
        });
    }

    fn ask(&mut self, wish: Wish) {
        if wish.intent == Intent::Uncordon {
            self.given_back = true;
        }
        self.active = Some(Active {
            id: wish.id.clone(),
            intent: wish.intent,
            taken: false,
            over: false,
        });
        self.demands.push_back(Demand::Begin(wish));
    }
}

#[cfg(test)]
mod tests;
