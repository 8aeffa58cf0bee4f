//! A tree of seeded random sources, so that a run is replayed by one number whatever order its parts draw in.

use crate::sync::lock;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A random source. Clones share one stream; a [`child`](Rng::child) has its own. Not for secrets.
///
/// ```
/// use mainstay_env::Rng;
///
/// let (one, two) = (Rng::seeded(7), Rng::seeded(7));
/// one.u64();
/// assert_eq!(one.child("queue").u64(), two.child("queue").u64(), "earlier draws do not matter to a child");
/// ```
#[derive(Clone)]
pub struct Rng {
    seed: u64,
    stream: Arc<Mutex<fastrand::Rng>>,
}

impl Rng {
    /// The source of `seed`: the same numbers on every machine.
    pub fn seeded(seed: u64) -> Rng {
        Rng { seed, stream: Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))) }
    }

    /// A source seeded by the operating system's randomness.
    pub fn from_entropy() -> Rng {
        Rng::seeded(fastrand::Rng::new().u64(..))
    }

    /// The seed of this source.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The source named `name` below this one. It depends on the seed and the names on the way alone.
    pub fn child(&self, name: &str) -> Rng {
        Rng::seeded(mix(self.seed, name))
    }

    /// Any number.
    pub fn u64(&self) -> u64 {
        lock(&self.stream).u64(..)
    }

    /// A number under `n`; zero when `n` is zero.
    pub fn below(&self, n: u64) -> u64 {
        if n == 0 { 0 } else { lock(&self.stream).u64(..n) }
    }

    /// A place in a list of `len` entries; zero when it is empty.
    pub fn index(&self, len: usize) -> usize {
        // Drawn with 64 bits, so that a seed means the same on machines of any width.
        self.below(len as u64) as usize
    }

    /// True with probability `p`: never for 0 or less, always for 1 or more.
    pub fn chance(&self, p: f64) -> bool {
        lock(&self.stream).f64() < p
    }

    /// A value from `lo` to `hi`, both included; `lo` when `hi` is less.
    pub fn between<T: Uniform>(&self, lo: T, hi: T) -> T {
        if hi <= lo {
            return lo;
        }
        T::draw(&mut lock(&self.stream), lo, hi)
    }

    /// `duration` times a factor between `lo` and `hi`, at most `Duration::MAX`.
    pub fn jitter(&self, duration: Duration, lo: f64, hi: f64) -> Duration {
        let factor = lo + (hi - lo) * lock(&self.stream).f64();
        Duration::try_from_secs_f64(duration.as_secs_f64() * factor.max(0.0)).unwrap_or(Duration::MAX)
    }

    /// Puts `items` in a random order.
    pub fn shuffle<T>(&self, items: &mut [T]) {
        lock(&self.stream).shuffle(items);
    }

    /// One of `items`, unless there is none.
    pub fn pick<'a, T>(&self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.index(items.len()))
    }
}

impl fmt::Debug for Rng {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rng").field("seed", &self.seed).finish_non_exhaustive()
    }
}

/// A child's seed: FNV-1a over the name from a start that depends on the parent, then SplitMix64's finisher, which
/// spreads neighbouring names over all bits.
fn mix(seed: u64, name: &str) -> u64 {
    const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;
    const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    let hash =
        name.bytes().fold(FNV_BASIS ^ spread(seed), |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME));
    spread(hash)
}

fn spread(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A type that [`Rng::between`] draws.
pub trait Uniform: PartialOrd + Sized {
    /// A value from `lo` to `hi`, both included; `lo <= hi`.
    #[doc(hidden)]
    fn draw(stream: &mut fastrand::Rng, lo: Self, hi: Self) -> Self;
}

macro_rules! uniform {
    ($($type:ident)*) => {$(
        impl Uniform for $type {
            fn draw(stream: &mut fastrand::Rng, lo: Self, hi: Self) -> Self {
                stream.$type(lo..=hi)
            }
        }
    )*};
}

uniform!(u8 u16 u32 u64 i32 i64);

impl Uniform for usize {
    fn draw(stream: &mut fastrand::Rng, lo: Self, hi: Self) -> Self {
        stream.u64(lo as u64..=hi as u64) as usize
    }
}

impl Uniform for Duration {
    fn draw(stream: &mut fastrand::Rng, lo: Self, hi: Self) -> Self {
        let nanos = stream.u128(lo.as_nanos()..=hi.as_nanos());
        Duration::from_nanos_u128(nanos)
    }
}
