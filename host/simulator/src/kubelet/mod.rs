//! The kubelet, as far as SLM goes, over real Unix sockets.
//!
//! It does what the SLM contract says of a kubelet and nothing else: it watches its registry folder for plugin
//! sockets, registers the drivers behind them, claims the lifecycle events that are bound to its node, drives them by
//! Start and End calls, writes the node's condition and ends the events. Towards the API server it is a client like
//! any other, so it works beside the API simulator and beside a real server alike. It knows no part of the driver.
//!
//! ```text
//!   sockets ──► registry ──► registration ──► plugins (channel) ◄─┐
//!                                                                 │ calls
//!   events (cache) ──► pass ──► claim │ drive │ finish ───────────┘
//!                                     └──► objects ──► API server
//! ```

mod channel;
mod claim;
mod cleanup;
mod drive;
mod event;
mod finish;
mod handle;
mod objects;
mod options;
mod pass;
mod plugins;
mod random;
mod record;
mod registration;
mod registry;
mod sockets;
mod wire;

pub use handle::{Held, Kubelet, KubeletHandle, StartError};
pub use options::{Faults, Mode, Options, Timing};
pub use record::{Answer, Attempt, Call, Entry, Kind, Outcome, Pass, Record, Step};
pub use sockets::WatchError;
