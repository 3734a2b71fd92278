//! Telling people: the engine's notices as lines for a terminal, as JSON, as node conditions and as Events; and what is
//! counted, as metrics; how it stands, for probes; where a collector is named, as traces.
//!
//! It consumes notices and can block nobody. It must not know the API server: what is to be written there it only
//! computes.
#![deny(missing_docs)]

mod answers;
mod blocked;
mod conditions;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
mod following;
mod health;
mod json;
mod live;
mod metrics;
mod plan_budgets;
mod policy_words;
mod prefixed;
mod progress;
mod readiness;
mod sink;
mod stale;
mod status;
mod stuck;
mod tally;
#[cfg(test)]
mod tests;
mod traces;
mod view;
mod words;

pub use answers::{answer_words, answers_to_json};
pub use blocked::BlockedCondition;
pub use conditions::{ConditionChange, NodeEvent, conditions_for, conditions_of_begun, event_for};
pub use following::{Following, Seen};
pub use health::{Health, Pulse};
pub use json::{notice_to_json, planned_to_json};
pub use live::{Board, Live, Screen, Size};
pub use metrics::{DrainMeter, Metrics, MetricsError, MetricsServer, PolicyCall, PolicyVersion};
pub use plan_budgets::{plan_budget_lines, plan_budgets_to_json};
pub use policy_words::{PolicyWords, policy_note};
pub use prefixed::Prefixed;
pub use progress::Progress;
pub use readiness::not_ready;
pub use sink::{Format, Sink};
pub use stale::{conditions_of_abandoned, conditions_of_uncordoned};
pub use status::{
    BudgetView, Details, NodeStatus, NodeWish, Seat, UnreadyView, WorkloadView, status_lines, status_table,
    status_to_json,
};
pub use stuck::{BudgetEvent, StuckPods};
pub use tally::{Repeated, Tallies};
pub use traces::{DrainTrace, TraceSettings, TraceSettingsError, Traces, TracesError, trace_settings};
pub use view::{
    DriverView, HookView, PlanView, VIEW_ANNOTATION, ViewKeeper, WaveView, view_from_text, view_to_text,
};
pub use words::{may_come_back, returning};
