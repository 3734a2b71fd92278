//! What a policy can reach: the functions that the host offers to guests, each within its grant.

pub(crate) mod access;
pub(crate) mod bucket;
pub(crate) mod events;
pub(crate) mod facts;
pub(crate) mod granted;
pub(crate) mod http;
pub(crate) mod log;
pub(crate) mod no_cluster;
pub(crate) mod secret;
pub(crate) mod store_data;
pub(crate) mod wasi;
