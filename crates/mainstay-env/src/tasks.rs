//! The owner of everything that runs: named spawning, groups, threads, drain and abort. Nothing runs detached.

use crate::Monotonic;
use crate::clock::{BoxFuture, Clock};
use crate::sync::lock;
use crate::task::{Control, Report, Running, Task, TaskError, panic_text};
use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

/// How long a drain waits, after its deadline, for aborted tasks to be dropped. One that blocks its thread never is.
const ABORT_GRACE: Duration = Duration::from_secs(1);

/// What runs futures: the private runtime, or a process of the simulation.
pub(crate) trait Spawner: fmt::Debug + Send + Sync {
    /// Runs `future`, or drops it at once when nothing runs any more.
    fn spawn(&self, name: &Arc<str>, future: BoxFuture<'static, ()>);

    /// False where a thread would break determinism.
    fn has_threads(&self) -> bool;

    /// Hears of a task's panic.
    fn panicked(&self, name: &Arc<str>, text: &str);

    /// What runs futures on the tokio runtime of the calling thread, where there is one that may be used.
    fn on_caller(&self) -> Option<Arc<dyn Spawner>> {
        None
    }
}

/// Spawns tasks and owns them until they end. Clones are the same group.
///
/// ```
/// use mainstay_env::{Sim, TaskError};
///
/// let sim = Sim::new(1);
/// let tasks = sim.env("shop").tasks().group("engine");
/// let task = tasks.spawn("forever", std::future::pending::<()>());
/// assert_eq!(tasks.live(), ["engine/forever"]);
/// task.abort();
/// assert_eq!(sim.block_on(task), Err(TaskError::Aborted));
/// ```
#[derive(Clone)]
pub struct Tasks {
    group: Arc<Group>,
    spawner: Arc<dyn Spawner>,
    clock: Arc<dyn Clock>,
}

impl Tasks {
    pub(crate) fn new(spawner: Arc<dyn Spawner>, clock: Arc<dyn Clock>) -> Tasks {
        Tasks { group: Arc::new(Group::new(None, None)), spawner, clock }
    }

    /// The same tasks with deadlines read on another clock.
    pub(crate) fn with_clock(&self, clock: Arc<dyn Clock>) -> Tasks {
        Tasks { clock, ..self.clone() }
    }

    /// The same group, whose tasks run from now on on the tokio runtime that the calling thread is in: user code that
    /// blocks there does not hold up the private runtime.
    ///
    /// Threads without a runtime, the private runtime's own and simulations have none: the tasks stay where they are.
    pub fn on_caller(&self) -> Tasks {
        match self.spawner.on_caller() {
            Some(spawner) => Tasks { spawner, ..self.clone() },
            None => self.clone(),
        }
    }

    /// A group inside this one: what it spawns is also owned by this one, and its drain and aborts cover only its own.
    pub fn group(&self, name: impl Into<Arc<str>>) -> Tasks {
        let group = Group::new(Some(self.group.clone()), Some(self.group.full_name(&name.into())));
        Tasks { group: Arc::new(group), ..self.clone() }
    }

    /// Runs `future` as a task of this group. In a closed group, or when the runtime or the process has ended, the future
    /// is dropped and the task answers `Aborted`.
    pub fn spawn<T: Send + 'static>(
        &self,
        name: impl Into<Arc<str>>,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Task<T> {
        let control = Control::new(self.group.full_name(&name.into()), false);
        let (result, receiver) = oneshot::channel();
        let task = Task::new(control.clone(), receiver);
        if let Some(membership) = self.join(&control) {
            let running = Running::new(Box::pin(future), Report { membership, result });
            self.spawner.spawn(&control.name, Box::pin(running));
        } else {
            control.finish();
        }
        task
    }

