//! Hostile guests, by the rows of the threat table: each is contained within its bounds, named in what people are told,
//! and disturbs nobody.
//!
//! | Row | Attack | Where |
//! |---|---|---|
//! | 1–3 | loops, loops where nobody looks, sleeping for ever | `time` |
//! | 4–6, 8 | memory, recursion, answers, handles | `space` |
//! | 7 | answers that break the binary interface | `wire` |
//! | 9–10 | floods of log lines, random numbers, clocks | `words` |
//! | 11–12 | requests to where they must not go, secrets | `reach`; the tables are in `http` |
//! | 13 | plans with pods that are not its own | `plans` |
//! | 14–15 | compile bombs, native code in disguise | `bytes` |
//! | 16 | ending itself | `endings` |
//! | 17 | reload storms | `endings`: what they meet first; `reload/storms`: how few are tried |

mod bytes;
mod endings;
mod modules;
mod neighbour;
mod plans;
mod reach;
mod space;
mod time;
mod wire;
mod words;

use neighbour::beside;
use scupper::policy::{Policies, PolicySpec};

use crate::support::{load_spec, short, spec};

/// The policy `p` from a guest, with limits that are reached sooner.
async fn load_short(name: &str) -> Policies {
    load_spec(PolicySpec {
        limits: short(),
        ..spec(name)
    })
    .await
    .unwrap()
}
