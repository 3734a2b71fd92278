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
mod forcing;
mod harness;
mod hooks;
mod late_pods;
mod named_pods;
mod newcomers;
mod plans;
mod raising;
mod resume;
mod selector;
mod skipping;
mod slow_evictions;
mod surge;
mod surges_in_a_crowd;
mod undoing;
mod volumes;
mod waves;
