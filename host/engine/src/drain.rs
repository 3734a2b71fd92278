//! One drain of one node: the state machine behind the five verbs.

use alloc::vec::Vec;

use crate::{Checkpoint, Command, Event, Notice, Outcome, Phase, PodRef, Reason, Request, Time};

/// One drain (or uncordon) of one node.
#[derive(Debug)]
pub struct Drain {
    request: Request,
}

impl Drain {
    /// A drain that begins now. It first waits for [`Event::Node`], [`Event::Pods`] and [`Event::Budgets`].
    pub fn new(_now: Time, request: Request) -> Self {
        Self { request }
    }

    /// A drain that goes on where a checkpoint says it was.
    pub fn resume(_now: Time, request: Request, _checkpoint: Checkpoint) -> Self {
        Self { request }
    }

    /// Something happened.
    pub fn handle_event(&mut self, _now: Time, _event: Event) {}

    /// The time that [`poll_timeout`](Self::poll_timeout) named has come. Harmless when called early.
    pub fn handle_timeout(&mut self, _now: Time) {}

    /// The next thing to do.
    pub fn poll_command(&mut self) -> Option<Command> {
        None
    }

    /// When [`handle_timeout`](Self::handle_timeout) must be called, if nothing happens before.
    pub fn poll_timeout(&self) -> Option<Time> {
        None
    }

    /// The next thing to tell.
    pub fn poll_notice(&mut self) -> Option<Notice> {
        None
    }

    /// What was asked for.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Where it stands.
    pub fn phase(&self) -> Phase {
        Phase::Planning
    }

    /// How it ended, once it has.
    pub fn outcome(&self) -> Option<&Outcome> {
        None
    }

    /// Every pod that is still on the node, and why.
    pub fn waiting(&self) -> Vec<(PodRef, Reason)> {
        Vec::new()
    }
}
