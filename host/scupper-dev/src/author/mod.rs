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

pub(crate) use judge::Difference;
pub(crate) use new::{Kind, new};
pub(crate) use rehearsal::{Figures, Rehearsal, Stepped};
pub(crate) use scenario::{Played, ScenarioError, play};
pub(crate) use snapshot::Snapshot;
pub(crate) use specs::Said;
pub(crate) use suite::{Case, cases};
pub(crate) use workbench::Workbench;
