//! How fast migrations transfer memory, from what earlier steps saw.

use crate::nova::{Kind, Migration};
use crate::state::{HookState, Transfer};

/// A transfer that does not proceed for so many seconds has stalled. Nova records the progress every 5 s.
const STALLED: u64 = 15;

/// How fast a transfer proceeds.
pub(super) enum Pace {
    Unknown,
    /// MiB per second.
    Moves(u64),
    /// For so many seconds.
    Stalled(u64),
}

/// Compares the transferred memory with that of earlier steps, by the times of Nova's records.
pub(super) fn pace(migration: &Migration, now: u64, hook_state: &mut HookState) -> Pace {
    if migration.status != "running" || migration.kind() != Kind::Live {
        return Pace::Unknown;
    }
    let moved = migration.memory().map_or(0, |(_, moved, _)| moved);
    let at = migration.changed() / 1000;
    let known = hook_state.transfers.entry(migration.id).or_insert(Transfer {
        seen: now,
        at,
        moved,
        rate: None,
    });
    let idle = now.saturating_sub(known.seen);
    if moved == known.moved && idle >= STALLED && migration.memory().is_some() {
        known.rate = None;
        return Pace::Stalled(idle);
    }
    let seconds = at.saturating_sub(known.at);
    if moved != known.moved && seconds > 0 {
        let new = moved.saturating_sub(known.moved) / seconds;
        // Smoothed, because the times have whole seconds.
        let rate = known.rate.map_or(new, |old| u64::midpoint(old, new));
        *known = Transfer {
            seen: now,
            at,
            moved,
            rate: Some(rate),
        };
    }
    known.rate.map_or(Pace::Unknown, Pace::Moves)
}
