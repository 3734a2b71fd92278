//! Choices from a seed: the same seed gives the same choices.

use std::sync::atomic::{AtomicU64, Ordering};

/// SplitMix64.
#[derive(Debug)]
pub(super) struct Random(AtomicU64);

impl Random {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

    pub(super) fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// A number below `limit`; 0 if `limit` is 0.
    pub(super) fn below(&self, limit: usize) -> usize {
        let state = self
            .0
            .fetch_add(Self::STEP, Ordering::Relaxed)
            .wrapping_add(Self::STEP);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        let chosen = (mixed ^ (mixed >> 31)).checked_rem(limit).unwrap_or_default();
        usize::try_from(chosen).unwrap_or_default()
    }
}
