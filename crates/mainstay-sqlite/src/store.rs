//! [`Sqlite`]: the handle, its threads, and how a call gets to them.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use mainstay_env::{Env, Task, Tasks};
use mainstay_store::{
    AdminStore, Capabilities, Capability, ErrorKind, Result, ScheduleStore, SignalStore, Store, StoreClock, StoreError,
    Wakeups,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::call::{self, Call, OnBusy, Read, Write};
use crate::clock::Time;
use crate::config::Config;
use crate::error;
use crate::hints::Hints;
use crate::locks::Locks;
use crate::open;
use crate::pace::Pace;
use crate::reader::{Reader, Waiting};
use crate::sql::{self, Cached};
use crate::tx::{Snapshot, Tx};
use crate::writer::Writer;

/// Most calls that wait to write, and to read; the next one waits for a place before it is sent.
const QUEUE: usize = 4_096;

/// A store in one SQLite file, shared with every other process that opens the file. Cheap to clone.
///
/// When the last clone is dropped, its locks are let go at once, so that its executors are known to be dead; its threads
/// finish what was sent to them, fold the log into the file and end. [`Sqlite::close`] waits for that.
#[derive(Clone)]
pub struct Sqlite {
    pub(crate) inner: Arc<Inner>,
}

/// What the clones share.
pub(crate) struct Inner {
    pub(crate) env: Env,
    pub(crate) config: Config,
    pub(crate) locks: Arc<Locks>,
    wakeups: Wakeups,
    writes: Lane<dyn Write>,
    reads: Lane<dyn Read>,
    /// Somebody reads or listens, and so waits for what others write.
    expected: Arc<AtomicBool>,
    threads: Mutex<Vec<Task<()>>>,
}

/// The way to a thread, with its places.
struct Lane<J: ?Sized> {
    jobs: Sender<Box<J>>,
    places: Arc<Semaphore>,
}

impl<J: ?Sized> Lane<J> {
    fn new(jobs: Sender<Box<J>>) -> Self {
        Self { jobs, places: Arc::new(Semaphore::new(QUEUE)) }
    }

    async fn place(&self, op: &'static str) -> Result<OwnedSemaphorePermit> {
        self.places.clone().acquire_owned().await.map_err(|_| call::closed(op))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.locks.close();
    }
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sqlite").field("path", &self.inner.config.path).finish_non_exhaustive()
    }
}

