//! What the author of a policy needs: scenarios played without a cluster, plans on a snapshot, and figures.
//!
//! ```text
//!  scenario file ─► form ─┬─► config ─► policies (real wasm, real host) ─┐
//!                         └─► world (in memory, in its own time) ────────┴─► play (real engine) ─► judge ─► differences
//! ```
//!
//! It must not know how a real cluster is reached, and prints nothing.

mod answers;
mod form;
mod judge;
mod new;
mod play;
mod reach;
mod rehearsal;
mod scenario;
mod short;
mod snapshot;
mod specs;
mod suite;
mod words;
mod workbench;
mod world;

pub use judge::Difference;
pub use new::{Kind, NewError, new};
pub use rehearsal::{Figures, Rehearsal, Stepped};
pub use scenario::{Played, ScenarioError, play};
pub use snapshot::{Snapshot, SnapshotError};
pub use specs::{Said, SpecError};
pub use suite::{Case, SuiteError, cases, name_of};
pub use workbench::{Workbench, WorkbenchError, WorldLoadError};
