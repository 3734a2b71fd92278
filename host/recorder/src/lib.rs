//! Records drains. The engine is a function of its inputs, so a file with all of them says why a drain did what it did.
//!
//! ```text
//!   runner ──► Recorder ──► thread ──► NODE.START.NAME.jsonl.gz
//! ```
//!
//! * `line`: what stands in a file.
//! * `recorder`, `writer`: take inputs and commands from a running drain, and never hold it up: a thread of its own
//!   writes them, and where it cannot keep up or the disk is full, the recording ends and the drain goes on.
//! * `pods`: a pod that has changed, as what has changed of it.
//! * `facts`: what policies have learned about the cluster, which the engine does not know.
//! * `shadow`: how the plan of a shadow policy differs from that of the drain.
//!
//! It must not choose where files are, or know who reads them, or who drains. It is a crate of its own because every drain pays
//! for what is here, so it is optimized for speed. Reading (`scupper_recording`) is not: that would take much more memory.
#![deny(missing_docs)]

mod facts;
mod gzip;
mod line;
mod pods;
mod recorder;
mod shadow;
mod writer;

pub use facts::FactLog;
pub use line::{
    End, FORMAT, Header, Input, LONGEST, Learned, Line, RecordedPolicy, StartEstimate, Turn, WrittenInput,
    WrittenTurn,
};
pub use pods::{KnownPods, PodChange};
pub use recorder::Recorder;
pub use shadow::{PodDifference, ShadowPlan, ShadowResult, Treatment, differences};
pub use writer::create;
