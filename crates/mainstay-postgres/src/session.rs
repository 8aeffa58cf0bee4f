//! One connection: its prepared statements, and transactions as one trip.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::BytesMut;
use futures_util::TryStreamExt;
use futures_util::future::join_all;
use mainstay_env::Task;
use tokio_postgres::types::{Format, IsNull, ToSql, Type};
use tokio_postgres::{Client, Row, Statement};

use crate::error;
use crate::fault::Fault;
use crate::text::{Rendered, Text, Texts};

/// Parameters of a statement.
pub(crate) type Param<'a> = &'a (dyn ToSql + Sync);

/// A parameter on its way to the driver, which writes parameters into its log: they are users' data.
struct Hidden<'a>(Param<'a>);

impl fmt::Debug for Hidden<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("_")
    }
}

impl ToSql for Hidden<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        self.0.to_sql_checked(ty, out)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn to_sql_checked(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        self.0.to_sql_checked(ty, out)
    }

    fn encode_format(&self, ty: &Type) -> Format {
        self.0.encode_format(ty)
    }
}

/// One statement to be run, with its parameters.
pub(crate) struct Ask<'a> {
    pub(crate) text: &'static Text,
    pub(crate) params: Vec<Param<'a>>,
}

impl<'a> Ask<'a> {
    pub(crate) fn new(text: &'static Text, params: &[Param<'a>]) -> Self {
        Self { text, params: params.to_vec() }
    }
}

/// What every connection of the store sets: a plan made for an empty table, and sorts of whole queues, cost 2 to 5 times
/// as much. Source: `docs/decisions/0003`. What a database or a role sets for the isolation would keep the statement after a
/// lock blind to what it waited for.
pub(crate) const SETTINGS: &[(&str, &str)] = &[
    ("default_transaction_isolation", "'read committed'"),
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_sort", "off"),
    ("jit", "off"),
    ("max_parallel_workers_per_gather", "0"),
    ("plan_cache_mode", "force_generic_plan"),
];

/// The settings as a script: of the connection, or of one transaction behind a pooler.
pub(crate) fn settings(local: bool) -> String {
    let scope = if local { "SET LOCAL" } else { "SET" };
    SETTINGS.iter().map(|(name, value)| format!("{scope} {name} = {value};")).collect()
}

/// How a transaction begins; the setting of a connection does not reach a transaction behind a pooler.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// Sent behind a BEGIN of which nobody has seen the answer: where there is no transaction, those two times are one, and what
/// follows, each statement a transaction of its own then, may write nothing. A BEGIN fails when it is cancelled, for one.
const ONLY_INSIDE: &str = "SELECT pg_catalog.set_config('default_transaction_read_only', 'on', false)
    WHERE pg_catalog.now() = pg_catalog.statement_timestamp()";

/// Has the server undo a transaction of which nothing more is heard for as long as a call may take: a client that a dead line
/// has made give up cannot tell it, and the locks would stay until the server notices. It also ends a statement of which
/// nobody waits for the answer any more: behind a lock it would keep its connection. Lower limits of the role stay.
pub(crate) fn limits(limit: Duration, local: bool) -> String {
    format!("SELECT {}, {};", lowered(IDLE, limit, local), lowered(STATEMENT, limit, local))
}

/// The limit of the server on pauses inside a transaction, and that on a statement.
pub(crate) const IDLE: &str = "idle_in_transaction_session_timeout";
const STATEMENT: &str = "statement_timeout";

/// Sets a limit of the server unless there is a lower one.
pub(crate) fn lowered(name: &str, limit: Duration, local: bool) -> String {
    // Milliseconds of the server are 31 bits, and 0 is no limit.
    let millis = limit.as_millis().clamp(1, 2_147_483_647);
    let own = format!("pg_catalog.current_setting('{name}')");
    format!(
        "pg_catalog.set_config('{name}', CASE WHEN {own}::interval BETWEEN interval '1 ms' AND interval '{millis} ms'
            THEN {own} ELSE '{millis}' END, {local})"
    )
}

