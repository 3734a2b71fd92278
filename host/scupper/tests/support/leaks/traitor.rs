//! A server that tells what it was told.

use super::Captured;
use crate::proxy::{Fault, Proxy};

/// In front of a server: each request is a moment to look, and some are answered with all that they said.
pub(crate) fn traitor(upstream: &str, captured: &Captured, echoes: &'static [usize]) -> Proxy {
    let (captured, mut number) = (captured.clone(), 0);
    Proxy::start(upstream, move |_| {
        captured.look();
        number += 1;
        match echoes.contains(&number) {
            true => Fault::Echo,
            false => Fault::Gossip,
        }
    })
}
