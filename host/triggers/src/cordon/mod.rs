//! The cordon as a door: on a node whose label asks for it, a cordon that somebody else makes starts a drain, and an
//! uncordon, whoever does it, reverses it.
//!
//! `watch` decides and does nothing, `run` carries. The module must not know how the API server is reached, nor how a
//! drain goes.

mod run;
mod watch;

pub use run::{CordonOptions, CordonWires, Look, run};
pub use watch::{LABEL, Left, NodeView, TRIGGER};
