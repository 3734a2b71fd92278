//! Recordings of drains. The engine is a function of its inputs, so a file with all of them says why a drain did what it
//! did, and an engine that is told the same again must command the same.
//!
//! ```text
//!   runner ──► Recorder ──► thread ──► NODE.START.NAME.jsonl.gz ──► read ──► replay
//! ```
//!
//! * `line`: what stands in a file.
//! * `recorder`, `writer`: takes inputs and commands from a running drain, and never holds it up: a thread of its own
//!   writes them, and where it cannot keep up or the disk is full, the recording ends and the drain goes on.
//! * `pods`: a pod that has changed, as what has changed of it.
//! * `facts`: what policies have learned about the cluster, which the engine does not know.
//! * `directory`: the recordings of a driver, the oldest of which go.
//! * `read`, `replay`: a file, and whether the engine still commands the same.
//! * `shadow`: how the plan of a shadow policy differs from that of the drain.
//! * `beginning`: what the drain saw before it did anything.
//! * `policy_answers`: what its policies planned, and how long their hooks took.
//! * `history`: what each pod waited for, and what the drain as a whole did.
//! * `times`: how long pods, their replacements and hooks took.
//!
//! It must not know the API server, policies' code, or who drains.
#![deny(missing_docs)]

mod beginning;
mod directory;
mod facts;
mod history;
mod line;
mod pods;
mod policy_answers;
mod read;
mod recorder;
mod replay;
mod shadow;
mod times;
mod writer;

pub use beginning::Beginning;
pub use directory::{Directory, Entry, Limits, ListError, RecordingTarget};
pub use facts::FactLog;
pub use history::{DrainHistory, HistoryObserver, Part, PodHistory, Wait, WaveHistory};
pub use line::{End, FORMAT, Header, Input, Learned, RecordedPolicy, StartEstimate, Turn};
pub use policy_answers::{HookAnswer, PolicyAnswers};
pub use read::{ReadError, Recording};
pub use recorder::Recorder;
pub use replay::{Difference, Replayed, replay};
pub use shadow::{PodDifference, ShadowPlan, ShadowResult, Treatment, differences};
pub use times::{ObservedTimes, waits_for_end};
