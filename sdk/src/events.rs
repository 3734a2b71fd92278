//! Kubernetes Events in the policy's name, for whoever runs `kubectl describe`. Only hooks may emit.
//!
//! ```
//! # use scupper_sdk::{*, testing::Host};
//! # struct Tells;
//! # impl Policy for Tells { fn describe() -> Description { description!("Tells").wants(Grant::events_of_node()) } }
//! # impl Hooks for Tells {
//! # fn phases() -> Vec<Phase> { vec![Phase::BeforeDrain] }
//! fn step(call: &Call) -> Outcome {
//!     let note = format!("{} waits for nobody", call.drain.name);
//!     match events::warn_for_node("NobodyHeld", &note) {
//!         Ok(()) => Outcome::Done,
//!         Err(error) => Outcome::failed(error.to_string()).into(),
//!     }
//! }
//! # }
//! let host = Host::new();
//! assert_eq!(host.step::<Tells>(Phase::BeforeDrain, Subject::Node), Outcome::Done);
//! assert_eq!(host.events(), ["Warning NobodyHeld of node-1: maintenance waits for nobody"]);
//! ```

use std::fmt;

use crate::{
    Pod,
    bindings::imports::scupper::drain::events::{self as generated, Kind, Regarding},
    host,
    invisible::is_invisible,
};

/// What the API server takes.
const NOTE_BYTES: usize = 1024;
/// Stands for what was cut off.
const ELLIPSIS: char = '…';

/// Why there is no Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// No grant covers it: the operator must give one and the policy must want it.
    NotGranted(String),
    /// The reason or the note cannot be one.
    Invalid(String),
    /// No such pod.
    NotFound(String),
    /// The API server refused or could not be reached. Worth another try.
    Unavailable(String),
    /// More than the policy may emit in so short a time.
    TooMany(String),
}

/// Tells something of the node: one word in CamelCase, and one line. Needs
/// [`Grant::events_of_node`](crate::Grant::events_of_node).
pub fn emit_for_node(reason: &str, note: &str) -> Result<(), Error> {
    emit(&Regarding::Node, Kind::Normal, reason, note)
}

/// The same, and somebody should look. Needs [`Grant::events_of_node`](crate::Grant::events_of_node).
pub fn warn_for_node(reason: &str, note: &str) -> Result<(), Error> {
    emit(&Regarding::Node, Kind::Warning, reason, note)
}

/// Tells something of a pod. Needs [`Grant::events_of_pods`](crate::Grant::events_of_pods).
pub fn emit_for_pod(pod: &Pod, reason: &str, note: &str) -> Result<(), Error> {
    emit(&Regarding::Pod(pod.uid.clone()), Kind::Normal, reason, note)
}

/// The same, and somebody should look. Needs [`Grant::events_of_pods`](crate::Grant::events_of_pods).
pub fn warn_for_pod(pod: &Pod, reason: &str, note: &str) -> Result<(), Error> {
    emit(&Regarding::Pod(pod.uid.clone()), Kind::Warning, reason, note)
}

/// What an Event can carry of a text that came from elsewhere: one line, and not too long.
///
/// ```
/// assert_eq!(scupper_sdk::events::note("No valid host\nwas found."), "No valid host was found.");
/// ```
pub fn note(text: &str) -> String {
    let as_written = |c| if is_invisible(c) { ' ' } else { c };
    let mut note: String = text.chars().map(as_written).collect();
    if note.len() > NOTE_BYTES {
        let mut end = NOTE_BYTES - ELLIPSIS.len_utf8();
        while !note.is_char_boundary(end) {
            end -= 1;
        }
        note.truncate(end);
        note.push(ELLIPSIS);
    }
    note
}

fn emit(regarding: &Regarding, kind: Kind, reason: &str, note: &str) -> Result<(), Error> {
    Ok(host::events::emit(regarding, kind, reason, note)?)
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGranted(message) => write!(f, "not granted: {message}"),
            Self::Invalid(message) => write!(f, "no proper event: {message}"),
            Self::NotFound(message) => write!(f, "not found: {message}"),
            Self::Unavailable(message) => f.write_str(message),
            Self::TooMany(message) => write!(f, "too many events: {message}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<generated::Error> for Error {
    fn from(error: generated::Error) -> Self {
        match error {
            generated::Error::NotGranted(message) => Self::NotGranted(message),
            generated::Error::Invalid(message) => Self::Invalid(message),
            generated::Error::NotFound(message) => Self::NotFound(message),
            generated::Error::Unavailable(message) => Self::Unavailable(message),
            generated::Error::TooMany(message) => Self::TooMany(message),
        }
    }
}
