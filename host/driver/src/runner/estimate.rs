//! When the drain will probably end, from the drains that were recorded here: read and played beside the drain, which does
//! not wait for it.

use futures::{StreamExt as _, stream};
use scupper_engine::{Intent, Plan, Time};
use scupper_forecast::{EndTimes, Forecast, Learned, Situation};
use scupper_recording::Directory;

use super::EngineRunner;

/// The newest drains are read, at most so many: half a second of work in the worst case.
const RECORDINGS: usize = 20;
/// How often the drain is played.
const PLAYS: usize = 100;

impl EngineRunner {
    /// Begins once to look for an estimate.
    pub(super) fn begin_estimate(&mut self, now: Time, plan: &Plan) {
        let request = self.drain.request();
        let is_first = !std::mem::replace(&mut self.is_estimated, true);
        if let (Some(directory), Some(node)) = (self.deps.recordings.directory(), self.drain.node())
            && is_first
            && request.intent == Intent::Drain
        {
            let situation = Situation {
                at: now,
                request: request.clone(),
                node: node.clone(),
                pods: self.drain.pods().cloned().collect(),
                budgets: self.drain.budgets().cloned().collect(),
                plan: plan.clone(),
            };
            let directory = directory.clone();
            let playing = tokio::task::spawn_blocking(move || end_times(&directory, &situation));
            let played = async move {
                match playing.await {
                    Ok(played) => played,
                    Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                    Err(_) => None,
                }
            };
            self.estimate = Some(stream::once(played).boxed());
        }
    }

    pub(super) fn end_estimate(&mut self, played: Option<EndTimes>) {
        self.estimate = None;
        if let Some(played) = played {
            self.reporter.on_end_times(self.deps.clock.now(), played);
        }
    }
}

/// `None`: nothing is known of its pods.
fn end_times(directory: &Directory, situation: &Situation) -> Option<EndTimes> {
    let own = &situation.request.id;
    let (learned, unreadable) = match Learned::read(directory, RECORDINGS, |header| header.request.id != *own)
    {
        Ok(read) => read,
        Err(error) => {
            tracing::warn!(
                "when the drain will end is not estimated: {}",
                crate::chain(&error)
            );
            return None;
        }
    };
    for error in unreadable {
        tracing::debug!("a recorded drain cannot be read: {}", crate::chain(&error));
    }
    learned
        .knows_any_of(situation)
        .then(|| EndTimes::of(Forecast::of(situation, &learned, PLAYS), situation.at))
}
