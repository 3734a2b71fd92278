//! The SLM trigger over real Unix sockets: a small kubelet on one side, scripted watches and a scripted driver on the
//! other. Other tests cover a kubelet's real state machine.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod calls;
mod clients;
mod closing;
mod fixture;
#[path = "../../../scupper/tests/support/limit.rs"]
mod limit;
mod odd_calls;
mod published;
mod registering;
mod renewing;
#[path = "../../../scupper/tests/support/skip.rs"]
mod skip;
mod supervised;
