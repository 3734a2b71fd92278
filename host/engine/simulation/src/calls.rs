//! Every call of the engines of a world, so that a test can repeat them.

use std::collections::BTreeSet;

use scupper_engine::{Checkpoint, Command, Event, Request, Time, ToUndo};

/// One process's engine.
#[derive(Clone, Debug)]
pub struct Process {
    /// When it started.
    pub at: Time,
    /// Its request.
    pub request: Request,
    /// Where another process left the drain.
    pub checkpoint: Option<Checkpoint>,
    /// What happened, in order.
    pub steps: Vec<Step>,
    /// It was killed, perhaps before it had taken all commands.
    pub is_killed: bool,
}

/// A call of the engine.
#[derive(Clone, Debug)]
pub enum Step {
    /// What the Lease says.
    Recall(ToUndo, BTreeSet<String>),
    /// An event.
    Event(Time, Event),
    /// The end of a timer.
    Timeout(Time),
    /// It gave a command.
    Command(Command),
}

/// The processes of a world; `None`: no test needs them.
pub(crate) type ProcessCalls = Option<Vec<Process>>;

/// Adds a step to the last process.
pub(crate) fn add(calls: &mut ProcessCalls, step: impl FnOnce() -> Step) {
    if let Some(process) = calls.as_mut().and_then(|processes| processes.last_mut()) {
        process.steps.push(step());
    }
}
