//! The SLM part of a kubelet, over real Unix sockets.
//!
//! It does what the SLM contract requires of a kubelet and nothing else: it watches its registry folder for plugin sockets,
//! registers the drivers behind them, claims the lifecycle events of its node, drives them by Start and End calls, writes the
//! node's condition and ends the events. For the API server it is an ordinary client, so it works with the simulator and with
//! a real server. It does not know the driver.
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
