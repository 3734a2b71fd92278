//! The import `http`: requests of policies, to the origins that the operator granted and to nobody else.

mod grant;
mod send;

pub use grant::{HttpGrant, Networks};
