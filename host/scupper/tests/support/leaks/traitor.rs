//! A server that repeats the requests it received.

use super::Captured;
use crate::proxy::{Fault, Proxy};

/// A proxy in front of a server: it captures at each request, and answers some of them with their whole content.
pub(crate) fn traitor(upstream: &str, captured: &Captured, echoes: &'static [usize]) -> Proxy {
    let (captured, mut number) = (captured.clone(), 0);
    Proxy::start(upstream, move |_| {
        captured.capture();
        number += 1;
        match echoes.contains(&number) {
            true => Fault::Echo,
            false => Fault::Gossip,
        }
    })
}
