//! Nova: requests and their responses. It sends nothing, so recorded responses test all of it.

mod action;
pub(crate) mod ask;
mod mapping;
mod migration;
mod server;
mod service;
mod version;

pub(crate) use action::{Asked, asked_to_move, cause, newest};
pub(crate) use mapping::Mapping;
pub(crate) use migration::{Kind, Migration, Migrations};
pub(crate) use server::{Server, Servers, State, shown};
pub(crate) use service::{Service, services};
pub(crate) use version::Version;
