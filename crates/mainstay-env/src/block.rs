//! Waiting without a runtime: [`block_on`] for a thread, [`yield_now`] for a task.

use crate::runtime::on_runtime_thread;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// Runs `future` to its end on this thread, which sleeps while it waits. Needs no runtime.
///
/// For threads of one's own and for tests. Panics on the runtime thread of an [`Env`](crate::Env), whose tasks would all
/// stand still; in simulation use [`Sim::block_on`](crate::Sim::block_on).
///
/// ```
/// assert_eq!(mainstay_env::block_on(async { 1 + 1 }), 2);
/// ```
pub fn block_on<F: Future>(future: F) -> F::Output {
    assert!(!on_runtime_thread(), "block_on was called on the runtime thread, whose tasks it would stop");
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut cx = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut cx) {
            return value;
        }
        thread::park();
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Lets other ready tasks run first. Works on every executor, the simulation's included.
pub fn yield_now() -> YieldNow {
    YieldNow { yielded: false }
}

/// The future of [`yield_now`]: pending once.
#[derive(Debug)]
#[must_use = "a future does nothing unless awaited"]
pub struct YieldNow {
    yielded: bool,
}

impl Future for YieldNow {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.yielded {
            return Poll::Ready(());
        }
        self.yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
