//! When the drain will probably end, from the drains that were recorded here. It is only shown: the drain neither waits for it
//! nor fails with it.

use std::thread;

use futures::{StreamExt as _, stream};
use scupper_engine::{Plan, Time};
use scupper_forecast::{EndTimes, Learned, Situation};
use scupper_recording::{Directory, StartEstimate};
use tokio::sync::oneshot;

use super::EngineRunner;

/// The newest recordings are read, at most so many. A drain of 110 pods has 56 KiB; larger ones are left out.
const RECORDINGS: usize = 20;
const BYTES: u64 = 512 << 10;
/// How often the drain is played.
const PLAYS: usize = 100;

impl EngineRunner {
    /// Begins to look for an estimate, by the first plan. A drain that another process has begun has none: how far it is is
    /// not known.
    pub(super) fn begin_estimate(&mut self, now: Time, plan: &Plan) {
        if let (Some(directory), Some(node)) = (self.deps.recordings.directory(), self.drain.node()) {
            let request = self.drain.request();
            let pods = self.drain.pods().cloned();
            let budgets = self.drain.budgets().cloned().collect();
            let situation = Situation::of(now, (request, node), pods, budgets, plan);
            let directory = directory.clone();
            let (sender, played) = oneshot::channel();
            // A thread of its own: a process that ends would wait for a blocking task of the runtime. If it panics nothing
            // is known.
            let playing = move || {
                // Nobody waits any more where the drain has ended.
                let _unread = sender.send(end_times(&directory, &situation));
            };
            match thread::Builder::new().name("estimate".to_owned()).spawn(playing) {
                Ok(_) => self.estimate = Some(stream::once(async { played.await.ok().flatten() }).boxed()),
                Err(error) => tracing::debug!(%error, "when the drain will end is not estimated"),
            }
        }
    }

    pub(super) fn end_estimate(&mut self, played: Option<EndTimes>) {
        self.estimate = None;
        if let Some(played) = played.filter(|_| self.drain.phase().follows_plan()) {
            let at = self.deps.clock.now();
            if let Some([early, likely, late]) = played.estimate(at) {
                self.drain.estimate(StartEstimate {
                    at,
                    early,
                    likely,
                    late,
                });
            }
            self.reporter.on_end_times(at, self.drain.request(), played);
        }
    }
}

fn end_times(directory: &Directory, situation: &Situation) -> Option<EndTimes> {
    let files = match directory.newest(RECORDINGS, BYTES) {
        Ok(files) => files,
        Err(error) => {
            tracing::warn!(
                "when the drain will end is not estimated: {}",
                crate::chain(&error)
            );
            return None;
        }
    };
    let own = &situation.request.id;
    let (learned, unreadable) = Learned::read(files, |header| header.request.id != *own);
    for error in unreadable {
        tracing::debug!("a recorded drain cannot be read: {}", crate::chain(&error));
    }
    EndTimes::of(situation, &learned, PLAYS)
}
