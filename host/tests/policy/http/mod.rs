//! Requests of policies, through real wasm and real sockets on loopback.

mod rig;
mod secrets;
mod sending;
mod server;
