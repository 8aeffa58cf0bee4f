//! [`Postgres`]: the handle, and how a call gets to a connection.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, RwLock};

use async_trait::async_trait;
use futures_util::future::{Either, select};
use mainstay_env::{Env, TaskError, Tasks};
use mainstay_store::{
    AdminStore, Bounds, Capabilities, Capability, ErrorKind, Result, ScheduleStore, SignalStore, Store, StoreClock,
    StoreError, Wakeup, Wakeups,
};

use crate::claim::Fronts;
use crate::clock::Time;
use crate::config::{Config, PayloadLayout};
use crate::connect::{Connector, Watched};
use crate::error;
use crate::fault::Fault;
use crate::hints::{Hints, Line};
use crate::identifier::Schema;
use crate::pool::{Pool, drive};
use crate::schema::{self, Mode};
use crate::session::Session;
use crate::text::Texts;

const OP: &str = "open";

/// A future over a connection.
pub(crate) type On<'a, T> = Pin<Box<dyn Future<Output = std::result::Result<T, Fault>> + Send + 'a>>;

/// A store in a PostgreSQL database, on the schema that the DBOS SDKs share. Cheap to clone.
///
/// Each call runs in a task of the store's environment, so that a caller that gives up waiting leaves it whole: a
/// connection never goes back to the pool inside a transaction.
#[derive(Clone)]
pub struct Postgres {
    inner: Arc<Inner>,
}

struct Inner {
    env: Env,
    tasks: Tasks,
    config: Config,
    schema: Schema,
    pool: Pool,
    time: Time,
    wakeups: Wakeups,
    hints: Hints,
    fronts: Fronts,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.tasks.abort_all();
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { schema, pool, .. } = &*self.inner;
        f.debug_struct("Postgres").field("schema", &schema.name()).field("pool", pool).finish_non_exhaustive()
    }
}

impl Postgres {
    /// Opens a database: makes it where it is missing and allowed, and brings its schema up to date.
    ///
    /// # Errors
    /// `Invalid` names the part of the configuration that is wrong; `Denied` the missing right; `Unsupported` for a schema that
    /// this store cannot work on; `Unavailable` when the server cannot be reached; `Timeout`.
    pub async fn open(env: &Env, config: impl Into<Config>, clock: StoreClock) -> Result<Self> {
        let config = config.into();
        let (owned, tasks) = (env.clone(), env.tasks().group("postgres"));
        let opening = tasks.clone().spawn(OP, async move { Inner::open(owned, tasks, config, clock).await });
        let inner = settled(OP, opening.await)?;
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Runs `body` on a connection, in a task of its own. It may be run again when the schema has changed under it, and
    /// then nothing of its first run is left.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        op: &'static str,
        body: impl for<'a> FnMut(&'a mut Session) -> On<'a, T> + Send + 'static,
    ) -> Result<T> {
        let inner = self.inner.clone();
        let task = self.inner.tasks.spawn(op, async move { inner.perform(body).await.map_err(|fault| fault.of(op)) });
        settled(op, task.await)
    }

    /// The parameter `now` of every statement.
    pub(crate) fn now(&self) -> Option<i64> {
        self.inner.time.now()
    }

    /// Name of the shared schema, the first key of our own tables.
    pub(crate) fn system(&self) -> &str {
        self.inner.schema.name()
    }

    /// What the statements are rendered for now.
    pub(crate) fn texts(&self) -> Arc<Texts> {
        self.inner.pool.texts()
    }

    /// Sizes that this store accepts.
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds::default().payload_bytes(self.inner.config.most_payload_bytes())
    }

    /// What claims remember of queues.
    pub(crate) fn fronts(&self) -> &Fronts {
        &self.inner.fronts
    }

    /// Runs `work` beside the calls; it ends with the store.
    pub(crate) fn beside(&self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        drop(self.inner.tasks.spawn(name, work));
    }

    /// Tells this process, and the others that listen.
    pub(crate) fn publish(&self, hints: impl IntoIterator<Item = Wakeup>) {
        self.inner.hints.publish(&self.inner.wakeups, hints);
    }

    /// Looks at the catalog when the recorded number is not the one that the statements are for.
    pub(crate) async fn note_number(&self, number: i64) -> Result<()> {
        if number == self.texts().layout.number {
            return Ok(());
        }
        self.look("tick").await
    }

    /// Looks at the catalog; from then on statements are for what is there.
    pub(crate) async fn look(&self, op: &'static str) -> Result<()> {
        let inner = self.inner.clone();
        self.call(op, move |session| {
            let inner = inner.clone();
            Box::pin(async move {
                let layout = schema::probe(session.client(), &inner.schema).await?;
                inner.pool.set_layout(layout);
                Ok(())
            })
        })
        .await
    }
}

/// What a task has answered.
fn settled<T>(op: &'static str, ended: std::result::Result<Result<T>, TaskError>) -> Result<T> {
    match ended {
        Ok(answer) => answer,
        Err(TaskError::Panicked(text)) => Err(StoreError::new(ErrorKind::Bug, op).with_source(text)),
        Err(_) => Err(StoreError::new(ErrorKind::Unavailable, op).with_source("the store is closed")),
    }
}

