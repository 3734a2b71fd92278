//! When the drain will probably end, from the drains that were recorded here. It is only shown: the drain neither waits for it
//! nor fails with it. A drain that takes long is played again from where it is.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{StreamExt as _, stream};
use scupper_engine::{Plan, Time};
use scupper_forecast::{EndTimes, Learned, Situation};
use scupper_recording::{Directory, StartEstimate};
use tokio::sync::oneshot;

use super::EngineRunner;
use super::wakeups::next_of;
use scupper_common::error::chain;

/// The newest recordings are read, at most so many. A drain of 110 pods has 56 KiB; larger ones are left out.
const RECORDINGS: usize = 20;
const BYTES: u64 = 512 << 10;
/// How often the drain is played.
const PLAYS: usize = 50;
/// It is played again after half of the time that it will probably take, not sooner than this.
const SOONEST: Duration = Duration::from_secs(30);
/// Nor later, as what happens meanwhile is in no play.
const LATEST: Duration = Duration::from_secs(600);

/// The plays of a drain.
#[derive(Default)]
pub(super) struct Estimates {
    /// The agreed plan.
    plan: Option<Plan>,
    /// What recordings have shown, read once.
    learned: Option<Arc<Learned>>,
    playing: Option<BoxStream<'static, Option<Plays>>>,
    /// Something was known before.
    has_some: bool,
    again: Option<Time>,
}

/// What a thread returns.
pub(super) struct Plays {
    learned: Arc<Learned>,
    ends: Option<EndTimes>,
}

impl Estimates {
    /// The next result; waits while nothing is played.
    pub(super) async fn next(&mut self) -> Option<Plays> {
        next_of(&mut self.playing).await.flatten()
    }

    /// Nobody wants to know any more.
    pub(super) fn end(&mut self) {
        *self = Self::default();
    }
}

impl EngineRunner {
    /// There is a plan, the first one or another one.
    pub(super) fn estimate_by(&mut self, now: Time, plan: &Plan) {
        if self.deps.recordings.directory().is_some() {
            let is_first = self.estimates.plan.replace(plan.clone()).is_none();
            if is_first {
                self.estimates.again = Some(now);
            }
        }
    }

    /// Begins to play, if it is time for that.
    pub(super) fn estimate_again(&mut self, now: Time) {
        let is_time = self.estimates.again.is_some_and(|again| again <= now);
        if !is_time || self.estimates.playing.is_some() || !self.drain.phase().follows_plan() {
            return;
        }
        self.estimates.again = None;
        let (Some(directory), Some(situation)) = (self.deps.recordings.directory(), self.situation(now))
        else {
            return;
        };
        let (directory, learned) = (directory.clone(), self.estimates.learned.clone());
        let (sender, played) = oneshot::channel();
        // A thread of its own: a process that ends would wait for a blocking task of the runtime. If it panics nothing
        // is known.
        let playing = move || {
            let learned = learned.or_else(|| learned_from(&directory, &situation.request.id));
            let plays = learned.map(|learned| Plays {
                ends: EndTimes::of(&situation, &learned, PLAYS),
                learned,
            });
            // Nobody waits any more where the drain has ended.
            let _unread = sender.send(plays);
        };
        match thread::Builder::new().name("estimate".to_owned()).spawn(playing) {
            Ok(_) => {
                let played = stream::once(async { played.await.ok().flatten() });
                self.estimates.playing = Some(played.boxed());
            }
            Err(error) => tracing::debug!(%error, "when the drain will end is not estimated"),
        }
    }

    /// The drain as it is now: from its mark on the node, if it has one.
    fn situation(&self, now: Time) -> Option<Situation> {
        let (node, plan) = (self.drain.node()?, self.estimates.plan.as_ref()?);
        let request = self.drain.request();
        let pods = self.drain.pods().cloned();
        let budgets = self.drain.budgets().cloned().collect();
        let situation = Situation::of(now, (request, node), pods, budgets, plan);
        let mark = node.checkpoint.clone().filter(|mark| mark.id == request.id);
        Some(match mark {
            Some(mark) => situation.from(mark),
            None => situation,
        })
    }

    pub(super) fn estimated(&mut self, plays: Option<Plays>) {
        self.estimates.playing = None;
        let now = self.deps.clock.now();
        let Some(Plays { learned, ends }) = plays else {
            return;
        };
        self.estimates.learned = Some(learned);
        // Nothing is known, and nothing will be, of its pods.
        let Some(ends) = ends.filter(|_| self.drain.phase().follows_plan()) else {
            return;
        };
        self.estimates.again = Some(now + pause(now, &ends));
        if std::mem::replace(&mut self.estimates.has_some, true) {
            self.reporter.on_other_end_times(now, ends);
        } else {
            if let Some([early, likely, late]) = ends.estimate(now) {
                self.drain.estimate(StartEstimate {
                    at: now,
                    early,
                    likely,
                    late,
                });
            }
            self.reporter.on_end_times(now, self.drain.request(), ends);
        }
    }
}

/// How long what was played is good for.
fn pause(now: Time, ends: &EndTimes) -> Duration {
    let likely = ends.estimate(now).map(|[_, likely, _]| likely.since(now) / 2);
    likely.unwrap_or(LATEST).clamp(SOONEST, LATEST)
}

/// `None`: they cannot be read.
fn learned_from(directory: &Directory, own: &str) -> Option<Arc<Learned>> {
    let files = match directory.newest(RECORDINGS, BYTES) {
        Ok(files) => files,
        Err(error) => {
            tracing::warn!("when the drain will end is not estimated: {}", chain(&error));
            return None;
        }
    };
    let (learned, unreadable) = Learned::read(files, |header| header.request.id != own);
    for error in unreadable {
        tracing::debug!("a recorded drain cannot be read: {}", chain(&error));
    }
    Some(Arc::new(learned))
}
