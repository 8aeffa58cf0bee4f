//! Ids: UUIDv7 text that grows in call order within a process, and short random nonces.

use crate::clock::Clock;
use crate::rng::Rng;
use crate::sync::lock;
use std::fmt;
use std::sync::{Arc, Mutex};

/// Bits of the counter that keeps ids of one millisecond in order.
const COUNTER_BITS: u32 = 42;

/// A generator of UUIDv7 texts; strictly increasing as strings, also when the clock stands still or goes back.
///
/// Layout (RFC 9562 §6.2, method 1): 48 bits of milliseconds, a counter of 42 bits that starts at random in every new
/// millisecond, 32 random bits.
pub struct Ids {
    clock: Arc<dyn Clock>,
    rng: Rng,
    last: Arc<Mutex<Last>>,
}

#[derive(Default)]
struct Last {
    millis: u64,
    counter: u64,
}

impl Ids {
    pub(crate) fn new(clock: Arc<dyn Clock>, rng: Rng) -> Ids {
        Ids { clock, rng, last: Arc::default() }
    }

    /// A generator under another clock or source that stays in order with this one.
    pub(crate) fn with(&self, clock: Arc<dyn Clock>, rng: Rng) -> Ids {
        Ids { clock, rng, last: self.last.clone() }
    }

    pub(crate) fn rng(&self) -> &Rng {
        &self.rng
    }

    /// The next id: 36 characters, lower case.
    ///
    /// ```
    /// let env = mainstay_env::Sim::new(1).env("shop");
    /// let (first, second) = (env.ids().uuid(), env.ids().uuid());
    /// assert!(first < second);
    /// ```
    pub fn uuid(&self) -> String {
        let now = u64::try_from(self.clock.now().as_millis()).unwrap_or(0);
        // Half of the counter's range is left free, so that a millisecond has room for 2^41 ids.
        let start = self.rng.u64() >> (64 - COUNTER_BITS + 1);
        let (millis, counter) = lock(&self.last).next(now, start);
        format(millis, counter, self.rng.u64() as u32)
    }
}

impl Last {
    fn next(&mut self, now: u64, start: u64) -> (u64, u64) {
        if now > self.millis {
            *self = Last { millis: now, counter: start };
        } else if (self.counter + 1) >> COUNTER_BITS == 0 {
            self.counter += 1;
        } else {
            *self = Last { millis: self.millis + 1, counter: start };
        }
        (self.millis, self.counter)
    }
}

impl fmt::Debug for Ids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ids").field("last_millis", &lock(&self.last).millis).finish_non_exhaustive()
    }
}

/// The text of a UUIDv7: version and variant bits sit at fixed places and so do not disturb the order.
fn format(millis: u64, counter: u64, random: u32) -> String {
    let high = counter >> (COUNTER_BITS - 12);
    let low = counter & ((1 << (COUNTER_BITS - 12)) - 1);
    let variant = 0x8000 | (low >> 16);
    let tail = ((low & 0xffff) << 32) | u64::from(random);
    format!("{:08x}-{:04x}-7{high:03x}-{variant:04x}-{tail:012x}", (millis >> 16) & 0xffff_ffff, millis & 0xffff)
}

/// A random text of `len` characters of Crockford's base 32 in lower case: 5 bits each.
pub(crate) fn nonce(rng: &Rng, len: usize) -> String {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    (0..len).map(|_| char::from(ALPHABET[rng.index(ALPHABET.len())])).collect()
}
