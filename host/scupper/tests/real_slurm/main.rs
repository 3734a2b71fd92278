//! slurm.wasm against a real Slurm: slurmctld, slurmd and slurmrestd with real jobs, and their failures.
//!
//! Needs root, and fetches Slurm with `host/testbeds/slurm/slurm-testbed` (half a minute the first time, a second
//! then). On a machine that cannot run it the tests fail and name the missing feature; `SCUPPER_SKIP=real-slurm` skips
//! them.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::indexing_slicing,
    reason = "helpers of tests; a failure is a failed test"
)]

mod again;
mod alone;
mod checking;
mod climbing;
mod crowded;
mod down;
mod draining;
mod driver;
#[path = "../support/driver_mode.rs"]
#[expect(dead_code, reason = "not all of it is needed here")]
mod driver_mode;
mod faults;
#[path = "../support/http.rs"]
#[expect(dead_code, reason = "only the proxy sends here")]
mod http;
#[path = "../support/leaks/mod.rs"]
mod leaks;
mod left;
#[path = "../support/limit.rs"]
mod limit;
#[path = "../support/long.rs"]
mod long;
mod looking_again;
mod operator;
mod other_servers;
mod outages;
mod owning;
mod parts;
#[path = "../support/programs.rs"]
mod programs;
#[path = "../support/proxy.rs"]
#[expect(dead_code, reason = "the faults of other servers are not used here")]
mod proxy;
mod rebooting;
mod restarting;
mod rig;
mod searching;
mod sharing;
#[path = "../support/skip.rs"]
mod skip;
#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "only the policies are built here")]
mod support;
mod testbed;
mod unheld;
mod versions;
mod whole;
