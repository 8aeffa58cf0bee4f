//! The pool of connections.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use bb8::{ManageConnection, PooledConnection, QueueStrategy, RunError};
use futures_util::StreamExt;
use mainstay_env::{Env, Task, Tasks};
use mainstay_store::{ErrorKind, StoreError};
use tokio_postgres::AsyncMessage;

use crate::config::Config;
use crate::connect::{Connected, Connector};
use crate::fault::Fault;
use crate::session::{Session, limits, settings};
use crate::text::Texts;

/// How long a call waits for a connection before it says that there is none.
const PATIENCE: Duration = Duration::from_secs(10);

/// The same while the server cannot be reached and no connection is left: who sends again does so with pauses of its own.
const HOPE: Duration = Duration::from_secs(2);

/// How long one attempt of the pool to connect tries again, half of what a call waits.
const TRIES: Duration = Duration::from_secs(5);

/// Pauses between these tries: at most one a second and connection, so that a server that starts is not flooded.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// The statements for what the database has now, shared by all connections.
pub(crate) type Shared = Arc<RwLock<Arc<Texts>>>;

/// Opens connections for the pool.
pub(crate) struct Manager {
    connector: Connector,
    tasks: Tasks,
    texts: Shared,
    pooler: bool,
    env: Env,
    /// Longest that a call may take, the settings of a new connection too.
    limit: Duration,
    failed: Failed,
    doubts: Doubts,
}

/// What is known of attempts to connect.
#[derive(Debug, Default)]
struct Attempts {
    /// Why the latest has failed; nothing after one that has not, or when a connection was had since.
    failed: Option<StoreError>,
    /// Whether the log says that connecting fails.
    told: bool,
}

type Failed = Arc<Mutex<Attempts>>;

/// How many calls have remained without an answer: whatever took the one line may have taken those that were idle then.
type Doubts = Arc<AtomicU64>;

impl Manager {
    /// Keeps why there is no new connection, and tells when that begins and when it ends.
    fn tell(&self, failure: Option<&StoreError>) {
        let mut attempts = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        match (attempts.told, failure) {
            (false, Some(error)) => tracing::warn!(%error, "no new connection to the database; calls wait"),
            (true, None) => tracing::info!("connected to the database again"),
            _ => {}
        }
        *attempts = Attempts { failed: failure.cloned(), told: failure.is_some() };
    }

    async fn attempt(&self) -> Result<Session, StoreError> {
        let proven = self.doubts.load(Ordering::Relaxed);
        let Connected { client, messages } = self.connector.connect().await?;
        let driver = drive(&self.tasks, messages, |_| {});
        let texts = self.texts.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut session = Session::new(client, driver, texts, self.pooler, self.limit);
        session.proven = proven;
        if !self.pooler {
            let script = format!("{}{}", settings(false), limits(self.limit, false));
            let Ok(set) = self.env.timeout(self.limit, session.client().batch_execute(&script)).await else {
                // A line that has gone dead must not keep a place of the pool.
                session.give_up();
                return Err(StoreError::new(ErrorKind::Unavailable, "connect").with_source("no answer of the server"));
            };
            set.map_err(|error| Fault::Postgres(error).of("connect"))?;
        }
        Ok(session)
    }
}

impl ManageConnection for Manager {
    type Connection = Session;
    type Error = StoreError;

