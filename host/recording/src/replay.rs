//! Tells an engine what is recorded, and compares what it commands.

use std::fmt;

use scupper_common::text::one_line;
use scupper_engine::{Command, Drain, Event, HumanDuration, Notice, Time};
use serde_json::Value;

use crate::read::Recording;
use scupper_recorder::{Input, Turn};

/// The engine commanded the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// How many inputs it was given.
    pub inputs: usize,
    /// How many commands it gave.
    pub commands: usize,
}

/// The first turn in which the engine commanded something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its line in the recording.
    pub line: usize,
    /// When it was, after the start.
    pub at: Time,
    /// The start.
    pub started: Time,
    /// The inputs of the turn.
    pub inputs: Vec<Input<'static>>,
    /// The first command that differs, as it is recorded.
    pub recorded: Option<Command>,
    /// The first command that differs, as the engine gave it now.
    pub given: Option<Command>,
    /// The commands are the same, and the ends are not: the recorded one, and the one now.
    pub ends: Option<[String; 2]>,
}

/// Gives a new engine all recorded inputs at their times.
pub fn replay(recording: &Recording) -> Result<Replayed, Box<Difference>> {
    let mut ended = None;
    let replayed = replay_watched(recording, |_, drain| {
        while let Some(notice) = drain.poll_notice() {
            if let Notice::Finished { outcome, .. } = notice {
                ended = Some(outcome);
            }
        }
    })?;
    let Some(end) = &recording.end else {
        return Ok(replayed);
    };
    let text = |outcome: &str, text: &str| format!("{outcome}: {text}");
    let recorded = text(&end.outcome, &end.text);
    let given = ended.map_or_else(
        || "no end".to_owned(),
        |outcome| text(outcome.name(), &outcome.to_string()),
    );
    if recorded == given {
        return Ok(replayed);
    }
    Err(Box::new(Difference {
        line: recording.turns.last().map_or(1, |turn| turn.line) + 1,
        at: end.at,
        started: recording.header.at,
        inputs: Vec::new(),
        recorded: None,
        given: None,
        ends: Some([recorded, given]),
    }))
}

/// The same; `look` sees the engine after each turn.
pub(crate) fn replay_watched(
    recording: &Recording,
    mut look: impl FnMut(Time, &mut Drain),
) -> Result<Replayed, Box<Difference>> {
    let header = &recording.header;
    let request = header.request.clone();
    let mut drain = match &header.checkpoint {
        Some(checkpoint) => Drain::resume(header.at, request, checkpoint.clone()),
        None => Drain::new(header.at, request),
    };
    let mut replayed = Replayed {
        inputs: 0,
        commands: 0,
    };
    for turn in &recording.turns {
        for (at, input) in &turn.inputs {
            tell(&mut drain, *at, input);
        }
        replayed.inputs += turn.inputs.len();
        if let Some((recorded, given)) = differing(&mut drain, turn) {
            return Err(Box::new(Difference {
                line: turn.line,
                at: turn.last().unwrap_or(header.at),
                started: header.at,
                inputs: turn.inputs.iter().map(|(_, input)| input.clone()).collect(),
                recorded,
                given,
                ends: None,
            }));
        }
        replayed.commands += turn.commands.len();
        look(turn.last().unwrap_or(header.at), &mut drain);
    }
    Ok(replayed)
}

fn tell(drain: &mut Drain, at: Time, input: &Input<'static>) {
    match input {
        Input::Event(event) => drain.handle_event(at, event.as_ref().clone()),
        Input::Timeout => drain.handle_timeout(at),
        Input::Recall { left, own } => drain.recall_to_undo(left.clone(), own.clone()),
    }
}

