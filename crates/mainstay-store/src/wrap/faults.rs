//! Faults on purpose: by method, by rate, by seed.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use mainstay_env::{Env, Rng};

use super::call::{Call, Layer, Method};
use super::wrapped::Wrapped;
use crate::contract::Store;
use crate::error::{ErrorKind, Result, StoreError};

/// What can be done to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Fault {
    /// It fails with `Unavailable` and is not executed.
    Before,
    /// It is executed and then fails with `Unavailable`: its answer is lost.
    After,
    /// It is executed late.
    Delay,
    /// It never answers; half of these are executed.
    Hang,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Before, Self::After, Self::Delay, Self::Hang];
}

/// Share of calls that meet each fault, each from 0 to 1; together at most 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Of [`Fault::Before`].
    pub before: f64,
    /// Of [`Fault::After`].
    pub after: f64,
    /// Of [`Fault::Delay`].
    pub delay: f64,
    /// Of [`Fault::Hang`].
    pub hang: f64,
}

impl Rates {
    /// The same rate for every fault.
    #[must_use]
    pub const fn each(rate: f64) -> Self {
        Self { before: rate, after: rate, delay: rate, hang: rate }
    }

    fn draw(self, at: f64) -> Option<Fault> {
        let mut edge = 0.0;
        let bands = [
            (Fault::Before, self.before),
            (Fault::After, self.after),
            (Fault::Delay, self.delay),
            (Fault::Hang, self.hang),
        ];
        bands.into_iter().find_map(|(fault, rate)| {
            edge += rate;
            (at < edge).then_some(fault)
        })
    }
}

/// Which faults meet which methods.
#[derive(Clone, Debug)]
pub struct FaultPlan {
    seed: u64,
    everywhere: Rates,
    methods: BTreeMap<Method, Rates>,
    delay: (Duration, Duration),
}

impl FaultPlan {
    /// No faults, drawn from `seed` where rates are set.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let delay = (Duration::from_millis(1), Duration::from_millis(500));
        Self { seed, everywhere: Rates::default(), methods: BTreeMap::new(), delay }
    }

    /// Rates of every method that has none of its own.
    #[must_use]
    pub fn everywhere(mut self, rates: Rates) -> Self {
        self.everywhere = rates;
        self
    }

    /// Rates of one method.
    #[must_use]
    pub fn on(mut self, method: Method, rates: Rates) -> Self {
        self.methods.insert(method, rates);
        self
    }

    /// Shortest and longest delay; 1 to 500 ms unless set.
    #[must_use]
    pub fn delay(mut self, shortest: Duration, longest: Duration) -> Self {
        self.delay = (shortest, longest);
        self
    }

    fn rates(&self, method: Method) -> Rates {
        self.methods.get(&method).copied().unwrap_or(self.everywhere)
    }
}

/// Steers the faults of one wrapped store and says what they did.
#[derive(Clone)]
pub struct Faults {
    state: Arc<State>,
}

struct State {
    on: AtomicBool,
    next: Mutex<BTreeMap<Method, Fault>>,
    done: Mutex<BTreeMap<(Method, Fault), u64>>,
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults").field("on", &self.is_on()).finish_non_exhaustive()
    }
}

impl Faults {
    fn new() -> Self {
        let state = State { on: AtomicBool::new(true), next: Mutex::default(), done: Mutex::default() };
        Self { state: Arc::new(state) }
    }

    /// Lets the drawn faults happen.
    pub fn start(&self) {
        self.state.on.store(true, Ordering::Relaxed);
    }

    /// Ends the drawn faults; what hangs goes on hanging.
    pub fn stop(&self) {
        self.state.on.store(false, Ordering::Relaxed);
    }

    /// Whether drawn faults happen.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.state.on.load(Ordering::Relaxed)
    }

    /// Makes the next call of a method meet this fault, whether faults are on or not.
    pub fn next(&self, method: Method, fault: Fault) {
        self.state.next.lock().unwrap_or_else(PoisonError::into_inner).insert(method, fault);
    }

    /// How often a method met a fault.
    #[must_use]
    pub fn count(&self, method: Method, fault: Fault) -> u64 {
        let done = self.state.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.get(&(method, fault)).copied().unwrap_or(0)
    }

    /// How often any method met a fault.
    #[must_use]
    pub fn total(&self, fault: Fault) -> u64 {
        let done = self.state.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.iter().filter(|((_, kind), _)| *kind == fault).map(|(_, count)| count).sum()
    }

    fn take_next(&self, method: Method) -> Option<Fault> {
        self.state.next.lock().unwrap_or_else(PoisonError::into_inner).remove(&method)
    }

    fn note(&self, method: Method, fault: Fault) {
        let mut done = self.state.done.lock().unwrap_or_else(PoisonError::into_inner);
        *done.entry((method, fault)).or_default() += 1;
    }
}

/// Draws a fault for every call, from a stream of the method's own.
pub(super) struct Injector {
    env: Env,
    plan: FaultPlan,
    streams: BTreeMap<Method, Rng>,
    faults: Faults,
}

impl fmt::Debug for Injector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Injector").field("plan", &self.plan).field("faults", &self.faults).finish_non_exhaustive()
    }
}

/// Names the wrapper that injects faults.
#[derive(Debug)]
pub struct WithFaults;

impl WithFaults {
    /// The store with the faults of a plan, which are on, and the handle that steers them.
    #[must_use]
    #[allow(clippy::new_ret_no_self, reason = "a wrapped store is a store")]
    pub fn new(inner: Arc<dyn Store>, plan: FaultPlan) -> (Arc<dyn Store>, Faults) {
        let root = Rng::seeded(plan.seed);
        let streams = Method::ALL.iter().map(|method| (*method, root.child(method.name()))).collect();
        let faults = Faults::new();
        let layer = Injector { env: inner.env().clone(), plan, streams, faults: faults.clone() };
        (Arc::new(Wrapped { inner, layer }), faults)
    }
}

impl Injector {
    fn draw(&self, method: Method) -> Option<Fault> {
        // Drawn for every call, so that steering does not shift the stream.
        let stream = self.streams.get(&method);
        let at = stream.map_or(1.0, |stream| stream.below(1 << 32) as f64 / (1u64 << 32) as f64);
        let drawn = self.plan.rates(method).draw(at).filter(|_| self.faults.is_on());
        self.faults.take_next(method).or(drawn)
    }
}

#[async_trait]
impl Layer for Injector {
    async fn around<T: Send + 'static>(&self, call: Call<T>) -> Result<T> {
        let method = call.method;
        let Some(fault) = self.draw(method) else { return call.first().await };
        self.faults.note(method, fault);
        let unavailable = || StoreError::new(ErrorKind::Unavailable, method.name()).with_source("injected fault");
        let stream = self.streams.get(&method);
        match fault {
            Fault::Before => Err(unavailable()),
            Fault::After => {
                // Whatever the call answered, its caller does not hear of it.
                let _ = call.first().await;
                Err(unavailable())
            }
            Fault::Delay => {
                let (shortest, longest) = self.plan.delay;
                self.env.sleep(stream.map_or(shortest, |stream| stream.between(shortest, longest))).await;
                call.first().await
            }
            Fault::Hang => {
                if stream.is_some_and(|stream| stream.chance(0.5)) {
                    let _ = call.first().await;
                }
                std::future::pending().await
            }
        }
    }
}
