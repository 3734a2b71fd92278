//! Keystone: the bodies of login requests and their responses. It sends nothing.

mod catalog;
mod credential;
mod token;

pub(crate) use catalog::{Catalog, Interface};
pub(crate) use credential::{Credential, Domain, Named};
pub(crate) use token::Token;
