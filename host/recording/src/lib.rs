//! Recordings of drains (`scupper_recorder` writes them): listed, read and replayed. An engine that is told the same again must
//! command the same.
//!
//! * `directory`: where recordings are begun and found. Of a driver's the oldest go, a person's are not touched.
//! * `read`, `replay`: a file, and whether the engine still commands the same.
//! * `beginning`: what the drain saw before it did anything.
//! * `policy_answers`: what its policies planned, and how long their hooks took.
//! * `history`: what each pod waited for, and what the drain as a whole did.
//! * `times`: how long pods, their replacements and hooks took.
//!
//! It must not know the API server, policies' code, or who drains.
#![deny(missing_docs)]

mod beginning;
mod directory;
mod history;
mod policy_answers;
mod read;
mod replay;
mod times;

pub use beginning::Beginning;
pub use directory::{Directory, Entry, Limits, ListError, RecordingTarget};
pub use history::{DrainHistory, HistoryObserver, Part, PodHistory, Wait, WaveHistory};
pub use policy_answers::{HookAnswer, PolicyAnswers};
pub use read::{ReadError, Recording};
pub use replay::{Difference, Replayed, replay};
pub use scupper_recorder::{
    End, FORMAT, FactLog, Header, Input, Learned, PodDifference, RecordedPolicy, Recorder, ShadowPlan,
    ShadowResult, StartEstimate, Treatment, Turn, differences,
};
pub use times::{ObservedTimes, waits_for_end};
