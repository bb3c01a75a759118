//! Chance from a seed: what a soak does is the same each time that it is given the same one, but for what the machine makes of it.

use std::time::Duration;

/// A small generator (`SplitMix64`).
#[derive(Debug, Clone)]
pub(super) struct Chance(u64);

impl Chance {
    /// The chance of one thing among those of a seed.
    #[must_use]
    pub(super) fn of(seed: u64, what: &str) -> Self {
        let mix = |state: u64, byte: u8| (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self(what.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, mix))
    }

    /// The next number below a bound.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound.max(1)
    }

    /// Whether something happens that happens so often in a hundred times.
    pub(super) fn percent(&mut self, often: u64) -> bool {
        self.below(100) < often
    }

    /// A time between two, in milliseconds.
    pub(super) fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + self.below(most.saturating_sub(least) + 1))
    }
}
