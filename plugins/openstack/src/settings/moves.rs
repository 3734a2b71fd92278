//! How servers are moved, and what becomes of those that cannot be.

use super::reading::Reader;

/// The operator's choices.
#[derive(Clone, Debug)]
pub(crate) struct Moves {
    /// How many migrations are under way at once.
    pub(crate) parallel: usize,
    pub(crate) order: Order,
    pub(crate) stopped: Stopped,
    pub(crate) others: Others,
    pub(crate) incoming: Incoming,
    /// How often a migration is begun for one server.
    pub(crate) attempts: usize,
    /// Before the second attempt, in milliseconds; twice as long before each one after it.
    pub(crate) retry_after: u64,
    /// For one migration that runs, in milliseconds.
    pub(crate) deadline: u64,
    pub(crate) on_deadline: OnDeadline,
}

/// Who goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    LargestFirst,
    SmallestFirst,
    Name,
}

/// What becomes of servers that are shut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    Leave,
    Cold,
}

/// What becomes of servers that can neither be migrated live nor cold: suspended, in rescue, in error, resized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Others {
    Fail,
    Ignore,
}

/// What becomes of live migrations that somebody else began towards this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    Wait,
    Abort,
}

/// What becomes of a migration that runs for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnDeadline {
    Abort,
    ForceComplete,
    Wait,
}

impl Moves {
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
