//! Randomness that depends on the seed alone: SplitMix64.

/// A stream of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xd134_2543_de82_ef95) ^ 0x5c0a_99e5_0d2a_1175)
    }

    /// A stream for a part of the world that draws by itself.
    pub(crate) const fn fork(&mut self) -> Self {
        Self::new(self.next())
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Less than `end`; 0 when `end` is.
    pub(crate) const fn below(&mut self, end: u64) -> u64 {
        if end == 0 { 0 } else { self.next() % end }
    }

    /// At least `low` and at most `high`.
    pub(crate) const fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// True this many times in a thousand. Draws no number if it cannot be true.
    pub(crate) const fn chance(&mut self, per_mille: u32) -> bool {
        per_mille > 0 && self.below(1000) < per_mille as u64
    }

    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        let place = self.below(items.len() as u64);
        items.get(usize::try_from(place).unwrap_or_default())
    }

    /// A random duration: mostly short, sometimes long, in milliseconds.
    pub(crate) const fn span(&mut self, usual: u64, longest: u64) -> u64 {
        if self.chance(80) {
            self.between(1, longest)
        } else {
            self.between(1, usual)
        }
    }
}
