//! Reports to people: the engine's notices as terminal lines, JSON, node conditions and Events.
//!
//! This crate consumes notices and never blocks their sender. It must not know the API server: it only computes what is
//! to be written there.
#![deny(missing_docs)]

mod blocked_condition;
mod budget_numbers;
mod condition_cleanup;
mod conditions;
mod drain_lines;
mod drain_output;
mod drain_status;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
mod follow_output;
mod force;
mod json;
mod live;
mod loosening;
mod messages;
mod plan_budgets;
mod pod_events;
mod pod_list;
mod policy_message;
mod pre_flight;
mod readiness;
mod status;
mod surge;
#[cfg(test)]
mod tests;
mod tones;
mod undo;
mod waits;

pub use scupper_checkpoint::LeasedDrain;

pub use blocked_condition::BlockedCondition;
pub use condition_cleanup::{conditions_of_abandoned, conditions_of_uncordoned, conditions_with_sequel};
pub use conditions::{
    NodeEvent, conditions_for, conditions_of_refused, conditions_of_started, drained_text, event_for,
    is_done, is_repeated,
};
pub use drain_lines::DrainLines;
pub use drain_output::{DrainOutput, Format};
pub use drain_status::{
    DrainStatus, Estimate, ForceStatus, ForcedNames, HookKey, HookStatus, PlanSummary, STATUS_ANNOTATION,
    StatusBuilder, SurgeSummary, VolumesStatus, WaveStatus, open_hooks, status_from_text, status_to_text,
    subject_text,
};
pub use follow_output::{FollowEvent, FollowOutput};
pub use force::{forced_event, plan_force_lines, plan_force_to_json};
pub use json::{notice_to_json, planned_to_json};
pub use live::ProgressBoard;
pub use loosening::loosened_texts;
pub use messages::{CordonLeft, NodeLeft, count, end_text, may_come_back, returning};
pub use plan_budgets::{plan_budget_lines, plan_budgets_to_json};
pub use pod_events::{BudgetEvent, PodEvents};
pub use pod_list::{PodList, group_name};
pub use policy_message::{PolicyMessage, policy_event_note};
pub use pre_flight::{FINDING_EVENT, finding_events, finding_lines, finding_text, findings_to_json};
pub use readiness::not_ready;
pub use status::{
    LeaseHolder, NodeStatus, NodeSummary, StatusDetails, overview_lines, release_text, status_lines,
    status_table, status_to_json, unreleased_text,
};
pub use surge::{surge_lines, surge_texts};
pub use tones::tone_of;
pub use undo::LeftToUndo;
pub use waits::{MoreWaits, NamedWaits};