    /// Runs `body`, which may block, on a thread of its own named `name`. A drain waits for it and joins it; nothing can
    /// abort it, so it must be told to end by other means.
    ///
    /// Errors: `Unsupported` in simulation; what the operating system says when it has no thread to give.
    pub fn thread<T: Send + 'static>(
        &self,
        name: impl Into<Arc<str>>,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<Task<T>> {
        let control = Control::new(self.group.full_name(&name.into()), true);
        if !self.spawner.has_threads() {
            let text = format!("thread {} refused: a simulation has no threads", control.name);
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        self.group.root().join_ended_threads();
        let (result, receiver) = oneshot::channel();
        let task = Task::new(control.clone(), receiver);
        let Some(membership) = self.join(&control) else {
            control.finish();
            return Ok(task);
        };
        let report = Report { membership, result };
        let handle = thread::Builder::new().name(control.name.to_string()).spawn(move || {
            let outcome = catch_unwind(AssertUnwindSafe(body));
            report.send(outcome.map_err(|panic| TaskError::Panicked(panic_text(&*panic))));
        })?;
        lock(&self.group.root().threads).push((control, handle));
        Ok(task)
    }

    /// Waits for every task and thread of the group, those spawned meanwhile included, aborts what is left at `deadline`
    /// and returns its names (a thread goes on, but is named). The group is closed then.
    ///
    /// Returns within a second of the deadline. A task that drains its own group waits for itself.
    pub async fn drain(&self, deadline: Monotonic) -> Vec<String> {
        let left = if self.emptied_before(deadline, Wanted::Everything).await {
            Vec::new()
        } else {
            self.close();
            let left = self.group.abort_all();
            self.emptied_before(self.clock.monotonic() + ABORT_GRACE, Wanted::Tasks).await;
            left
        };
        self.group.root().join_ended_threads();
        left
    }

    /// Drops every task of the group at its next await, as [`Task::abort`]. The group stays open.
    pub fn abort_all(&self) {
        self.group.abort_all();
    }

    /// Refuses every later spawn into this group and the groups in it.
    pub fn close(&self) {
        lock(&self.group.state).closed = true;
    }

    /// True when spawns are refused.
    pub fn is_closed(&self) -> bool {
        self.group.path().any(|group| lock(&group.state).closed)
    }

    /// The names of the tasks and threads that have not ended, in the order in which they were spawned.
    pub fn live(&self) -> Vec<String> {
        lock(&self.group.state).members.values().map(|control| control.name.to_string()).collect()
    }

    /// Enters `control` in this group and all around it; `None` when one of them is closed.
    fn join(&self, control: &Arc<Control>) -> Option<Membership> {
        let id = {
            let mut next = lock(&self.group.root().next_id);
            *next += 1;
            *next
        };
        let membership = Membership {
            id,
            control: control.clone(),
            group: self.group.clone(),
            spawner: Arc::downgrade(&self.spawner),
        };
        let entered = self.group.path().all(|group| {
            let mut state = lock(&group.state);
            if !state.closed {
                state.members.insert(id, control.clone());
            }
            !state.closed
        });
        entered.then_some(membership)
    }

    /// Waits until the group has nobody `wanted`, and closes it in the same breath when it is wholly empty.
    async fn emptied_before(&self, deadline: Monotonic, wanted: Wanted) -> bool {
        let mut timer = self.clock.sleep_until(deadline);
        let mut emptied = pin!(self.group.emptied(wanted));
        poll_fn(|cx| {
            if emptied.as_mut().poll(cx).is_ready() {
                return Poll::Ready(true);
            }
            timer.as_mut().poll(cx).map(|()| false)
        })
        .await
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks").field("group", &self.group.name).field("live", &self.live()).finish_non_exhaustive()
    }
}

/// Whom a drain waits for.
#[derive(Clone, Copy)]
enum Wanted {
    Everything,
    Tasks,
}

/// A group's members. A member is entered in its own group and in every group around it.
struct Group {
    name: Option<Arc<str>>,
    parent: Option<Arc<Group>>,
    state: Mutex<GroupState>,
    left: Notify,
    // Of the outermost group, for all inside it.
    next_id: Mutex<u64>,
    threads: Mutex<Vec<(Arc<Control>, JoinHandle<()>)>>,
}

#[derive(Default)]
struct GroupState {
    closed: bool,
    members: BTreeMap<u64, Arc<Control>>,
}

impl Group {
    fn new(parent: Option<Arc<Group>>, name: Option<Arc<str>>) -> Group {
        Group {
            name,
            parent,
            state: Mutex::default(),
            left: Notify::new(),
            next_id: Mutex::default(),
            threads: Mutex::default(),
        }
    }

    fn full_name(&self, name: &Arc<str>) -> Arc<str> {
        match &self.name {
            Some(group) => format!("{group}/{name}").into(),
            None => name.clone(),
        }
    }

    /// This group and those around it, outwards.
    fn path(&self) -> impl Iterator<Item = &Group> {
        std::iter::successors(Some(self), |group| group.parent.as_deref())
    }

    fn root(&self) -> &Group {
        self.path().last().unwrap_or(self)
    }

    fn abort_all(&self) -> Vec<String> {
        let members: Vec<_> = lock(&self.state).members.values().cloned().collect();
        for member in &members {
            member.abort();
        }
        members.iter().map(|member| member.name.to_string()).collect()
    }

    async fn emptied(&self, wanted: Wanted) {
        loop {
            let left = self.left.notified();
            {
                let mut state = lock(&self.state);
                if state.members.is_empty() {
                    state.closed = true;
                    return;
                }
                if matches!(wanted, Wanted::Tasks) && state.members.values().all(|member| member.is_thread) {
                    return;
                }
            }
            left.await;
        }
    }

    /// Joins the threads whose work is over; each is at most a few instructions from its end.
    fn join_ended_threads(&self) {
        let ended: Vec<_> = lock(&self.threads).extract_if(.., |(control, _)| control.is_finished()).collect();
        for (_, handle) in ended {
            // The body's panic was caught and reported before.
            let _ = handle.join();
        }
    }
}

/// A task's place in its groups, given up by dropping it.
pub(crate) struct Membership {
    id: u64,
    control: Arc<Control>,
    group: Arc<Group>,
    spawner: std::sync::Weak<dyn Spawner>,
}

impl Membership {
    pub(crate) fn control(&self) -> &Arc<Control> {
        &self.control
    }

    pub(crate) fn panicked(&self, text: &str) {
        if let Some(spawner) = self.spawner.upgrade() {
            spawner.panicked(&self.control.name, text);
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.control.finish();
        for group in self.group.path() {
            let member = lock(&group.state).members.remove(&self.id);
            drop(member);
            group.left.notify_waiters();
        }
    }
}
