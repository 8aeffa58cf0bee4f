//! A whole backend, as the layers above hold it.

use std::collections::BTreeSet;
use std::fmt;

use mainstay_env::{Env, SimClock};

use super::{
    AdminStore, ExecutorStore, Maintenance, QueueStore, Registry, ScheduleStore, SignalStore, WorkflowStore, WriteStore,
};
use crate::wakeups::Wakeups;

/// Where a backend takes `now` from. Requests carry no time.
#[derive(Clone, Debug)]
pub enum StoreClock {
    /// The database's own clock; for a backend without one, that of its [`Env`], never set behind the latest stamp stored.
    Server,
    /// A clock that a test moves.
    Manual(SimClock),
}

/// Optional parts of the contract, and facts about a backend. A missing part answers `Unsupported`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Capability {
    /// Queues with limits for each partition key.
    Partitions,
    /// Messages, events and streams.
    Signals,
    /// Schedules.
    Schedules,
    /// Lists, aggregates, export and import.
    Admin,
    /// [`crate::Effect::Rewind`].
    Rewind,
    /// [`crate::Effect::Debounce`].
    Debounce,
    /// What is committed survives a reopening.
    Durable,
    /// Several processes may open one store.
    Shared,
    /// A lease of a dead executor is listed as dead at once, by proof.
    ProvesDeath,
}

impl Capability {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Partitions,
        Self::Signals,
        Self::Schedules,
        Self::Admin,
        Self::Rewind,
        Self::Debounce,
        Self::Durable,
        Self::Shared,
        Self::ProvesDeath,
    ];

    /// Its name in messages and in the output of the conformance suite.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Partitions => "partitions",
            Self::Signals => "signals",
            Self::Schedules => "schedules",
            Self::Admin => "admin",
            Self::Rewind => "rewind",
            Self::Debounce => "debounce",
            Self::Durable => "durable",
            Self::Shared => "shared",
            Self::ProvesDeath => "proves_death",
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a backend can do.
///
/// ```
/// use mainstay_store::{Capabilities, Capability};
/// let capabilities = Capabilities::none().with(Capability::Durable);
/// assert!(capabilities.has(Capability::Durable) && !capabilities.has(Capability::Signals));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(BTreeSet<Capability>);

impl Capabilities {
    /// The required traits alone.
    #[must_use]
    pub const fn none() -> Self {
        Self(BTreeSet::new())
    }

    /// Adds one.
    #[must_use]
    pub fn with(mut self, capability: Capability) -> Self {
        self.0.insert(capability);
        self
    }

    /// Whether it is there.
    #[must_use]
    pub fn has(&self, capability: Capability) -> bool {
        self.0.contains(&capability)
    }

    /// All that are there, in order.
    pub fn iter(&self) -> impl Iterator<Item = Capability> + '_ {
        self.0.iter().copied()
    }
}

/// A whole backend: the nine traits, what it can do, the environment it runs in, and its hints.
pub trait Store:
    WriteStore
    + WorkflowStore
    + QueueStore
    + Registry
    + ExecutorStore
    + Maintenance
    + SignalStore
    + ScheduleStore
    + AdminStore
    + fmt::Debug
{
    /// What it can do; may grow while it is open, when another process migrates the database.
    fn capabilities(&self) -> Capabilities;

    /// The environment its own tasks run in; the engine's tasks run there too.
    fn env(&self) -> &Env;

    /// Where it publishes hints after its own commits.
    fn wakeups(&self) -> &Wakeups;
}
