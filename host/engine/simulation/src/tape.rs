//! All that the engines of a world were told and what they commanded, for whoever plays it again.

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
    /// It was told what the Lease says.
    Recall(ToUndo, BTreeSet<String>),
    /// It was told an event.
    Event(Time, Event),
    /// It was told that a timer has ended.
    Timeout(Time),
    /// It gave a command.
    Command(Command),
}

/// The processes of a world; `None`: nobody wants to know.
pub(crate) type Tape = Option<Vec<Process>>;

/// Adds a step to the last process.
pub(crate) fn add(tape: &mut Tape, step: impl FnOnce() -> Step) {
    if let Some(process) = tape.as_mut().and_then(|processes| processes.last_mut()) {
        process.steps.push(step());
    }
}
