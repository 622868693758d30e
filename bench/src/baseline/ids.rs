//! Ids as the product makes them: time first, so that rows of one moment lie side by side in their
//! index, then randomness. Their order decides what an insert costs, so the baseline pays it too.

use std::fs::File;
use std::io::Read;

use super::commits::unix_ms;
use crate::Result;

const TIME_BITS: u64 = 0xffff_ffff_ffff;
const RANDOM_HIGH_BITS: u64 = 0xffff;

/// A source of ids; not for secrets.
#[derive(Debug)]
pub struct Ids {
    state: u64,
}

impl Ids {
    /// Seeded by the system, so that two sources never give the same ids.
    pub fn seeded() -> Result<Self> {
        let mut seed = [0; 8];
        File::open("/dev/urandom")?.read_exact(&mut seed)?;
        // The generator stands still at zero.
        Ok(Self { state: u64::from_ne_bytes(seed) | 1 })
    }

    /// `prefix_` and 32 hex digits: 48 bits of time in ms, 80 random bits.
    pub fn make(&mut self, prefix: &str) -> String {
        let time = unix_ms() & TIME_BITS;
        let high = self.random() & RANDOM_HIGH_BITS;
        let low = self.random();
        format!("{prefix}_{time:012x}{high:04x}{low:016x}")
    }

    fn random(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }
}
