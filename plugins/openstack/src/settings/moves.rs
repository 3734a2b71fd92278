//! How to migrate servers, and what to do with those that cannot be migrated.

use super::reading::Reader;

/// The operator's choices.
#[derive(Clone, Debug)]
pub(crate) struct Moves {
    /// The most migrations in progress at once.
    pub(crate) parallel: usize,
    pub(crate) order: Order,
    pub(crate) stopped: Stopped,
    pub(crate) others: Others,
    pub(crate) incoming: Incoming,
    /// The most attempts to migrate one server.
    pub(crate) attempts: usize,
    /// The pause before the second attempt, in milliseconds; it doubles before each further one.
    retry_after: u64,
    /// The time limit of one migration, in milliseconds.
    pub(crate) deadline: u64,
    pub(crate) on_deadline: OnDeadline,
}

/// The order of the migrations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    LargestFirst,
    SmallestFirst,
    Name,
}

/// What to do with servers that are shut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    Leave,
    Cold,
}

/// What to do with servers that cannot be migrated: suspended, in rescue, in error, resized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Others {
    Fail,
    Ignore,
}

/// What to do with live migrations to this host that another user began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    Wait,
    Abort,
}

/// What to do with a migration that exceeds its time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnDeadline {
    Abort,
    ForceComplete,
    Wait,
}

impl Moves {
    /// The pause after so many tries, in milliseconds.
    pub(crate) fn pause_after(&self, tries: usize) -> u64 {
        let doublings = u32::try_from(tries.saturating_sub(1)).unwrap_or(u32::MAX).min(10);
        self.retry_after.saturating_mul(1 << doublings)
    }

    pub(super) fn read(reader: &mut Reader) -> Self {
        let seconds = |seconds: u64| seconds.saturating_mul(1000);
        Self {
            parallel: usize::try_from(reader.number("parallel", 2, 1..=10)).unwrap_or(1),
            order: reader.choice(
                "order",
                &[
                    ("largest-first", Order::LargestFirst),
                    ("smallest-first", Order::SmallestFirst),
                    ("name", Order::Name),
                ],
            ),
            stopped: reader.choice("stopped", &[("leave", Stopped::Leave), ("cold", Stopped::Cold)]),
            others: reader.choice("others", &[("fail", Others::Fail), ("ignore", Others::Ignore)]),
            incoming: reader.choice(
                "incoming",
                &[("wait", Incoming::Wait), ("abort", Incoming::Abort)],
            ),
            attempts: usize::try_from(reader.number("attempts", 3, 1..=10)).unwrap_or(1),
            retry_after: seconds(reader.number("retry-seconds", 10, 1..=3600)),
            deadline: seconds(reader.number("server-deadline-seconds", 1800, 1..=86_400)),
            on_deadline: reader.choice(
                "on-deadline",
                &[
                    ("abort", OnDeadline::Abort),
                    ("force-complete", OnDeadline::ForceComplete),
                    ("wait", OnDeadline::Wait),
                ],
            ),
        }
    }
}
