//! Hot reload: policies are replaced while drains run, and a bad one changes nothing.
//!
//! ```text
//!  watch ─► scan (one moment) ─► diff (slots) ─► load: scan ─► compile ─► link ─► describe ─► check-config ─► dry call
//!                                     ▲                                                                          │
//!           faults, rollbacks ────────┘               Catalogue ◄── swap, one generation ◄─ settle (PolicySet) ◄─┘
//!                                                        │
//!                                     Session (a drain): each call on one revision, the next on the newest that fits
//! ```
//!
//! Slots are pure and decide; the policy set swaps; the reloader waits and does the work. None of them knows what a
//! drain is, or where notices go.

#![deny(missing_docs)]

mod announce;
mod candidate;
mod catalogue;
mod checks;
mod control;
#[cfg(test)]
mod error_texts;
mod initial_load;
mod kept_revisions;
mod notice;
mod policy_revisions;
mod policy_set;
mod reloader;
mod resume;
mod revision;
mod rollback;
mod rules;
mod saved_config;
mod scan;
mod session;
mod settings_texts;
mod shadow;
mod start_error;
mod status;
mod store;
mod watch;

pub use catalogue::{Catalogue, Straggler};
pub use control::{Control, ControlError, ask_list, ask_rollback};
pub use notice::ReloadNotice;
pub use reloader::{ReloadOptions, Reloader};
pub use revision::settings_digest;
pub use rules::ReloadRules;
pub use saved_config::has_saved_configuration;
pub use scan::{ConfigText, DesiredPolicies, ParseSaved, PolicySource, ReadDesired};
pub use session::Session;
pub use shadow::Shadow;
pub use start_error::StartError;
pub use status::{SlotProblem, SlotState, SlotStatus};
pub use store::StoreError;
pub use watch::WatchOptions;
