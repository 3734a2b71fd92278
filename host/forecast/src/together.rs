//! Drains of several nodes, which budgets make wait for each other.

use std::time::Duration;

use crate::group::Played;
use crate::learned::Learned;
use crate::play::Play;
use crate::services::{ServiceLoss, losses};
use crate::{Situation, place, side_by_side, times_of_drained};

/// How long drains of several nodes take, if all begin at once and if each begins when the one before has ended.
#[derive(Clone, Debug)]
pub struct Together {
    /// All at once.
    pub at_once: Ends,
    /// One after another, in the order in which they were given.
    pub one_by_one: Ends,
}

/// The ends of all plays, of one drain or of several.
#[derive(Clone, Debug)]
pub struct Ends {
    /// How many plays there were.
    pub plays: usize,
    /// How long those took that drained all nodes, the shortest first.
    pub drained: Vec<Duration>,
    /// What Services lose meanwhile.
    pub services: Vec<ServiceLoss>,
}

impl Together {
    /// Plays them so many times. All nodes are cordoned before the first drain begins: no replacement goes to the next node.
    pub fn of(situations: &[&Situation], learned: &Learned, plays: usize) -> Self {
        let play = Play::of(situations.iter().copied(), learned);
        let ends = |at_once: usize| {
            let played = side_by_side(plays, |seed| play.run(seed as u64, at_once).played());
            Ends::of(situations.iter().copied(), &played)
        };
        Self {
            at_once: ends(situations.len().max(1)),
            one_by_one: ends(1),
        }
    }
}

impl Ends {
    /// Of these plays, each with its seed.
    pub(crate) fn of<'a>(
        situations: impl IntoIterator<Item = &'a Situation>,
        played: &[(usize, Played)],
    ) -> Self {
        let played = || played.iter().map(|(_, played)| played);
        let absences: Vec<_> = played().map(|played| &played.absences).collect();
        Self {
            plays: absences.len(),
            drained: times_of_drained(played()),
            services: losses(situations, &absences),
        }
    }

    /// The time within which so many tenths of all plays have drained all nodes, if so many do.
    pub fn quantile(&self, tenths: usize) -> Option<Duration> {
        self.drained.get(place(self.plays, tenths)).copied()
    }
}
