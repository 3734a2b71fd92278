//! How long to wait before asking again. No randomness: the spread comes from what is asked for, so that many pods
//! refused at once are not asked at once again, and the same events still give the same commands.

use core::time::Duration;

use crate::{Time, whole_millis};

/// A wait that doubles with every try, up to a longest one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    first: Duration,
    longest: Duration,
}

impl Backoff {
    /// A budget that is used up: its watch reports room sooner.
    pub(super) const BUDGET: Self = Self::seconds(5, 60);
    /// A refusal that rarely changes by itself.
    pub(super) const REFUSAL: Self = Self::seconds(5, 60);
    /// Flow control that does not say when.
    pub(super) const THROTTLE: Self = Self::seconds(1, 30);
    /// The API server is away.
    pub(super) const UNREACHABLE: Self = Self::seconds(1, 15);
    /// Pods that a budget holds, and that no surge is chosen for.
    pub(super) const CHOICE: Self = Self::seconds(10, 60);
    /// A Deployment that another drain or a rollout has.
    pub(super) const TURN: Self = Self::seconds(2, 10);
    /// Planners that failed over newcomers.
    pub(super) const REPLAN: Self = Self::seconds(5, 60);
    /// A list that shows a pod which should be gone.
    pub(super) const RECHECK: Self = Self::seconds(5, 60);

    /// Something that asks for its first wait itself.
    pub(super) fn beginning_with(first: Duration) -> Self {
        Self {
            first,
            longest: first.max(Self::REPLAN.longest),
        }
    }

    const fn seconds(first: u64, longest: u64) -> Self {
        Self {
            first: Duration::from_secs(first),
            longest: Duration::from_secs(longest),
        }
    }

    /// The wait before the next try after `tries` of them.
    pub(super) fn wait(self, tries: u32) -> Duration {
        let mut wait = self.first;
        for _ in 0..tries.min(32) {
            wait = wait.saturating_mul(2).min(self.longest);
        }
        wait
    }

    /// The moment of the next try after `tries` of them, spread over the last eighth by `seed`.
    pub(super) fn after(self, now: Time, tries: u32, seed: &str) -> Time {
        let wait = self.wait(tries);
        let spread = whole_millis(wait) / 8;
        let earlier = Duration::from_millis(mix(seed, tries) % (spread + 1));
        now + wait.saturating_sub(earlier)
    }
}

/// FNV-1a, for spreading only.
fn mix(seed: &str, tries: u32) -> u64 {
    seed.bytes()
        .chain(tries.to_le_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_stay_within_an_eighth() {
        let start = Time::from_millis(1_000_000);
        for (tries, secs) in [(0, 5), (1, 10), (2, 20), (3, 40), (4, 60), (5, 60), (400, 60)] {
            for seed in ["", "a", "0b3e", "f00d"] {
                let wait = whole_millis(Backoff::BUDGET.after(start, tries, seed).since(start));
                assert!(wait <= secs * 1000, "try {tries}, seed {seed:?}: {wait} ms");
                assert!(wait >= secs * 875, "try {tries}, seed {seed:?}: {wait} ms");
            }
        }
    }

    #[test]
    fn pods_are_spread() {
        let start = Time::from_millis(0);
        let a = Backoff::BUDGET.after(start, 0, "uid-a");
        let b = Backoff::BUDGET.after(start, 0, "uid-b");
        assert_ne!(a, b);
        assert_eq!(a, Backoff::BUDGET.after(start, 0, "uid-a"));
    }
}
