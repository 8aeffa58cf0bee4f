//! The private runtime: one thread with a tokio current-thread runtime, which ends when its last holder is dropped.

use crate::clock::BoxFuture;
use crate::sync::lock;
use crate::tasks::Spawner;
use std::cell::Cell;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

thread_local! {
    static ON_RUNTIME: Cell<bool> = const { Cell::new(false) };
}

/// True on the thread of any private runtime.
pub(crate) fn on_runtime_thread() -> bool {
    ON_RUNTIME.with(Cell::get)
}

/// The holder's side of a private runtime thread. Dropping it tells the thread to end and does not wait: the drop may
/// run on that very thread, or on one that a task of it is waiting for.
pub(crate) struct RuntimeThread {
    handle: Handle,
    thread: ThreadId,
    stop: Mutex<Option<oneshot::Sender<()>>>,
}

impl RuntimeThread {
    /// Starts the thread, named `name`.
    pub(crate) fn start(name: &str) -> io::Result<Arc<RuntimeThread>> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            ON_RUNTIME.with(|on| on.set(true));
            // The sender says nothing: it is dropped, which ends the wait.
            let _ = runtime.block_on(stopped);
        })?;
        Ok(Arc::new(RuntimeThread { handle, thread: thread.thread().id(), stop: Mutex::new(Some(stop)) }))
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// True on this runtime's own thread.
    pub(crate) fn is_current(&self) -> bool {
        thread::current().id() == self.thread
    }
}

impl Drop for RuntimeThread {
    fn drop(&mut self) {
        drop(lock(&self.stop).take());
    }
}

impl fmt::Debug for RuntimeThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeThread").field("thread", &self.thread).finish_non_exhaustive()
    }
}

impl Spawner for RuntimeThread {
    fn spawn(&self, _name: &Arc<str>, future: BoxFuture<'static, ()>) {
        // The join handle is not needed: the future itself reports its end, its panic and its drop.
        drop(self.handle.spawn(future));
    }

    fn has_threads(&self) -> bool {
        true
    }

    fn panicked(&self, _name: &Arc<str>, _text: &str) {}

    fn on_caller(&self) -> Option<Arc<dyn Spawner>> {
        if on_runtime_thread() {
            return None;
        }
        Handle::try_current().ok().map(|handle| Arc::new(CallerRuntime(handle)) as Arc<dyn Spawner>)
    }
}

/// A tokio runtime of the user's. When it ends, tasks that run there are dropped and later ones at once.
#[derive(Debug)]
struct CallerRuntime(Handle);

impl Spawner for CallerRuntime {
    fn spawn(&self, _name: &Arc<str>, future: BoxFuture<'static, ()>) {
        drop(self.0.spawn(future));
    }

    fn has_threads(&self) -> bool {
        true
    }

    fn panicked(&self, _name: &Arc<str>, _text: &str) {}
}
