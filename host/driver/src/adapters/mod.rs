//! Adapters between the edges: each gives one edge what it needs by means of another, so that the two stay independent.

pub(crate) mod claim_api;
pub(crate) mod cordon_trigger;
pub(crate) mod drain_request_plan;
pub(crate) mod drain_request_trigger;
pub(crate) mod metrics;
pub(crate) mod policy_access;
pub(crate) mod transition_api;
