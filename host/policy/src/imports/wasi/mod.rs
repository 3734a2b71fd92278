//! The grant `wasi`: the harmless part of WASI 0.2, for guests that are built with a plain standard library.
//!
//! Such a guest can print (into the log), ask for the time of the call and for random numbers, and look at an empty
//! environment and an empty file system. Without the grant none of it is linked; with it, still no sockets, no files,
//! no real environment. It must not know what a policy is for.

mod context;
mod link;
mod output;
mod time;

pub(crate) use context::{Occasion, Wasi};
pub(crate) use link::{HARMLESS, is_harmless, link};
