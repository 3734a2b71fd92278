//! The grant `wasi`: the harmless part of WASI 0.2, for guests that are built with a plain standard library.
//!
//! Such a guest can print (into the log), read the time of the call and random numbers, and look at an empty
//! environment and an empty file system. Without the grant none of it is linked; with it there are still no sockets, no
//! files and no real environment. It must not know the purpose of a policy.

mod context;
mod link;
mod output;
mod time;

pub(crate) use context::{Occasion, Wasi};
pub(crate) use link::link;
