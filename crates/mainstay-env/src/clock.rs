//! The clock: wall time, monotonic time and sleeping, for the real machine and, by another type, for simulation.

use crate::runtime::{RuntimeThread, on_runtime_thread};
use crate::{Monotonic, Timestamp};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// An owned future that may move between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where time comes from.
///
/// Wall time may jump either way; monotonic time never goes back. A sleep ends when the monotonic clock has reached its
/// end, never before, and leaves nothing behind when it is dropped.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The wall time.
    fn now(&self) -> Timestamp;

    /// The monotonic time.
    fn monotonic(&self) -> Monotonic;

    /// Ends when the monotonic clock reads `at` or more; at once when it already does, never for an `at` 1,000 years
    /// away. May be called and awaited on any thread, inside a tokio runtime or not.
    fn sleep_until(&self, at: Monotonic) -> BoxFuture<'static, ()>;
}

/// The machine's clock; its timers run on the private runtime thread of an [`Env`](crate::Env).
///
/// Got from [`Env::system`](crate::Env::system); holding it keeps that thread.
#[derive(Clone)]
pub struct SystemClock {
    runtime: Arc<RuntimeThread>,
    origin: Instant,
}

impl SystemClock {
    pub(crate) fn new(runtime: Arc<RuntimeThread>) -> SystemClock {
        SystemClock { runtime, origin: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let now = SystemTime::now();
        match now.duration_since(UNIX_EPOCH) {
            Ok(after) => Timestamp::EPOCH + after,
            Err(before) => Timestamp::EPOCH - before.duration(),
        }
    }

    fn monotonic(&self) -> Monotonic {
        Monotonic(self.origin.elapsed())
    }

    fn sleep_until(&self, at: Monotonic) -> BoxFuture<'static, ()> {
        let instant = if at.is_never() { None } else { self.origin.checked_add(at.0) };
        match instant {
            Some(instant) => Box::pin(SystemSleep::new(&self.runtime, instant)),
            None => Box::pin(std::future::pending()),
        }
    }
}

impl fmt::Debug for SystemClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SystemClock").field("up", &self.origin.elapsed()).finish_non_exhaustive()
    }
}

/// A timer of the private runtime.
///
/// Awaited elsewhere it keeps the runtime, which must live to fire it. Awaited on the runtime thread it must not: a task
/// that sleeps in a loop would keep the thread that runs it.
struct SystemSleep {
    inner: Pin<Box<tokio::time::Sleep>>,
    runtime: Weak<RuntimeThread>,
    keep: Option<Arc<RuntimeThread>>,
}

impl SystemSleep {
    fn new(runtime: &Arc<RuntimeThread>, at: Instant) -> SystemSleep {
        let _context = runtime.handle().enter();
        let inner = Box::pin(tokio::time::sleep_until(at.into()));
        SystemSleep { inner, runtime: Arc::downgrade(runtime), keep: Some(runtime.clone()) }
    }
}

impl Future for SystemSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let holder = this.keep.take().or_else(|| this.runtime.upgrade());
        match holder {
            Some(runtime) if !runtime.is_current() => this.keep = Some(runtime),
            Some(_) => {}
            // The runtime has ended, and its timers panic from then on: nobody is left to keep this one's time.
            None if !on_runtime_thread() => return Poll::Pending,
            None => {}
        }
        this.inner.as_mut().poll(cx)
    }
}