/// The first recorded and the first given command that differ.
fn differing(drain: &mut Drain, turn: &Turn) -> Option<(Option<Command>, Option<Command>)> {
    for recorded in &turn.commands {
        let given = drain.poll_command();
        if given.as_ref() != Some(recorded) {
            return Some((Some(recorded.clone()), given));
        }
    }
    drain.poll_command().map(|given| (None, Some(given)))
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let after = HumanDuration(self.at.since(self.started));
        write!(out, "line {}, {after} after the start", self.line)?;
        let inputs: Vec<_> = self.inputs.iter().map(input_name).collect();
        if !inputs.is_empty() {
            write!(out, ", after {}", inputs.join(", "))?;
        }
        if let Some([recorded, given]) = &self.ends {
            let (recorded, given) = (shown(recorded), shown(given));
            return write!(
                out,
                ": the recording ends with {recorded}, this engine with {given}"
            );
        }
        let (recorded, given) = (self.recorded.as_ref(), self.given.as_ref());
        let texts = (command_text(recorded), command_text(given));
        write!(out, ": the recording says {}, this engine {}", texts.0, texts.1)?;
        match recorded.zip(given) {
            Some((recorded, given)) if texts.0 == texts.1 => write_field(out, recorded, given),
            _ => Ok(()),
        }
    }
}

/// An input in a few words.
fn input_name(input: &Input<'_>) -> String {
    let Input::Event(event) = input else {
        return match input {
            Input::Timeout => "a timer".to_owned(),
            _ => "the node's Lease".to_owned(),
        };
    };
    match event.as_ref() {
        Event::Node(_) => "the node".to_owned(),
        Event::Pods(pods) => format!("a list of {} pods", pods.len()),
        Event::PodApplied(pod) => format!("pod {}", shown(&pod.id.to_string())),
        Event::PodDeleted(uid) => format!("the end of pod {}", shown(uid.as_str())),
        Event::Budgets(budgets) => format!("a list of {} budgets", budgets.len()),
        Event::BudgetApplied(budget) => {
            format!(
                "budget {}",
                shown(&format!("{}/{}", budget.namespace, budget.name))
            )
        }
        Event::BudgetDeleted { namespace, name } => {
            format!("the end of budget {}", shown(&format!("{namespace}/{name}")))
        }
        Event::Volumes(volumes) => format!("a list of {} volumes", volumes.len()),
        Event::Answer(id, _) => format!("the answer to command {}", id.0),
        Event::Deadline(_) => "a deadline".to_owned(),
        Event::Cancel { .. } => "a cancel".to_owned(),
        Event::Lost { .. } => "the loss of the request".to_owned(),
        Event::Pause => "a pause".to_owned(),
        Event::EvictionLimit(limit) => format!("a limit of {limit} evictions"),
        Event::HookDue { policy } => format!("news for the hooks of {}", shown(policy)),
    }
}

/// A foreign text, as it may be printed.
fn shown(text: &str) -> String {
    one_line(text, 300)
}

fn command_text(command: Option<&Command>) -> String {
    let Some(Command { id, task }) = command else {
        return "nothing".to_owned();
    };
    let pod = task.removes();
    let pod = pod.map(|pod| format!(" {}", shown(&pod.to_string())));
    format!("{}{} (command {})", task.name(), pod.unwrap_or_default(), id.0)
}

/// Where two commands with the same text differ.
fn write_field(out: &mut fmt::Formatter<'_>, recorded: &Command, given: &Command) -> fmt::Result {
    let (Ok(recorded), Ok(given)) = (serde_json::to_value(recorded), serde_json::to_value(given)) else {
        return Ok(());
    };
    let mut path = String::new();
    let (recorded, given) = first_difference(&mut path, &recorded, &given);
    let text =
        |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), |value| shown(&value.to_string()));
    let path = shown(path.trim_start_matches('.'));
    write!(out, "; at {path} {} and {}", text(recorded), text(given))
}

/// Extends the path to the first value that differs.
fn first_difference<'a>(
    path: &mut String,
    one: &'a Value,
    other: &'a Value,
) -> (Option<&'a Value>, Option<&'a Value>) {
    let step = match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let mut keys = one.keys().chain(other.keys());
            keys.find(|key| one.get(*key) != other.get(*key))
                .map(|key| (key.clone(), one.get(key), other.get(key)))
        }
        (Value::Array(one), Value::Array(other)) => {
            let mut places = 0..one.len().max(other.len());
            places
                .find(|place| one.get(*place) != other.get(*place))
                .map(|place| (place.to_string(), one.get(place), other.get(place)))
        }
        _ => None,
    };
    let Some((key, one, other)) = step.filter(|(_, one, other)| one != other) else {
        return (Some(one), Some(other));
    };
    path.push('.');
    path.push_str(&key);
    match one.zip(other) {
        Some((one, other)) => first_difference(path, one, other),
        None => (one, other),
    }
}
