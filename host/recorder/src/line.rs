//! What stands in a recording: one JSON object in each line, compressed with gzip, so that `zcat FILE | jq` shows it. The
//! first line is the header; a turn of the drain's loop follows in each further one; the last says how the drain ended.
//! The fields are those of the engine's types.

use std::borrow::Cow;
use std::collections::BTreeSet;

use scupper_api::facts::FactObject;
use scupper_engine::{Checkpoint, Command, Condition, Event, Request, Time, ToUndo};
use serde::{Deserialize, Serialize};

use crate::pods::PodChange;
use crate::shadow::ShadowPlan;

/// The format's version. It grows with every change of the engine's inputs and commands: a test shows what they look like.
pub const FORMAT: u32 = 4;

/// The bytes of a line. One of more is none of ours.
pub const LONGEST: usize = 64 << 20;

/// A line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Line {
    /// The first one.
    Header(Box<Header>),
    /// A turn of the drain's loop.
    Turn(WrittenTurn),
    /// What a policy has learned about the cluster.
    Facts(Learned),
    /// What shadow policies would have made of it. The engine does not know them.
    Shadows(Vec<ShadowPlan>),
    /// When the drain would probably end, as it was estimated at its start. The engine does not know it.
    Estimate(StartEstimate),
    /// Its policies from the next turn on, if one was replaced.
    Policies(Vec<RecordedPolicy>),
    /// The last one: how the drain ended.
    End(End),
    /// The drain went on, the recording did not.
    Cut(String),
}

/// How the drain began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Header {
    /// The version of the format: [`FORMAT`].
    pub format: u32,
    /// The version of the program that wrote it.
    pub program: String,
    /// The start, on the drain's own timeline, as all further times.
    pub at: Time,
    /// The start by the wall clock.
    pub wall: Time,
    /// The request, with all settings.
    pub request: Request,
    /// Where an earlier process left the drain.
    pub checkpoint: Option<Checkpoint>,
    /// Its policies, in chain order.
    pub policies: Vec<RecordedPolicy>,
}

/// A policy of the drain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedPolicy {
    /// Its name.
    pub name: String,
    /// The SHA-256 of its component, in hex.
    pub digest: String,
    /// The SHA-256 of its settings, in hex.
    pub settings: String,
}

/// What a policy has learned about the cluster in a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Learned {
    /// The policy.
    pub policy: String,
    /// The objects that are new or have changed.
    pub objects: Vec<FactObject>,
}

/// When a drain would probably end, as it was estimated at its start: of ten drains like it, one ends before `early`, five
/// before `likely` and nine before `late`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartEstimate {
    /// When it was made.
    pub at: Time,
    /// The moment before which one in ten ends.
    pub early: Time,
    /// The moment before which five in ten end.
    pub likely: Time,
    /// The moment before which nine in ten end.
    pub late: Time,
}

/// What the engine was told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[expect(clippy::large_enum_variant, reason = "nearly all are events")]
pub enum Input<'a> {
    /// Something happened.
    Event(Cow<'a, Event>),
    /// A timer ended.
    Timeout,
    /// What the node's Lease says that policies must still undo.
    Recall {
        /// All of it.
        left: ToUndo,
        /// What of it is this drain's own.
        own: BTreeSet<String>,
    },
}

/// A turn of the drain's loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Its line in the file.
    pub line: usize,
    /// What the engine was told, and when.
    pub inputs: Vec<(Time, Input<'static>)>,
    /// What it commanded then.
    pub commands: Vec<Command>,
}

impl Turn {
    /// The events among its inputs, and when they were told.
    pub fn events(&self) -> impl Iterator<Item = (Time, &Event)> {
        self.inputs.iter().filter_map(|(at, input)| match input {
            Input::Event(event) => Some((*at, event.as_ref())),
            Input::Timeout | Input::Recall { .. } => None,
        })
    }

    /// When the engine was told something last, and commanded what followed.
    pub fn last(&self) -> Option<Time> {
        self.inputs.last().map(|(at, _)| *at)
    }
}

/// A turn, as it is written.
#[derive(Debug, Serialize, Deserialize)]
pub struct WrittenTurn {
    /// What the engine was told, and when.
    pub inputs: Vec<(Time, WrittenInput)>,
    /// What it commanded then.
    pub commands: Vec<Command>,
}

/// An input, as it is written: [`Input`], or what has changed of a pod.
#[derive(Debug, Serialize, Deserialize)]
#[expect(clippy::large_enum_variant, reason = "nearly all are events")]
pub enum WrittenInput<C = Condition> {
    /// Something happened.
    Event(Event),
    /// A timer ended.
    Timeout,
    /// What the node's Lease says that policies must still undo.
    Recall {
        /// All of it.
        left: ToUndo,
        /// What of it is this drain's own.
        own: BTreeSet<String>,
    },
    /// A pod has changed.
    Pod(PodChange<C>),
}

/// How the drain ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// When.
    pub at: Time,
    /// In one word, such as `Drained`.
    pub outcome: String,
    /// In a sentence.
    pub text: String,
}