impl Inner {
    async fn open(env: Env, tasks: Tasks, config: Config, clock: StoreClock) -> Result<Self> {
        let schema = Schema::new("schema", config.schema_name()).map_err(|field| StoreError::field_error(OP, field))?;
        if config.call_limit().is_zero() {
            return Err(StoreError::invalid(OP, "call_timeout", "is zero, by which no call would be answered in time"));
        }
        let connector = Connector::new(&config, &env)?;
        let connected = connector.connect_or_create().await?;
        let driver = drive(&tasks, connected.messages, |_| {});
        let mut client = connected.client;
        let mode = match (config.only_verifies(), config.holds_at_108()) {
            (true, true) => Mode::VerifyHeld,
            (true, false) => Mode::Verify,
            (false, hold_at_108) => Mode::Migrate { hold_at_108 },
        };
        let route = if config.is_pooled() { schema::Route::Pooled } else { schema::Route::Own };
        let layout = async {
            let watched = Watched::begin(&connector, &client, config.call_limit()).await?;
            let prepared = Box::pin(schema::prepare(&mut client, route, &schema, mode, &env));
            match select(prepared, Box::pin(watched.lost(&connector))).await {
                Either::Left((layout, _)) => layout,
                Either::Right((lost, _)) => Err(lost),
            }
        }
        .await;
        drop(client);
        driver.abort();
        let texts = Arc::new(Texts::new(schema.clone(), layout?, config.payloads() == PayloadLayout::Split));
        let shared = Arc::new(RwLock::new(texts));
        let wakeups = Wakeups::new();
        let line = Line::new(&env, &tasks, connector.clone(), &schema, config.is_pooled());
        let hints = Hints::start((!config.is_silent()).then_some(line), &wakeups);
        let pool = Pool::new(connector, &config, &env, shared);
        let (time, fronts) = (Time::new(clock), Fronts::default());
        let inner = Self { env, tasks, config, schema, pool, time, wakeups, hints, fronts };
        if inner.time.now().is_some() {
            let held = inner.perform(|_| Box::pin(async { Ok(()) })).await;
            held.map_err(|fault| fault.of(OP))?;
        }
        Ok(inner)
    }

    async fn perform<T>(
        &self,
        mut body: impl for<'a> FnMut(&'a mut Session) -> On<'a, T> + Send,
    ) -> std::result::Result<T, Fault> {
        let mut session = self.pool.get().await?;
        let mut again = true;
        loop {
            let done = self.limited(body(&mut session)).await;
            let fault = match self.answered(&mut session, done) {
                Err(fault) => fault,
                Ok(done) => {
                    if self.time.is_manual() {
                        let held = self.limited(self.time.hold(&mut session)).await;
                        self.answered(&mut session, held)?;
                    }
                    return Ok(done);
                }
            };
            let Some(met) = fault.postgres().filter(|error| again && error::is_undefined(error)) else {
                return Err(fault);
            };
            let is_stale = error::is_stale_plan(met);
            // The connection may be one that is not to be used again, and then this is another.
            drop(session);
            session = self.pool.get().await?;
            let looked = self.limited(self.is_changed(&mut session)).await;
            if !(self.answered(&mut session, looked)? || is_stale) {
                return Err(fault);
            }
            session.follow(&self.pool.texts());
            again = false;
        }
    }

    /// Waits for as long as a call may take; nothing after that.
    async fn limited<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.env.timeout(self.config.call_limit(), work).await.ok()
    }

    /// What a session has answered. One that has not is given up.
    fn answered<T>(
        &self,
        session: &mut Session,
        answer: Option<std::result::Result<T, Fault>>,
    ) -> std::result::Result<T, Fault> {
        if let Some(answer) = answer {
            self.pool.trust(session);
            return answer;
        }
        self.pool.doubt(session);
        let limit = self.config.call_limit();
        Err(Fault::Store(ErrorKind::Timeout, format!("no answer of the server in {limit:?}")))
    }

    /// Looks at the catalog after a statement met what is not there.
    async fn is_changed(&self, session: &mut Session) -> std::result::Result<bool, Fault> {
        let before = self.pool.texts().layout;
        let layout = schema::probe(session.client(), &self.schema).await?;
        self.pool.set_layout(layout);
        Ok(layout != before)
    }
}

impl Store for Postgres {
    fn capabilities(&self) -> Capabilities {
        Capabilities::none().with(Capability::Durable).with(Capability::Shared)
    }

    fn env(&self) -> &Env {
        &self.inner.env
    }

    fn wakeups(&self) -> &Wakeups {
        &self.inner.wakeups
    }
}

#[async_trait]
impl SignalStore for Postgres {}

#[async_trait]
impl ScheduleStore for Postgres {}

#[async_trait]
impl AdminStore for Postgres {}
