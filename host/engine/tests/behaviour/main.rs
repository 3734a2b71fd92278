//! The engine's behaviour, event by event: its commands and its notices.

mod budgets;
mod cancel_annotation;
mod cordon;
mod draft;
mod drain;
mod ending;
mod eviction;
mod figures;
mod forbidden;
mod harness;
mod hooks;
mod newcomers;
mod plans;
mod resume;
mod selector;
mod skipping;
mod volumes;
mod waves;