/// One connection of the pool. Used by one call at a time.
pub(crate) struct Session {
    client: Client,
    driver: Task<()>,
    texts: Arc<Texts>,
    statements: HashMap<&'static str, Statement>,
    /// Nothing is prepared and nothing is set beyond a transaction, because the next one may be on another connection.
    pooler: bool,
    /// Longest that a call may take.
    limit: Duration,
    open: bool,
    broken: bool,
    /// How many calls of the pool had remained without an answer when it was last seen to work.
    pub(crate) proven: u64,
}

type Asked<'a> = Pin<Box<dyn Future<Output = Result<Vec<Row>, tokio_postgres::Error>> + Send + 'a>>;

impl Session {
    pub(crate) fn new(client: Client, driver: Task<()>, texts: Arc<Texts>, pooler: bool, limit: Duration) -> Self {
        Self { client, driver, texts, statements: HashMap::new(), pooler, limit, open: false, broken: false, proven: 0 }
    }

    /// Goes on with the statements for what the database has now.
    pub(crate) fn follow(&mut self, texts: &Arc<Texts>) {
        if !Arc::ptr_eq(&self.texts, texts) {
            self.texts = texts.clone();
            self.statements.clear();
        }
    }

    /// The connection itself, for what is not a statement of this crate.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The statements for what the database had when this call began.
    pub(crate) fn texts(&self) -> &Arc<Texts> {
        &self.texts
    }

