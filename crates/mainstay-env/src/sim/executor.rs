//! The seeded executor: tasks by number, the ready ones in a list, the next one drawn.
//!
//! Futures and wakers are polled, woken and dropped with the lock released: each may call back into the executor.

use crate::clock::BoxFuture;
use crate::rng::Rng;
use crate::sync::lock;
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Wake, Waker};

pub(super) struct Executor {
    rng: Rng,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    // Order is by wake and by draw, so that it depends on the seed alone.
    ready: Vec<u64>,
    tasks: BTreeMap<u64, Entry>,
    next_task: u64,
    next_process: u64,
    alive: BTreeSet<u64>,
    panics: Vec<String>,
    polls: u64,
    trace: Option<Vec<Arc<str>>>,
}

struct Entry {
    process: u64,
    label: Arc<str>,
    waker: Waker,
    // Taken out while it is polled.
    future: Option<BoxFuture<'static, ()>>,
    woken: bool,
}

/// What is polled next.
pub(super) enum Picked {
    /// The future of `block_on`.
    Root,
    /// A task, taken out for its poll.
    Task(Taken),
}

/// A task on its way through a poll.
pub(super) struct Taken {
    id: u64,
    waker: Waker,
    future: BoxFuture<'static, ()>,
}

impl Executor {
    pub(super) fn new(rng: Rng) -> Arc<Executor> {
        Arc::new(Executor { rng, state: Mutex::default() })
    }

    pub(super) fn new_process(&self) -> u64 {
        let mut state = lock(&self.state);
        state.next_process += 1;
        let id = state.next_process;
        state.alive.insert(id);
        id
    }

    /// Adds a ready task; drops `future` at once when the process is dead.
    pub(super) fn spawn(self: &Arc<Self>, process: u64, label: Arc<str>, future: BoxFuture<'static, ()>) {
        let _refused = {
            let mut state = lock(&self.state);
            if state.alive.contains(&process) {
                state.next_task += 1;
                let id = state.next_task;
                let waker = Waker::from(Arc::new(TaskWaker { executor: Arc::downgrade(self), id }));
                state.tasks.insert(id, Entry { process, label, waker, future: Some(future), woken: true });
                state.ready.push(id);
                None
            } else {
                Some(future)
            }
        };
    }

    /// Draws one of the ready tasks and, when it is ready too, the root.
    pub(super) fn pick(&self, root_ready: bool) -> Option<Picked> {
        let mut state = lock(&self.state);
        let count = state.ready.len() + usize::from(root_ready);
        if count == 0 {
            return None;
        }
        let index = self.rng.index(count);
        if index == state.ready.len() {
            return Some(Picked::Root);
        }
        let id = state.ready.swap_remove(index);
        state.polls += 1;
        let State { tasks, trace, .. } = &mut *state;
        let entry = tasks.get_mut(&id).expect("a ready task exists: ending and killing take it off the list");
        entry.woken = false;
        if let Some(trace) = trace {
            trace.push(entry.label.clone());
        }
        let future = entry.future.take().expect("a task in its poll is not listed as ready");
        Some(Picked::Task(Taken { id, waker: entry.waker.clone(), future }))
    }

    /// Polls a task once and puts it back, unless it has ended or was killed meanwhile.
    pub(super) fn poll(&self, task: Taken) {
        let Taken { id, waker, mut future } = task;
        let poll = future.as_mut().poll(&mut Context::from_waker(&waker));
        let _done = match poll {
            Poll::Ready(()) => {
                // Dropped while the task still counts as alive, as a drop at an await would be.
                drop(future);
                (None, lock(&self.state).tasks.remove(&id))
            }
            Poll::Pending => (lock(&self.state).put_back(id, future), None),
        };
    }

    /// Ends a process and takes out its tasks, for the caller to drop. One that is in its poll is dropped after it.
    pub(super) fn kill(&self, process: u64) -> Killed {
        let mut state = lock(&self.state);
        state.alive.remove(&process);
        let (killed, kept) = mem::take(&mut state.tasks).into_iter().partition(|(_, entry)| entry.process == process);
        state.tasks = kept;
        let State { ready, tasks, .. } = &mut *state;
        ready.retain(|id| tasks.contains_key(id));
        Killed { _tasks: killed }
    }

    pub(super) fn live(&self) -> Vec<String> {
        lock(&self.state).tasks.values().map(|entry| entry.label.to_string()).collect()
    }

    pub(super) fn ready(&self) -> Vec<String> {
        let state = lock(&self.state);
        state.ready.iter().filter_map(|id| state.tasks.get(id)).map(|entry| entry.label.to_string()).collect()
    }

    pub(super) fn panicked(&self, line: String) {
        lock(&self.state).panics.push(line);
    }

    pub(super) fn panics(&self) -> Vec<String> {
        lock(&self.state).panics.clone()
    }

    pub(super) fn polls(&self) -> u64 {
        lock(&self.state).polls
    }

    pub(super) fn record_trace(&self) {
        lock(&self.state).trace = Some(Vec::new());
    }

    pub(super) fn take_trace(&self) -> Vec<String> {
        let mut state = lock(&self.state);
        let trace = state.trace.as_mut().map(mem::take).unwrap_or_default();
        trace.iter().map(|label| label.to_string()).collect()
    }
}

impl State {
    /// Gives the future back when its task was killed, for the caller to drop.
    fn put_back(&mut self, id: u64, future: BoxFuture<'static, ()>) -> Option<BoxFuture<'static, ()>> {
        let Some(entry) = self.tasks.get_mut(&id) else { return Some(future) };
        entry.future = Some(future);
        if entry.woken {
            self.ready.push(id);
        }
        None
    }

    fn wake(&mut self, id: u64) {
        let Some(entry) = self.tasks.get_mut(&id) else { return };
        if !mem::replace(&mut entry.woken, true) && entry.future.is_some() {
            self.ready.push(id);
        }
    }
}

/// The tasks of a killed process, in the order in which they were spawned.
pub(super) struct Killed {
    _tasks: BTreeMap<u64, Entry>,
}

struct TaskWaker {
    executor: Weak<Executor>,
    id: u64,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(executor) = self.executor.upgrade() {
            lock(&executor.state).wake(self.id);
        }
    }
}