    /// Tries for a while: the pool's own pauses grow to several seconds, by which a server that is back would be missed.
    async fn connect(&self) -> Result<Session, StoreError> {
        let (end, mut pause) = (self.env.deadline(TRIES), FIRST_PAUSE);
        loop {
            let made = self.attempt().await;
            self.tell(made.as_ref().err());
            let is_away = made.as_ref().is_err_and(|error| error.kind() == ErrorKind::Unavailable);
            if !is_away || self.env.monotonic() >= end {
                return made;
            }
            self.env.sleep(self.env.rng().jitter(pause, 0.5, 1.0)).await;
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    async fn is_valid(&self, session: &mut Session) -> Result<(), StoreError> {
        if session.proven != self.doubts.load(Ordering::Relaxed) {
            // Not asked for a sign of life: each that is dead would take its time.
            session.give_up();
        }
        if session.is_broken() { Err(StoreError::new(ErrorKind::Unavailable, "connect")) } else { Ok(()) }
    }

    fn has_broken(&self, session: &mut Session) -> bool {
        session.is_broken()
    }
}

/// Polls a connection until it ends; notices are logged, notifications given on.
pub(crate) fn drive(
    tasks: &Tasks,
    mut messages: crate::connect::Messages,
    mut hear: impl FnMut(&str) + Send + 'static,
) -> Task<()> {
    tasks.spawn("connection", async move {
        while let Some(message) = messages.next().await {
            match message {
                Ok(AsyncMessage::Notice(notice)) => {
                    tracing::debug!(code = notice.code().code(), "{}", notice.message())
                }
                Ok(AsyncMessage::Notification(heard)) => hear(heard.payload()),
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(kind = ?crate::error::kind(&error), "a connection has ended");
                    break;
                }
            }
        }
    })
}

/// The connections of a store.
#[derive(Clone)]
pub(crate) struct Pool {
    pool: bb8::Pool<Manager>,
    texts: Shared,
    failed: Failed,
    doubts: Doubts,
    env: Env,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.pool.state();
        f.debug_struct("Pool").field("connections", &state.connections).field("idle", &state.idle_connections).finish()
    }
}

impl Pool {
    /// A pool without connections yet.
    pub(crate) fn new(connector: Connector, config: &Config, env: &Env, texts: Shared) -> Self {
        let tasks = env.tasks().group("postgres");
        let (pooler, limit) = (config.is_pooled(), config.call_limit());
        let (failed, doubts) = (Failed::default(), Doubts::default());
        let manager = Manager {
            connector,
            tasks,
            texts: texts.clone(),
            pooler,
            env: env.clone(),
            limit,
            failed: failed.clone(),
            doubts: doubts.clone(),
        };
        let pool = bb8::Pool::builder()
            .max_size(config.pool_size())
            .test_on_check_out(true)
            .connection_timeout(PATIENCE)
            .queue_strategy(QueueStrategy::Lifo)
            .build_unchecked(manager);
        Self { pool, texts, failed, doubts, env: env.clone() }
    }

    /// A connection, with the statements for what the database has now.
    pub(crate) async fn get(&self) -> Result<PooledConnection<'static, Manager>, Fault> {
        let mut waiting = Box::pin(self.pool.get_owned());
        let got = match self.env.timeout(HOPE, &mut waiting).await {
            Ok(got) => got,
            Err(_) => match self.failure().filter(|_| self.pool.state().connections == 0) {
                Some(error) => return Err(Fault::Given(error)),
                None => waiting.await,
            },
        };
        let mut session = got.map_err(|error| match error {
            RunError::User(error) => Fault::Given(error),
            RunError::TimedOut => match self.failure() {
                Some(error) => Fault::Given(error),
                None => Fault::Store(ErrorKind::Unavailable, "no connection is free".into()),
            },
        })?;
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).failed = None;
        session.follow(&self.texts());
        Ok(session)
    }

    /// Notes that a session works.
    pub(crate) fn trust(&self, session: &mut Session) {
        session.proven = self.doubts.load(Ordering::Relaxed);
    }

    /// Gives up a session that has not answered, and those that have not shown since that they work.
    pub(crate) fn doubt(&self, session: &mut Session) {
        session.give_up();
        self.doubts.fetch_add(1, Ordering::Relaxed);
    }

    /// Why there is no new connection, where attempts have failed since the last one was had.
    fn failure(&self) -> Option<StoreError> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).failed.clone()
    }

    /// The statements for what the database has now.
    pub(crate) fn texts(&self) -> Arc<Texts> {
        self.texts.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on the statements for what a look at the database has found.
    pub(crate) fn set_layout(&self, layout: crate::layout::Layout) {
        let mut texts = self.texts.write().unwrap_or_else(PoisonError::into_inner);
        if texts.layout != layout {
            tracing::info!(from = texts.layout.number, to = layout.number, "the schema has changed under the store");
            *texts = Arc::new(texts.for_layout(layout));
        }
    }
}
