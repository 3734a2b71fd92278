//! The faults of a drain in the soak: one, or none.

use std::time::Duration;

use scupper_simulator::api::{Action, Fault, Forbidden};

use crate::bench::Bench;

/// A small generator: the same seed, the same soak.
#[derive(Debug)]
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % end
    }

    fn count(&mut self) -> u32 {
        u32::try_from(1 + self.below(3)).unwrap()
    }

    fn millis(&mut self, most: u64) -> Duration {
        Duration::from_millis(1 + self.below(most))
    }
}

/// The fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mishap {
    Nothing,
    /// Requests are refused with this code.
    Refused(u16),
    /// With a `Retry-After`.
    Throttled,
    Slow,
    Hangs,
    HangsAfter,
    DroppedBefore,
    DroppedAfter,
    /// A permission is missing for a while.
    Forbidden,
    /// The lease cannot be written.
    Lease,
    WatchesBreak,
    HistoryIsGone,
    ServerPauses,
    ControllersPause,
    ClockForward,
    ClockBack,
    Cancelled,
    TooLate,
    Blocked,
    BudgetClosed,
    PodsArrive,
    PodDeleted,
    MarkWiped,
    Uncordoned,
}

/// All of them; with any seed, each happens in about two hundred drains.
pub(crate) const KINDS: [Mishap; 29] = [
    Mishap::Refused(401),
    Mishap::Refused(403),
    Mishap::Refused(409),
    Mishap::Refused(429),
    Mishap::Refused(500),
    Mishap::Refused(503),
    Mishap::Refused(504),
    Mishap::Throttled,
    Mishap::Slow,
    Mishap::Hangs,
    Mishap::HangsAfter,
    Mishap::DroppedBefore,
    Mishap::DroppedAfter,
    Mishap::Forbidden,
    Mishap::Lease,
    Mishap::WatchesBreak,
    Mishap::HistoryIsGone,
    Mishap::ServerPauses,
    Mishap::ControllersPause,
    Mishap::ClockForward,
    Mishap::ClockBack,
    Mishap::Cancelled,
    Mishap::TooLate,
    Mishap::Blocked,
    Mishap::BudgetClosed,
    Mishap::PodsArrive,
    Mishap::PodDeleted,
    Mishap::MarkWiped,
    Mishap::Uncordoned,
];

impl Mishap {
    /// Every second drain has none.
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        if rng.below(2) == 0 {
            return Self::Nothing;
        }
        KINDS[usize::try_from(rng.below(KINDS.len() as u64)).unwrap()]
    }

    /// Its name in the figures.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Refused(401) => "401",
            Self::Refused(403) => "403",
            Self::Refused(409) => "409",
            Self::Refused(429) => "429",
            Self::Refused(500) => "500",
            Self::Refused(503) => "503",
            Self::Refused(_) => "504",
            Self::Throttled => "429 with Retry-After",
            Self::Slow => "slow answers",
            Self::Hangs => "an eviction hangs",
            Self::HangsAfter => "an eviction hangs after its effect",
            Self::DroppedBefore => "connection dropped before the effect",
            Self::DroppedAfter => "connection dropped after the effect",
            Self::Forbidden => "a right is missing for a while",
            Self::Lease => "the lease cannot be written",
            Self::WatchesBreak => "watches break",
            Self::HistoryIsGone => "watches break, history is gone",
            Self::ServerPauses => "server pauses",
            Self::ControllersPause => "controllers pause",
            Self::ClockForward => "clock set forward",
            Self::ClockBack => "clock set back",
            Self::Cancelled => "cancelled",
            Self::TooLate => "deadline passes",
            Self::Blocked => "a pod that may not leave",
            Self::BudgetClosed => "budget closed",
            Self::PodsArrive => "pods arrive",
            Self::PodDeleted => "a pod is deleted by others",
            Self::MarkWiped => "our annotation is removed",
            Self::Uncordoned => "uncordoned by others",
        }
    }

    /// Before the drain is requested.
    pub(crate) fn prepare(self, bench: &Bench, rng: &mut Rng) {
        let some =
            |action: Action, rng: &mut Rng| Fault::new(action).user_agent("scupper").count(rng.count());
        let faults = match self {
            Self::Refused(code) => {
                let fault = some(Action::Status(code, None), rng);
                // Of writes or of everything but watches, which would only restart.
                vec![if rng.below(2) == 0 {
                    fault.method("PATCH")
                } else {
                    fault.method("POST")
                }]
            }
            Self::Throttled => vec![some(Action::RetryAfter(429, 1), rng)],
            Self::Slow => vec![
                Fault::new(Action::Delay(rng.millis(200)))
                    .user_agent("scupper")
                    .probability(0.3),
            ],
            Self::Hangs => vec![Fault::new(Action::Hang).path("*/eviction").count(1)],
            Self::HangsAfter => vec![Fault::new(Action::HangAfter).path("*/eviction").count(1)],
            Self::DroppedBefore => vec![some(Action::DropBefore, rng)],
            Self::DroppedAfter => vec![some(Action::DropAfter, rng)],
            Self::Lease => vec![some(Action::Status(503, None), rng).path("*/leases*")],
            _ => Vec::new(),
        };
        bench.api.faults(faults);
        match self {
            Self::TooLate => bench.stuck_pod(),
            Self::Blocked => bench.unmanaged_pod(),
            Self::BudgetClosed => bench.close_budget(),
            // A fault in the middle of a drain needs one that lasts.
            Self::Cancelled | Self::PodsArrive | Self::PodDeleted | Self::MarkWiped | Self::Uncordoned => {
                bench.slow_pod();
            }
            _ => {}
        }
    }

    /// While the drain is under way.
    pub(crate) async fn happen(self, bench: &Bench, event: &str, rng: &mut Rng) {
        let wait = rng.millis(300);
        match self {
            Self::Forbidden => {
                bench.api.set_forbidden(Forbidden {
                    user_agent: "scupper".to_owned(),
                    verb: "patch".to_owned(),
                    ..Forbidden::default()
                });
                tokio::time::sleep(wait).await;
                bench.api.clear_forbidden();
            }
            Self::WatchesBreak => bench.api.break_watches(),
            Self::HistoryIsGone => {
                bench.api.compact_history();
                bench.api.break_watches();
            }
            Self::ServerPauses => {
                bench.api.pause();
                tokio::time::sleep(wait).await;
                bench.api.resume();
            }
            Self::ControllersPause => {
                bench.api.pause_controllers();
                tokio::time::sleep(wait).await;
                bench.api.resume_controllers();
            }
            Self::ClockForward => bench.step_clock(3600),
            Self::ClockBack => bench.step_clock(-3600),
            Self::Cancelled => bench.cancel(event),
            Self::BudgetClosed => {
                tokio::time::sleep(wait).await;
                bench.open_budget();
            }
            Self::PodsArrive => bench.pods(2),
            Self::PodDeleted => bench.delete_a_pod(),
            Self::MarkWiped => bench.wipe_mark(),
            Self::Uncordoned => {
                bench.cordon(false);
                tokio::time::sleep(wait).await;
                bench.cordon(true);
            }
            _ => {}
        }
    }
}
