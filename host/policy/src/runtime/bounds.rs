//! Waits for a guest's call within its bounds, and turns every result into a value.

use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use scupper_policy_spec::Limits;
use tokio::time::{Instant, sleep_until};

use super::cpu::CpuTime;
use super::fault::CallFault;
use super::ticker::Ticker;
use super::usage::{Counters, Usage};

/// The bounds of one call.
pub(crate) struct Bounds {
    /// CPU time, enforced by the guest's meter.
    pub(crate) cpu: Duration,
    /// Wall-clock time, however it is spent.
    pub(crate) wall: Duration,
    /// Bytes that one answer or one call of the host may carry.
    pub(crate) answer_bytes: usize,
    /// The most open handles.
    pub(crate) handles: usize,
    /// CPU time spent so far.
    pub(crate) spent: Arc<CpuTime>,
    /// All other resource usage so far.
    pub(crate) counters: Arc<Counters>,
    began: std::time::Instant,
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
            began: std::time::Instant::now(),
        }
    }

    /// The call's resource usage, after its end.
    pub(crate) fn usage(&self) -> Usage {
        self.counters.usage(self.spent.total(), self.began.elapsed())
    }

    /// Runs a call within its bounds.
    pub(crate) async fn hold<R>(
        &self,
        ticker: &Ticker,
        work: impl Future<Output = wasmtime::Result<R>>,
    ) -> Result<R, CallFault> {
        let _running = ticker.running();
        let mut work = pin!(work);
        let counted = poll_fn(|context| self.spent.count(|| work.as_mut().poll(context)));
        // The store is dropped with the future: nothing that a panic left half done is used again.
        let limited = async {
            tokio::select! {
                biased;
                answer = counted => Some(answer),
                () = self.late() => None,
            }
        };
        match AssertUnwindSafe(limited).catch_unwind().await {
            Ok(Some(Ok(answer))) => Ok(answer),
            Ok(Some(Err(error))) => Err(CallFault::of(&error, self)),
            Ok(None) => Err(CallFault::late(self.wall, self.counters.waited())),
            Err(_panic) => Err(CallFault::Panic),
        }
    }

    /// Returns once the call has taken too long, not counting the time in which the host reads facts for it. That time has
    /// a limit of its own.
    async fn late(&self) {
        let begun = Instant::now();
        loop {
            let until = begun + self.wall.saturating_add(self.counters.fetched());
            if Instant::now() >= until {
                return;
            }
            sleep_until(until).await;
        }
    }
}
