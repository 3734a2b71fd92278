//! Waits for a call of a guest, but not for ever, and turns whatever happens into a value.

use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use scupper_policy_spec::Limits;
use tokio::time::timeout;

use super::cpu::CpuTime;
use super::fault::CallFault;
use super::ticker::Ticker;
use super::usage::{Counters, Usage};

/// The bounds of one call.
pub(crate) struct Bounds {
    /// CPU time, which the guest's meter watches.
    pub(crate) cpu: Duration,
    /// Time on the wall, whatever it is spent on.
    pub(crate) wall: Duration,
    /// Bytes that one answer or one call of the host may carry.
    pub(crate) answer_bytes: usize,
    /// Handles at once.
    pub(crate) handles: usize,
    /// CPU time spent so far.
    pub(crate) spent: Arc<CpuTime>,
    /// Everything else that was used so far.
    pub(crate) counters: Arc<Counters>,
    began: Instant,
}

impl Bounds {
    pub(crate) fn new(limits: &Limits, cpu: Duration, wall: Duration) -> Self {
        Self {
            cpu,
            wall,
            answer_bytes: limits.answer_bytes,
            handles: limits.handles,
            spent: Arc::default(),
            counters: Arc::default(),
            began: Instant::now(),
        }
    }

    /// What the call used, once it is over.
    pub(crate) fn usage(&self) -> Usage {
        self.counters.usage(self.spent.total(), self.began.elapsed())
    }

    /// Holds a call to them.
    pub(crate) async fn hold<R>(
        &self,
        ticker: &Ticker,
        work: impl Future<Output = wasmtime::Result<R>>,
    ) -> Result<R, CallFault> {
        let _running = ticker.running();
        let mut work = pin!(work);
        let counted = poll_fn(|context| self.spent.count(|| work.as_mut().poll(context)));
        // The store goes with the future: nothing that a panic left half done is used again.
        match AssertUnwindSafe(timeout(self.wall, counted)).catch_unwind().await {
            Ok(Ok(Ok(answer))) => Ok(answer),
            Ok(Ok(Err(error))) => Err(CallFault::of(&error, self)),
            Ok(Err(_elapsed)) => Err(CallFault::late(self.wall, self.counters.waited())),
            Err(_panic) => Err(CallFault::Panic),
        }
    }
}
