//! Requests of policies, through real wasm and real sockets on loopback.

mod addresses;
mod failing;
mod grants;
mod leaks;
pub(crate) mod rig;
mod secrets;
mod sending;
pub(crate) mod server;
mod tls;
