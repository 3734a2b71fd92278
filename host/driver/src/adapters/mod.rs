//! Where the edges meet: each adapter gives one edge what it asks for by means of another, so that neither knows the other.

pub(crate) mod claim_api;
pub(crate) mod cordon_trigger;
pub(crate) mod metrics;
pub(crate) mod node_watch;
pub(crate) mod policy_access;
pub(crate) mod policy_messages;
pub(crate) mod transition_api;
