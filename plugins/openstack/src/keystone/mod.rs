//! Keystone: how one logs in, and what the answer says. It makes and reads bodies, it sends nothing.

mod catalog;
mod credential;
mod token;

pub(crate) use catalog::{Catalog, Interface};
pub(crate) use credential::{Credential, Domain, Named};
pub(crate) use token::Token;
