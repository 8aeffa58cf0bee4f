//! [`Env`]: the one value through which a process reads clocks, draws random numbers and runs tasks.

use crate::clock::{BoxFuture, Clock, SystemClock};
use crate::ids::{Ids, nonce};
use crate::rng::Rng;
use crate::runtime::RuntimeThread;
use crate::tasks::Tasks;
use crate::{Monotonic, Timestamp};
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// Characters of a nonce: 60 random bits.
const NONCE_LEN: usize = 12;

/// Clock, randomness and tasks of one process. A cheap clone.
///
/// ```no_run
/// use mainstay_env::Env;
/// use std::time::Duration;
///
/// # fn main() -> std::io::Result<()> {
/// let env = Env::system("mainstay")?;
/// let task = env.tasks().spawn("greet", {
///     let env = env.clone();
///     async move { env.sleep(Duration::from_millis(5)).await }
/// });
/// # drop(task);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Env {
    inner: Arc<Inner>,
}

struct Inner {
    name: Arc<str>,
    clock: Arc<dyn Clock>,
    rng: Rng,
    nonces: Rng,
    ids: Ids,
    tasks: Tasks,
}

impl Env {
    /// The real machine: its clock, its entropy, and a private runtime on a thread named `name`.
    ///
    /// The thread ends with the last clone of this `Env` and of the clock and tasks got from it; tasks still running are
    /// dropped then. Errors: what the operating system says when it has no thread to give.
    pub fn system(name: impl Into<Arc<str>>) -> io::Result<Env> {
        let name = name.into();
        let runtime = RuntimeThread::start(&name)?;
        let clock = Arc::new(SystemClock::new(runtime.clone()));
        let tasks = Tasks::new(runtime, clock.clone());
        Ok(Env::new(name, clock, Rng::from_entropy(), tasks))
    }

    pub(crate) fn new(name: Arc<str>, clock: Arc<dyn Clock>, rng: Rng, tasks: Tasks) -> Env {
        let ids = Ids::new(clock.clone(), rng.child("ids"));
        let nonces = rng.child("nonces");
        Env { inner: Arc::new(Inner { name, clock, rng, nonces, ids, tasks }) }
    }

    /// This environment with another clock, its tasks shared: a virtual clock over a real runtime, for instance.
    pub fn with_clock(&self, clock: Arc<dyn Clock>) -> Env {
        let Inner { name, rng, nonces, ids, tasks, .. } = &*self.inner;
        let ids = ids.with(clock.clone(), ids.rng().clone());
        let tasks = tasks.with_clock(clock.clone());
        let inner = Inner { name: name.clone(), clock, rng: rng.clone(), nonces: nonces.clone(), ids, tasks };
        Env { inner: Arc::new(inner) }
    }

    /// This environment with another random source, and so other ids and nonces; its tasks are shared.
    pub fn with_rng(&self, rng: Rng) -> Env {
        let Inner { name, clock, ids, tasks, .. } = &*self.inner;
        let ids = ids.with(clock.clone(), rng.child("ids"));
        let nonces = rng.child("nonces");
        let inner = Inner { name: name.clone(), clock: clock.clone(), rng, nonces, ids, tasks: tasks.clone() };
        Env { inner: Arc::new(inner) }
    }

    /// The name of the runtime thread, or of the simulated process.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.clock
    }

    /// The random source. A part that draws often takes a [`child`](Rng::child).
    pub fn rng(&self) -> &Rng {
        &self.inner.rng
    }

    /// The tasks of the process. A part that stops on its own takes a [`group`](Tasks::group).
    pub fn tasks(&self) -> &Tasks {
        &self.inner.tasks
    }

    /// The generator of UUIDv7 ids.
    pub fn ids(&self) -> &Ids {
        &self.inner.ids
    }

    /// A short random text (12 characters of base 32), for instance for an executor's id.
    pub fn nonce(&self) -> String {
        nonce(&self.inner.nonces, NONCE_LEN)
    }

    /// The wall time.
    pub fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// The monotonic time.
    pub fn monotonic(&self) -> Monotonic {
        self.inner.clock.monotonic()
    }

    /// The monotonic time in `after`.
    pub fn deadline(&self, after: Duration) -> Monotonic {
        self.monotonic() + after
    }

    /// Ends after `duration`, counted from this call; never for one of 1,000 years or more.
    pub fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.sleep_until(self.deadline(duration))
    }

    /// Ends when the monotonic clock reads `at`.
    pub fn sleep_until(&self, at: Monotonic) -> BoxFuture<'static, ()> {
        self.inner.clock.sleep_until(at)
    }

    /// The value of `future`, or `Elapsed` when `limit` passes first, counted from this call. A future that is ready wins
    /// over a limit that has passed.
    ///
    /// ```
    /// let sim = mainstay_env::Sim::new(1);
    /// let env = sim.env("shop");
    /// let limited = env.timeout(std::time::Duration::from_secs(30), std::future::pending::<()>());
    /// assert!(sim.block_on(limited).is_err());
    /// ```
    pub fn timeout<F: Future>(
        &self,
        limit: Duration,
        future: F,
    ) -> impl Future<Output = Result<F::Output, Elapsed>> + use<F> {
        self.timeout_at(self.deadline(limit), future)
    }

    /// The value of `future`, or `Elapsed` when the monotonic clock reads `deadline` first.
    pub fn timeout_at<F: Future>(
        &self,
        deadline: Monotonic,
        future: F,
    ) -> impl Future<Output = Result<F::Output, Elapsed>> + use<F> {
        let mut timer = self.sleep_until(deadline);
        async move {
            let mut future = pin!(future);
            poll_fn(|cx| {
                if let Poll::Ready(value) = future.as_mut().poll(cx) {
                    return Poll::Ready(Ok(value));
                }
                timer.as_mut().poll(cx).map(|()| Err(Elapsed))
            })
            .await
        }
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { name, clock, rng, tasks, .. } = &*self.inner;
        f.debug_struct("Env")
            .field("name", name)
            .field("clock", clock)
            .field("rng", rng)
            .field("tasks", tasks)
            .finish_non_exhaustive()
    }
}

/// A limit passed before the future was ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed;

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("time limit passed")
    }
}

impl std::error::Error for Elapsed {}
