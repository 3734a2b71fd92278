//! Which features of a drain have met in one world. Most faults are found where two of them meet, so a large number of
//! worlds must have met every pair.

use crate::coverage::Coverage;

/// Something that a world counts: its group and its name.
type Witness = (&'static str, &'static str);

/// The features of the engine, each with what a world has counted if the feature took part in it.
/// `host/ARCHITECTURE.md` has the same names in its table of crossings.
pub const FEATURES: &[(&str, &[Witness])] = &[
    ("surge", &[("surge", "restarted")]),
    ("raise", &[("surge", "raised")]),
    ("force", &[("forced", "deleted"), ("forced", "shortened")]),
    ("volumes", &[("volumes", "awaited"), ("volumes", "unreadable")]),
    ("newcomers", &[("crossing", "newcomer")]),
    ("returning pods", &[("reason", "KeepsComingBack")]),
    ("chain", &[("crossing", "second planner")]),
    ("takeover", &[("ending", "resumed")]),
    ("cancel", &[("outcome", "Cancelled")]),
    ("deadline", &[("outcome", "DeadlineExceeded")]),
];

/// Pairs that cannot meet, and why.
pub const NEVER_MEET: &[(&str, &str, &str)] = &[
    ("surge", "raise", "a drain has one method"),
    ("cancel", "deadline", "the first order that ends a drain is final"),
];

/// All pairs that may meet.
pub(crate) fn pairs() -> impl Iterator<Item = (&'static str, &'static str)> {
    let all = FEATURES.iter().enumerate();
    let pairs =
        all.flat_map(|(at, (one, _))| FEATURES.iter().skip(at + 1).map(move |(other, _)| (*one, *other)));
    pairs.filter(|(one, other)| {
        !NEVER_MEET
            .iter()
            .any(|(first, second, _)| first == one && second == other)
    })
}

/// Counts each pair that has met in the world of this coverage.
pub(crate) fn count(world: &mut Coverage) {
    let takes_part = |feature: &str| {
        let found = FEATURES.iter().find(|(name, _)| *name == feature);
        found.is_some_and(|(_, witnesses)| witnesses.iter().any(|witness| world.has(*witness)))
    };
    let met: Vec<_> = pairs()
        .filter(|(one, other)| takes_part(one) && takes_part(other))
        .collect();
    for (one, other) in met {
        world.count(one, other);
    }
}