impl Sqlite {
    /// Opens a file, makes it where it is missing, and brings its tables up to date.
    ///
    /// Needs threads, which a simulation has not. Waits up to the configured patience for other processes.
    ///
    /// # Errors
    /// `Invalid` for a path that names no file, for one without its directory, and for another program's database; `Corrupt` for
    /// what is no database, `Denied` for a file that may not be written, `Unsupported` without threads, `Full`, `Unavailable`.
    pub async fn open(env: &Env, config: impl Into<Config>, clock: StoreClock) -> Result<Self> {
        let config = config.into();
        let time = Time::new(env, clock);
        let locks = Arc::new(Locks::beside(&config.path, env));
        let wakeups = if config.silent { Wakeups::silent() } else { Wakeups::new() };
        let tasks = env.tasks().group("sqlite");
        let (writes, jobs) = mpsc::channel();
        let writer = Opening { env: env.clone(), config: config.clone(), time: time.clone() };
        let (opened, opening) = oneshot::channel();
        let expected = Arc::new(AtomicBool::new(true));
        let parts = Parts { locks: locks.clone(), wakeups: wakeups.clone(), expected: expected.clone() };
        let mut threads = vec![thread(&tasks, "writer", move || writer.write(parts, jobs, opened))?];
        opening.await.map_err(|_| call::closed("open"))??;
        let (reads, jobs) = mpsc::channel();
        let jobs = Arc::new(Mutex::new(jobs));
        for number in 0..config.readers.max(1) {
            let reader = Opening { env: env.clone(), config: config.clone(), time: time.clone() };
            let (opened, opening) = oneshot::channel();
            let jobs = jobs.clone();
            threads.push(thread(&tasks, &format!("reader-{number}"), move || reader.read(jobs, opened))?);
            opening.await.map_err(|_| call::closed("open"))??;
        }
        let (writes, reads, threads) = (Lane::new(writes), Lane::new(reads), Mutex::new(threads));
        let inner = Inner { env: env.clone(), config, locks, wakeups, writes, reads, expected, threads };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Gives this handle up and waits until the threads have ended, which they do when every clone is gone.
    pub async fn close(self) {
        let threads = std::mem::take(&mut *self.inner.threads.lock().unwrap_or_else(PoisonError::into_inner));
        drop(self);
        for thread in threads {
            // A panic was reported by whoever owns the threads.
            let _ = thread.await;
        }
    }

    /// Runs `body` in a transaction of the writing thread.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        op: &'static str,
        body: impl FnMut(&mut Tx<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        self.send_write(op, self.inner.config.patience, None, body).await
    }

    /// The same for a claim, which says that it has met another process instead of waiting for it.
    pub(crate) async fn claim<T: Send + 'static>(
        &self,
        op: &'static str,
        on_busy: OnBusy<T>,
        body: impl FnMut(&mut Tx<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        self.send_write(op, self.inner.config.claim_patience, Some(on_busy), body).await
    }

    async fn send_write<T: Send + 'static>(
        &self,
        op: &'static str,
        patience: std::time::Duration,
        on_busy: Option<OnBusy<T>>,
        body: impl FnMut(&mut Tx<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let permit = self.inner.writes.place(op).await?;
        let (reply, answer) = oneshot::channel();
        let deadline = self.inner.env.deadline(patience);
        let job = Call { op, deadline, body, value: None, reply, on_busy, _permit: permit };
        self.inner.writes.jobs.send(Box::new(job)).map_err(|_| call::closed(op))?;
        answer.await.map_err(|_| call::closed(op))?
    }

    /// Runs `body` on one snapshot, on a reading thread.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        op: &'static str,
        body: impl FnMut(&Snapshot<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        self.inner.expected.store(true, Ordering::Relaxed);
        let permit = self.inner.reads.place(op).await?;
        let (reply, answer) = oneshot::channel();
        let deadline = self.inner.env.deadline(self.inner.config.patience);
        let job = Call { op, deadline, body, value: None, reply, on_busy: None, _permit: permit };
        self.inner.reads.jobs.send(Box::new(job)).map_err(|_| call::closed(op))?;
        answer.await.map_err(|_| call::closed(op))?
    }
}

/// What a thread needs to open its connection.
struct Opening {
    env: Env,
    config: Config,
    time: Time,
}

/// What the writing thread shares with the handles.
struct Parts {
    locks: Arc<Locks>,
    wakeups: Wakeups,
    expected: Arc<AtomicBool>,
}

type Opened = oneshot::Sender<Result<()>>;

impl Opening {
    /// The body of the writing thread.
    fn write(self, parts: Parts, jobs: mpsc::Receiver<Box<dyn Write>>, opened: Opened) {
        let Parts { locks, wakeups, expected } = parts;
        let start = || {
            open::check(&self.config.path)?;
            let conn = open::writer(&self.config, &self.env)?;
            let state = || -> rusqlite::Result<(Hints, Pace)> {
                let is_named = |name: &str| -> rusqlite::Result<bool> {
                    Ok(conn.maybe(sql::LOCK_NAMED, [name], |_| Ok(()))?.is_some())
                };
                locks.sweep(is_named)?;
                Ok((Hints::from_now(&conn)?, Pace::new(open::version(&conn)?)))
            };
            let (hints, pace) = state().map_err(|error| error::failed("open", error))?;
            Ok((conn, hints, pace))
        };
        match start() {
            Ok((conn, hints, pace)) => {
                // Where nobody waits for the answer, nobody sends calls either, and the thread ends at once.
                let _ = opened.send(Ok(()));
                Writer { conn, env: self.env, time: self.time, wakeups, locks, jobs, hints, pace, expected }.run();
            }
            Err(error) => drop(opened.send(Err(error))),
        }
    }

    /// The body of a reading thread.
    fn read(self, jobs: Waiting, opened: Opened) {
        match open::reader(&self.config, &self.env) {
            Ok(conn) => {
                let _ = opened.send(Ok(()));
                Reader { conn, env: self.env, time: self.time, jobs }.run();
            }
            Err(error) => drop(opened.send(Err(error))),
        }
    }
}

fn thread(tasks: &Tasks, name: &str, body: impl FnOnce() + Send + 'static) -> Result<Task<()>> {
    tasks.thread(name, body).map_err(|error| {
        let unsupported = error.kind() == std::io::ErrorKind::Unsupported;
        let kind = if unsupported { ErrorKind::Unsupported } else { ErrorKind::Unavailable };
        StoreError::new(kind, "open").with_source(error)
    })
}

impl Store for Sqlite {
    fn capabilities(&self) -> Capabilities {
        Capabilities::none().with(Capability::Durable).with(Capability::Shared).with(Capability::ProvesDeath)
    }

    fn env(&self) -> &Env {
        &self.inner.env
    }

    fn wakeups(&self) -> &Wakeups {
        self.inner.expected.store(true, Ordering::Relaxed);
        &self.inner.wakeups
    }
}

#[async_trait]
impl SignalStore for Sqlite {}

#[async_trait]
impl ScheduleStore for Sqlite {}

#[async_trait]
impl AdminStore for Sqlite {}
