//! Whether a credential leaks: the program drains a simulated node through a real server, and all its output, writes
//! and saved files are collected and searched.

mod memory;
mod node;
mod search;
mod traitor;

pub(crate) use memory::guests_of;
pub(crate) use node::{Captured, Node, Setup};
pub(crate) use search::Secrets;
pub(crate) use traitor::traitor;
