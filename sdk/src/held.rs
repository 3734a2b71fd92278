//! Who holds a wave, as its name says: the policies' words with their holds, the longest last, such as
//! `jobs-after-1h+gangs-after-2h`. So each policy finds its own hold, and the end of the name says how long the wave is
//! held.

use std::time::Duration;

use crate::{
    config,
    hold::{Hold, short},
};

/// The host cuts longer names of waves off, and a hold would be lost.
const NAME_BYTES: usize = 128;
/// Between the holds of several policies.
const AND: char = '+';

/// The policies that hold a wave, at least one. A pod leaves when each of them lets it, at the latest after the longest
/// hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    /// Each policy's word and its time, the longest last.
    times: Vec<(String, Duration)>,
    /// As all of them cap it; `None`: at least one does not.
    max_grace: Option<Duration>,
}

impl Held {
    /// By one policy.
    pub(crate) fn by(whose: &str, hold: Hold) -> Self {
        Self {
            times: vec![(whose.to_owned(), hold.time())],
            max_grace: hold.grace(),
        }
    }

    /// As the name of a wave says; `None`: nobody holds it.
    pub(crate) fn of_wave(name: &str) -> Option<Self> {
        let mut times = Vec::new();
        let mut hold = None;
        let mut part = String::new();
        for text in name.split(AND) {
            if !part.is_empty() {
                part.push(AND);
            }
            part.push_str(text);
            // A word may have a plus itself.
            hold = one(&part);
            if let Some((whose, hold)) = hold.as_ref() {
                times.push((whose.clone(), hold.time()));
                part.clear();
            }
        }
        let (_, last) = hold?;
        Some(Self {
            times,
            max_grace: last.grace(),
        })
    }

    /// The hold of all of them together.
    pub(crate) fn hold(&self) -> Hold {
        let longest = self.times.iter().map(|(_, time)| *time).max();
        let hold = Hold::at_most(longest.unwrap_or_default());
        self.max_grace.map_or(hold, |grace| hold.max_grace(grace))
    }

    /// For how long the policy with this word holds the wave; `None`: it does not.
    pub(crate) fn hold_of(&self, whose: &str) -> Option<Hold> {
        let own = self.times.iter().filter(|(word, _)| word == whose);
        own.map(|(_, time)| *time).max().map(Hold::at_most)
    }

    /// By these policies and by others.
    pub(crate) fn with(mut self, other: &Self) -> Self {
        for (whose, time) in &other.times {
            match self.times.iter_mut().find(|(word, _)| word == whose) {
                Some((_, own)) => *own = (*own).max(*time),
                None => self.times.push((whose.clone(), *time)),
            }
        }
        // Whatever the order of the policies, the name is the same.
        self.times
            .sort_by(|(a, one), (b, other)| (one, a).cmp(&(other, b)));
        let graces = self.max_grace.zip(other.max_grace);
        self.max_grace = graces.map(|(one, other)| one.max(other));
        self
    }

    /// The name of the wave. If it would be too long, it omits the shortest holds.
    pub(crate) fn name(&self) -> String {
        let mut name = String::new();
        for (whose, time) in self.times.iter().rev() {
            let part = if name.is_empty() {
                self.hold().wave(whose)
            } else {
                format!("{whose}-after-{}{AND}{name}", short(*time))
            };
            if !name.is_empty() && part.len() > NAME_BYTES {
                break;
            }
            name = part;
        }
        name
    }
}

/// `jobs-after-10m`, or `jobs-after-10m-grace-30s`
fn one(name: &str) -> Option<(String, Hold)> {
    let (whose, text) = name.rsplit_once("-after-")?;
    let (time, grace) = match text.split_once("-grace-") {
        Some((time, grace)) => (time, Some(config::duration(grace)?)),
        None => (text, None),
    };
    let hold = Hold::at_most(config::duration(time)?);
    let hold = grace.map_or(hold, |grace| hold.max_grace(grace));
    Some((whose.to_owned(), hold))
}
