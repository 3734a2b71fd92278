//! When a drain that has begun will probably end.

use std::time::Duration;

use scupper_engine::Time;

use crate::basis::Basis;
use crate::play::Play;
use crate::{Learned, Situation, place, times_of_drained};

/// The ends of the plays of a drain that has begun.
#[derive(Clone, Debug)]
pub struct EndTimes {
    /// When all of them began.
    began: Time,
    plays: usize,
    /// How long those took that drained the node, the shortest first.
    drained: Vec<Duration>,
}

impl EndTimes {
    /// Plays the drain so many times, one after another. `None`: nothing is known of its pods, or there is something that no
    /// play has: an estimate without it would mislead.
    pub fn of(situation: &Situation, learned: &Learned, plays: usize) -> Option<Self> {
        let basis = Basis::of(situation, learned);
        if basis.known_workloads == 0 || !basis.not_played.is_empty() || !basis.unknown_hooks.is_empty() {
            return None;
        }
        let play = Play::of([situation], learned);
        let played: Vec<_> = (0..plays).map(|seed| play.run(seed as u64, 1).played()).collect();
        Some(Self {
            began: situation.at,
            plays,
            drained: times_of_drained(played.iter()),
        })
    }

    /// The ends before which one of ten plays ends, one of two, and nine of ten, among those that have not ended by now.
    /// `None`: fewer of these drain the node, or all have ended.
    pub fn estimate(&self, now: Time) -> Option<[Time; 3]> {
        let elapsed = now.since(self.began);
        let over = self.drained.partition_point(|took| *took <= elapsed);
        let open = self.plays - over;
        let quantile = |tenths: usize| {
            self.drained
                .get(over + place(open, tenths))
                .map(|took| self.began + *took)
        };
        Some([quantile(1)?, quantile(5)?, quantile(9)?])
    }
}
