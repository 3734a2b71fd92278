//! The cordon trigger: on a node with the label `scupper.dev/drain-on-cordon`, a cordon made by anyone but this driver
//! starts a drain, and an uncordon reverses it. With the label `scupper.dev/undo-on-uncordon` only an uncordon counts.
//!
//! `state` decides and does no I/O; `run` does the I/O; `tried` reads what an earlier process has left. The module must not
//! know how the API server is reached, nor how a drain works.

mod run;
mod state;
mod tried;

pub use run::{CordonDeps, CordonOptions, ReadNode, run};
pub use state::{LABEL, NodeFacts, TRIGGER, UNCORDON_LABEL};
pub use tried::{LIFTED_SINCE, was_tried};
