//! `way: operator`.

mod reasons;
mod waiting;
