//! Seeded trouble: what a test wants a store to do to its callers without breaking the contract.

use mainstay_env::{Rng, yield_now};
use mainstay_store::{Wakeup, Wakeups};

/// Which trouble a store makes, and how often. All of it is allowed by the contract.
///
/// ```
/// use mainstay_memory::Trouble;
/// let hard = Trouble { contended: 0.2, ..Trouble::default() };
/// assert!(hard.yields && !Trouble::none().yields);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trouble {
    /// Whether each call lets other tasks run before and after its work.
    pub yields: bool,
    /// Share of claims that are answered `Contended`, from 0 to 1.
    pub contended: f64,
    /// Share of hints that a subscriber's hub never sees.
    pub lost: f64,
    /// Share of hints that it sees twice.
    pub doubled: f64,
}

impl Default for Trouble {
    /// That of [`crate::Memory::strict`].
    fn default() -> Self {
        Self { yields: true, contended: 0.02, lost: 0.1, doubled: 0.1 }
    }
}

impl Trouble {
    /// None at all.
    #[must_use]
    pub const fn none() -> Self {
        Self { yields: false, contended: 0.0, lost: 0.0, doubled: 0.0 }
    }

    /// None but that every hint is lost, to prove that all works without.
    #[must_use]
    pub const fn silent() -> Self {
        Self { lost: 1.0, ..Self::none() }
    }
}

/// The trouble of one process, drawn from streams of its own.
#[derive(Debug)]
pub(crate) struct Maker {
    settings: Trouble,
    claims: Rng,
    hints: Rng,
}

impl Maker {
    /// `process` counts the handles of a state, so that each draws other numbers from one seed.
    pub(crate) fn new(settings: Trouble, seed: u64, process: u64) -> Self {
        let rng = Rng::seeded(seed).child("memory").child(&process.to_string());
        Self { settings, claims: rng.child("claims"), hints: rng.child("hints") }
    }

    pub(crate) const fn settings(&self) -> Trouble {
        self.settings
    }

    pub(crate) async fn pause(&self) {
        if self.settings.yields {
            yield_now().await;
        }
    }

    pub(crate) fn misses_claim(&self) -> bool {
        happens(&self.claims, self.settings.contended)
    }

    pub(crate) fn publish(&self, hub: &Wakeups, hint: &Wakeup) {
        if happens(&self.hints, self.settings.lost) {
            return;
        }
        if happens(&self.hints, self.settings.doubled) {
            hub.publish(hint.clone());
        }
        hub.publish(hint.clone());
    }
}

/// Draws only where there is something to decide, so that a rate of 0 costs nothing.
fn happens(rng: &Rng, rate: f64) -> bool {
    rate > 0.0 && rng.chance(rate)
}
