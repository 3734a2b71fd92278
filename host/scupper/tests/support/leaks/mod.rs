//! Whether a credential can be found anywhere: the program drains a simulated node through a real server, everything
//! that it says, writes and keeps is collected, and all of it is searched.

mod memory;
mod node;
mod search;
mod traitor;

pub(crate) use memory::guests_of;
pub(crate) use node::{Captured, Node, Setup};
pub(crate) use search::Secrets;
pub(crate) use traitor::traitor;
