//! The cordon as a door: on a node whose label asks for it, a cordon that somebody else makes starts a drain, and an
//! uncordon, whoever does it, reverses it.
//!
//! `watch` decides and does nothing, `run` carries. The module must not know how the API server is reached, nor how a
//! drain goes.

mod run;
mod state;

pub use run::{CordonDeps, CordonOptions, ReadNode, run};
pub use state::{LABEL, NodeFacts, TRIGGER};
