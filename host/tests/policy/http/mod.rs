//! Requests of policies, through real wasm and real sockets on loopback.

mod addresses;
mod failing;
mod grants;
mod leaks;
mod rig;
mod secrets;
mod sending;
mod server;
mod tls;
