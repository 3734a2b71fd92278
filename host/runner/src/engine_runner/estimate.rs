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
    /// What recordings have shown, read once, before anything is played.
    learned: Option<Arc<Learned>>,
    playing: Option<BoxStream<'static, Option<EstimateResult>>>,
    /// Something was known before.
    has_some: bool,
    again: Option<Time>,
}

/// What a thread returns.
pub(super) enum EstimateResult {
    /// What recordings have shown.
    Learned(Learned),
    /// The end times of the plays.
    Ends(EndTimes),
}

impl Estimates {
    /// The next result; waits while nothing is read or played. `None`: nothing is known, and nothing will be.
    pub(super) async fn next(&mut self) -> Option<EstimateResult> {
        next_of(&mut self.playing).await.flatten()
    }

    /// In a thread of its own: a process that ends would wait for a blocking task of the runtime. If it panics nothing is
    /// known.
    fn begin(&mut self, work: impl FnOnce() -> Option<EstimateResult> + Send + 'static) {
        let (sender, found) = oneshot::channel();
        let work = move || {
            // Nobody waits any more where the drain has ended.
            let _unread = sender.send(work());
        };
        match thread::Builder::new().name("estimate".to_owned()).spawn(work) {
            Ok(_) => {
                let found = stream::once(async { found.await.ok().flatten() });
                self.playing = Some(found.boxed());
            }
            Err(error) => tracing::debug!(%error, "when the drain will end is not estimated"),
        }
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

    /// Begins to play, if it is time for that. Without an earlier drain there is nothing to play with, and the pods need not
    /// be copied.
    pub(super) fn estimate_again(&mut self, now: Time) {
        let is_time = self.estimates.again.is_some_and(|again| again <= now);
        if !is_time || self.estimates.playing.is_some() || !self.drain.phase().follows_plan() {
            return;
        }
        self.estimates.again = None;
        match self.estimates.learned.clone() {
            Some(learned) => {
                if let Some(situation) = self.situation(now) {
                    let play = move || EndTimes::of(&situation, &learned, PLAYS).map(EstimateResult::Ends);
                    self.estimates.begin(play);
                }
            }
            None => {
                if let Some(directory) = self.deps.recordings.directory() {
                    let (directory, own) = (directory.clone(), self.drain.request().id.clone());
                    let read = move || learned_from(&directory, &own).map(EstimateResult::Learned);
                    self.estimates.begin(read);
                }
            }
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

    pub(super) fn estimated(&mut self, found: Option<EstimateResult>) {
        self.estimates.playing = None;
        let now = self.deps.clock.now();
        let ends = match found {
            Some(EstimateResult::Learned(learned)) => {
                self.estimates.learned = Some(Arc::new(learned));
                self.estimates.again = Some(now);
                return;
            }
            Some(EstimateResult::Ends(ends)) if self.drain.phase().follows_plan() => ends,
            // Nothing is known, and nothing will be, of its pods.
            Some(EstimateResult::Ends(_)) | None => return,
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

/// What other drains here have shown. `None`: the directory cannot be read, or shows no other drain.
fn learned_from(directory: &Directory, own: &str) -> Option<Learned> {
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
    (learned != Learned::default()).then_some(learned)
}
