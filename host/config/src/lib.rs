//! The configuration file: which policies a driver loads, in which order, and their grants and settings.
//!
//! ```text
//!  bytes ─► document (tree with places) ─► check (against the table of shapes) ─► convert ─► Configuration
//!                                             shapes ─► schema (the published JSON Schema)
//! ```
//!
//! All errors are reported at once, each with its line, its column and its field. Reading is pure: a path in, a value
//! out. It must not know how the configuration is used: what loads the policies, and when it is read again.
#![deny(missing_docs)]

mod check;
mod convert;
mod diff;
mod document;
mod drain;
mod drain_requests;
#[cfg(test)]
mod error_texts;
mod limits;
mod place;
mod problem;
mod promote;
mod read;
mod rules;
mod scalar;
mod schema;
mod shape;
mod shapes;
mod units;

pub use drain::{
    DrainSettings, Flag, FlagValues, GivenSettings, RequestFlags, SETTINGS, Setting, flags_without_effect,
    read_request, typed_flag,
};
pub use drain_requests::DrainRequestsFile;
pub use problem::{ConfigError, Problem};
pub use promote::{PromoteError, Promotion, promote};
pub use read::{Configuration, beside, out_of_reach_text, read, read_text};
pub use schema::schema;
pub use units::{duration, quantity};
