//! Kubernetes Events in the policy's name, as `kubectl describe` shows them. Only hooks may emit.
//!
//! ```
//! # use scupper_sdk::{*, testing::Host};
//! # struct Emitter;
//! # impl Policy for Emitter { fn describe() -> Description { description!("Emits").wants(Grant::events_of_node()) } }
//! # impl Hooks for Emitter {
//! # fn phases() -> Vec<Phase> { vec![Phase::BeforeDrain] }
//! fn step(call: &Call) -> Outcome {
//!     let note = format!("job 42 still runs, and {} does not wait for it", call.drain.name);
//!     match events::warn_for_node("JobNotAwaited", &note) {
//!         Ok(()) => Outcome::Done,
//!         Err(error) => Outcome::failed(error.to_string()).into(),
//!     }
//! }
//! # }
//! let host = Host::new();
//! assert_eq!(host.step::<Emitter>(Phase::BeforeDrain, Subject::Node), Outcome::Done);
//! assert_eq!(
//!     host.events(),
//!     ["Warning JobNotAwaited of node-1: job 42 still runs, and maintenance does not wait for it"]
//! );
//! ```

use std::fmt;

use crate::{
    Pod,
    bindings::imports::scupper::drain::events::{self as generated, Kind, Regarding},
    host,
    invisible::is_invisible,
};

/// The API server's limit.
const NOTE_BYTES: usize = 1024;
/// Replaces what was cut off.
const ELLIPSIS: char = '…';

/// Why the Event was not emitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// No grant covers the Event: the policy must want the grant and the operator must give it.
    NotGranted(String),
    /// The reason or the note is invalid.
    Invalid(String),
    /// No such pod.
    NotFound(String),
    /// The API server refused or could not be reached. Retry later.
    Unavailable(String),
    /// The policy emits too many Events in too short a time.
    TooMany(String),
}

/// Emits a normal Event for the node. `reason` is one word in CamelCase, `note` one line. Needs
/// [`Grant::events_of_node`](crate::Grant::events_of_node).
pub fn emit_for_node(reason: &str, note: &str) -> Result<(), Error> {
    emit(&Regarding::Node, Kind::Normal, reason, note)
}

/// Emits a warning for the node. Needs [`Grant::events_of_node`](crate::Grant::events_of_node).
pub fn warn_for_node(reason: &str, note: &str) -> Result<(), Error> {
    emit(&Regarding::Node, Kind::Warning, reason, note)
}

/// Emits a normal Event for a pod. Needs [`Grant::events_of_pods`](crate::Grant::events_of_pods).
pub fn emit_for_pod(pod: &Pod, reason: &str, note: &str) -> Result<(), Error> {
    emit(&Regarding::Pod(pod.uid.clone()), Kind::Normal, reason, note)
}

/// Emits a warning for a pod. Needs [`Grant::events_of_pods`](crate::Grant::events_of_pods).
pub fn warn_for_pod(pod: &Pod, reason: &str, note: &str) -> Result<(), Error> {
    emit(&Regarding::Pod(pod.uid.clone()), Kind::Warning, reason, note)
}

/// Turns any text, such as a server's error message, into a valid note: one line of at most 1024 bytes.
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
            Self::Invalid(message) => write!(f, "invalid event: {message}"),
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