    /// Whether it must not be used again.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken || self.open || self.client.is_closed()
    }

    /// Marks it as not to be used again: a call on it was given up, and nobody knows where it stands.
    pub(crate) fn give_up(&mut self) {
        self.broken = true;
        self.driver.abort();
    }

    /// One statement in a transaction of its own.
    pub(crate) async fn one(&mut self, text: &'static Text, params: &[Param<'_>]) -> Result<Vec<Row>, Fault> {
        let ask = [Ask::new(text, params)];
        if self.pooler {
            return Ok(self.transaction(&ask).await?.pop().unwrap_or_default());
        }
        self.prepare(&ask).await?;
        let rows = self.asked(&ask[0]).await;
        self.judged(rows)
    }

    /// Statements in one transaction and one trip, behind a pooler two. The first failure is the answer, and then nothing is done.
    pub(crate) async fn transaction(&mut self, asks: &[Ask<'_>]) -> Result<Vec<Vec<Row>>, Fault> {
        self.run(asks, true, true).await
    }

    /// Begins a transaction with statements, in one trip; [`Session::finish`] or [`Session::cancel`] ends it.
    pub(crate) async fn begin(&mut self, asks: &[Ask<'_>]) -> Result<Vec<Vec<Row>>, Fault> {
        self.run(asks, true, false).await
    }

    /// Goes on with a transaction that was begun, in one trip. The first failure undoes it.
    pub(crate) async fn go_on(&mut self, asks: &[Ask<'_>]) -> Result<Vec<Vec<Row>>, Fault> {
        self.run(asks, false, false).await
    }

    /// Ends a transaction with statements, in one trip.
    pub(crate) async fn finish(&mut self, asks: &[Ask<'_>]) -> Result<Vec<Vec<Row>>, Fault> {
        self.run(asks, false, true).await
    }

    /// Undoes a transaction that was begun.
    pub(crate) async fn cancel(&mut self) -> Result<(), Fault> {
        let undone = self.client.batch_execute("ROLLBACK").await;
        self.open = undone.is_err();
        self.judged(undone)
    }

    async fn run(&mut self, asks: &[Ask<'_>], begins: bool, ends: bool) -> Result<Vec<Vec<Row>>, Fault> {
        self.prepare(asks).await?;
        self.open = true;
        let together = begins && !self.pooler;
        if begins && !together {
            self.begin_pooled().await?;
        }
        let (this, failed) = (&*self, &AtomicBool::new(false));
        let mut sent: Vec<Asked<'_>> = Vec::with_capacity(asks.len() + 3);
        // Each is put on the wire by its first poll, and they are polled in order.
        for text in [BEGIN, ONLY_INSIDE].into_iter().filter(|_| together) {
            sent.push(Box::pin(async move { this.client.batch_execute(text).await.map(|()| Vec::new()) }));
        }
        for ask in asks {
            sent.push(Box::pin(async move {
                let answer = this.asked(ask).await;
                failed.fetch_or(answer.is_err(), Ordering::Relaxed);
                answer
            }));
        }
        if ends {
            sent.push(Box::pin(async move {
                // One that could not be written for the wire was not sent, and the server knows of no failure.
                let end = if failed.load(Ordering::Relaxed) { "ROLLBACK" } else { "COMMIT" };
                this.client.batch_execute(end).await.map(|()| Vec::new())
            }));
        }
        let answers = in_order(sent).await;
        let failed = answers.iter().any(Result::is_err);
        // It may write nothing any more.
        self.broken |= together && answers.first().is_some_and(Result::is_err);
        let all: Result<Vec<Vec<Row>>, tokio_postgres::Error> = answers.into_iter().collect();
        if ends {
            // A COMMIT after a failure undoes, so the connection is as it was; a lost one is judged below.
            self.open = false;
        } else if failed && !self.client.is_closed() {
            // What failed is told; a failure to undo leaves the session open, so that it is dropped.
            let _ = self.cancel().await;
        }
        let mut rows = self.judged(all)?;
        if together {
            rows.drain(..2);
        }
        if ends {
            rows.pop();
        }
        Ok(rows)
    }

    /// Begins a transaction behind a pooler and waits for the answer, which costs a trip: after a BEGIN that it refuses, as for
    /// want of a connection, it would run what follows on any connection, each statement a transaction of its own.
    async fn begin_pooled(&mut self) -> Result<(), Fault> {
        let begin = format!("{BEGIN};{}{}", settings(true), limits(self.limit, true));
        let begun = self.client.batch_execute(&begin).await;
        if begun.is_err() && !self.client.is_closed() {
            // What failed is told, as below.
            let _ = self.cancel().await;
        }
        self.judged(begun)
    }

    async fn asked(&self, ask: &Ask<'_>) -> Result<Vec<Row>, tokio_postgres::Error> {
        let hidden = ask.params.iter().map(|param| Hidden(*param));
        let rows = if self.pooler {
            let rendered = self.texts.get(ask.text);
            self.client.query_typed_raw(&rendered.sql, hidden.zip(rendered.types.iter().cloned())).await?
        } else {
            match self.statements.get(ask.text.name) {
                Some(statement) => self.client.query_raw(statement, hidden).await?,
                None => unreachable!("{} is prepared before it is sent", ask.text.name),
            }
        };
        rows.try_collect().await
    }

    /// Prepares what is not prepared yet, in one trip.
    async fn prepare(&mut self, asks: &[Ask<'_>]) -> Result<(), Fault> {
        if self.pooler {
            return Ok(());
        }
        let mut missing: Vec<&'static Text> = Vec::new();
        for ask in asks {
            let known = self.statements.contains_key(ask.text.name);
            if !known && missing.iter().all(|text| text.name != ask.text.name) {
                missing.push(ask.text);
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let rendered: Vec<Arc<Rendered>> = missing.iter().map(|text| self.texts.get(text)).collect();
        let client = &self.client;
        let prepared = join_all(rendered.iter().map(|text| client.prepare_typed(&text.sql, &text.types))).await;
        for (text, statement) in missing.iter().zip(prepared) {
            let statement = self.judged(statement)?;
            self.statements.insert(text.name, statement);
        }
        Ok(())
    }

    /// Notes whether an answer says that the connection must not be used again.
    fn judged<T>(&mut self, answer: Result<T, tokio_postgres::Error>) -> Result<T, Fault> {
        answer.map_err(|error| {
            if error::is_connection(&error) {
                self.broken = true;
            }
            Fault::Postgres(error)
        })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.is_broken() {
            self.driver.abort();
        }
    }
}

/// Runs futures beside one another, polled first in their order.
async fn in_order<T>(futures: Vec<Pin<Box<dyn Future<Output = T> + Send + '_>>>) -> Vec<T> {
    // Up to 30 futures are polled in order by `join_all`; a transaction of this crate has about 15 statements at most.
    debug_assert!(futures.len() <= 30, "a pipeline keeps its order");
    join_all(futures).await
}

#[cfg(test)]
mod tests;
