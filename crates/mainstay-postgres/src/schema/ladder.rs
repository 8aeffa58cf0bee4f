//! Climbs from the recorded number to the wanted one, whoever else does the same.

use std::time::Duration;

use mainstay_env::{Env, Monotonic};
use mainstay_migrations::{POSTGRES, Step};
use mainstay_store::ErrorKind;
use tokio_postgres::{Client, Transaction};

use crate::fault::Fault;
use crate::identifier::Schema;
use crate::plain;

use super::race::{self, BEGUN, LOCK, LOCK_WAIT};
use super::shape::{Manner, fill};
use super::state::{self, State};
use super::{catalog, online, taken};

/// How long a schema may stand at one number while somebody else is at work on it. An index of a large table takes a while.
const STANDSTILL: Duration = Duration::from_secs(600);
/// Failures at one number, of the kinds that a race makes, after which they are taken for something else.
const FAILURES: u32 = 12;

/// What one try has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It did something, or found it done: look again.
    Done,
    /// Somebody else is at it: look again after a while.
    Busy,
    /// Somebody else has the lock of whoever migrates, or has left it behind.
    Locked,
}

/// What a try is made with.
#[derive(Debug)]
pub(super) struct Climber<'a> {
    pub(super) client: &'a mut Client,
    pub(super) schema: &'a Schema,
    /// Whether others that are at work on an index have been waited for long enough.
    pub(super) goes_ahead: bool,
    /// How long the lock has been waited for, at all numbers together: one that is left behind stays for all of them.
    waited: Duration,
}

/// The recorded number as it was last seen, and since when.
struct Seen {
    number: i64,
    since: Monotonic,
    failures: u32,
}

/// Brings a schema to `target`; one that is there already, or higher, is left as it is.
pub(super) async fn climb(client: &mut Client, schema: &Schema, target: u32, env: &Env) -> Result<(), Fault> {
    let mut seen: Option<Seen> = None;
    let mut climber = Climber { client, schema, goes_ahead: false, waited: Duration::ZERO };
    loop {
        let state = state::read(climber.client, schema).await?;
        state.refuse(schema)?;
        if state.number >= i64::from(target) {
            return Ok(());
        }
        let mut now = match seen.take() {
            Some(same) if same.number == state.number => same,
            Some(_) => Seen::at(&state, env),
            None => begun(&climber, &state, env).await?,
        };
        let stood = env.monotonic().since(now.since);
        if stood > STANDSTILL {
            return Err(standstill(schema, &state));
        }
        climber.goes_ahead = stood > LOCK_WAIT;
        match climber.try_once(&state, target).await {
            Ok(Turn::Done) => {}
            Ok(Turn::Busy) => race::pause(env).await,
            Ok(Turn::Locked) => climber.wait(env).await,
            Err(fault) => {
                now.failures += 1;
                if !(race::is_race(&fault) || is_unverified(&fault)) || now.failures >= FAILURES {
                    return Err(fault);
                }
                tracing::debug!(schema = schema.name(), number = state.number, ?fault, "migration met another");
                race::pause(env).await;
            }
        }
        seen = Some(now);
    }
}

impl Seen {
    fn at(state: &State, env: &Env) -> Self {
        Self { number: state.number, since: env.monotonic(), failures: 0 }
    }
}

/// The number that is found first: what it promises must be there, or what follows would be built on sand.
async fn begun(climber: &Climber<'_>, state: &State, env: &Env) -> Result<Seen, Fault> {
    if let Some(number) = state.known_number().filter(|number| *number > 0) {
        let found = catalog::read(climber.client, climber.schema).await?;
        // The number may have moved since it was read, and the catalog with it.
        if state::number(climber.client, climber.schema).await? == state.number {
            catalog::judge(&found, number, climber.schema)?;
        }
    }
    Ok(Seen::at(state, env))
}

/// Whether a step has not come to what it should: IF NOT EXISTS passes over an index that another drops as unfinished.
fn is_unverified(fault: &Fault) -> bool {
    matches!(fault, Fault::Store(ErrorKind::Corrupt, _))
}

fn standstill(schema: &Schema, state: &State) -> Fault {
    let (name, number) = (schema.quoted(), state.number);
    let minutes = STANDSTILL.as_secs() / 60;
    Fault::Store(
        ErrorKind::Contended,
        format!("schema {name} has stood at number {number} for {minutes} minutes while another program migrates it"),
    )
}

impl Climber<'_> {
    async fn wait(&mut self, env: &Env) {
        let before = env.monotonic();
        race::pause(env).await;
        self.waited += env.monotonic().since(before);
    }

    async fn try_once(&mut self, state: &State, target: u32) -> Result<Turn, Fault> {
        if state.is_empty() {
            return self.create(target).await;
        }
        let next = POSTGRES.iter().find(|step| i64::from(step.number) > state.number && !step.sql.is_empty());
        match next.filter(|step| step.number <= target) {
            Some(step) if step.online && !is_built_again(step) => online::run(self, step, state.number).await,
            Some(step) => self.step(step, state.number).await,
            None => Ok(Turn::Done),
        }
    }

    /// Makes a schema from nothing, in one transaction, so that nobody sees a part of it.
    async fn create(&mut self, target: u32) -> Result<Turn, Fault> {
        let schema = self.schema;
        let Some(tx) = self.begin().await? else { return Ok(Turn::Locked) };
        let state = state::read(tx.client(), schema).await?;
        if !state.is_empty() {
            return Ok(Turn::Done);
        }
        if let Some(taken) = taken::find(tx.client(), schema, target).await? {
            // A program that made all this has been faster.
            let is_empty = state::read(tx.client(), schema).await?.is_empty();
            return if is_empty { Err(taken) } else { Ok(Turn::Done) };
        }
        let mut text = String::new();
        // Not attempted where it is there: that would take a right that the role need not have.
        if !state.has_schema {
            text.push_str(&format!("CREATE SCHEMA {};\n", schema.quoted()));
        }
        let table = format!("{}.dbos_migrations", schema.quoted());
        text.push_str(&format!("CREATE TABLE IF NOT EXISTS {table} (version bigint NOT NULL PRIMARY KEY);\n"));
        for step in POSTGRES.iter().filter(|step| step.number <= target) {
            text.push_str(&fill(step, schema, Manner::Whole));
        }
        tx.batch_execute(&text).await?;
        let found = catalog::read(tx.client(), schema).await?;
        catalog::judge_step(&found, target, schema)?;
        // A row that counts nothing would stand beside the number.
        tx.batch_execute(&format!("DELETE FROM {table}; INSERT INTO {table} (version) VALUES ({target})")).await?;
        tx.commit().await?;
        tracing::info!(schema = schema.name(), number = target, "schema created");
        Ok(Turn::Done)
    }

    /// One step and its number, in one transaction.
    async fn step(&mut self, step: &Step, before: i64) -> Result<Turn, Fault> {
        let schema = self.schema;
        let Some(tx) = self.begin().await? else { return Ok(Turn::Locked) };
        if hold_number(&tx, schema).await? != before {
            return Ok(Turn::Done);
        }
        tx.batch_execute(&fill(step, schema, Manner::Whole)).await?;
        self::record(tx, schema, step).await?;
        Ok(Turn::Done)
    }

    /// Records the number of a step that has been run.
    pub(super) async fn record(&mut self, step: &Step, before: i64) -> Result<Turn, Fault> {
        let schema = self.schema;
        let tx = self.client.transaction().await?;
        tx.batch_execute(BEGUN).await?;
        if hold_number(&tx, schema).await? == before {
            self::record(tx, schema, step).await?;
        }
        Ok(Turn::Done)
    }

    /// A transaction with the lock of whoever migrates; none when another has it and may be waited for.
    async fn begin(&mut self) -> Result<Option<Transaction<'_>>, Fault> {
        let goes_ahead = self.waited >= LOCK_WAIT;
        let tx = self.client.transaction().await?;
        tx.batch_execute(BEGUN).await?;
        let ask = format!("SELECT pg_catalog.pg_try_advisory_xact_lock({LOCK})");
        let row = plain::row(tx.client(), &ask).await?;
        let is_held = row.is_some_and(|row| row.get(0) == Some("t"));
        Ok((is_held || goes_ahead).then_some(tx))
    }
}

/// Whether a step drops an index whose name a later one uses. Dropped outside the transaction of its number it could be dropped
/// late, by somebody who was stopped for a moment, and then it would be the new one.
fn is_built_again(step: &Step) -> bool {
    let Some((_, dropped)) = step.sql.split_once("DROP INDEX {{concurrently}} IF EXISTS {{schema}}.") else {
        return false;
    };
    let name = dropped.trim_end_matches(";\n");
    let builds = |sql: &str| {
        let words: Vec<&str> = sql.split_whitespace().collect();
        words.windows(2).any(|pair| pair == [name, "ON"])
    };
    POSTGRES.iter().any(|later| later.number > step.number && builds(later.sql))
}

/// The recorded number, which nobody else can change before this transaction ends.
async fn hold_number(tx: &Transaction<'_>, schema: &Schema) -> Result<i64, Fault> {
    let ask = format!("SELECT version FROM {}.dbos_migrations FOR UPDATE", schema.quoted());
    let rows = plain::rows(tx.client(), &ask).await?;
    let numbers = rows.iter().filter_map(|row| row.get(0)?.parse().ok());
    Ok(numbers.max().unwrap_or(0).max(0))
}

async fn record(tx: Transaction<'_>, schema: &Schema, step: &Step) -> Result<(), Fault> {
    let found = catalog::read(tx.client(), schema).await?;
    catalog::judge_step(&found, step.number, schema)?;
    let number = step.number;
    let table = format!("{}.dbos_migrations", schema.quoted());
    // The highest counts; the others go, so that one row is left.
    let highest = format!("DELETE FROM {table} WHERE version < (SELECT max(version) FROM {table})");
    tx.batch_execute(&format!("{highest}; UPDATE {table} SET version = {number} WHERE version < {number}")).await?;
    tx.commit().await?;
    tracing::info!(schema = schema.name(), number, step = step.name, "schema migrated");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_two_names_are_dropped_and_built_again() {
        let again: Vec<u32> = POSTGRES.iter().filter(|step| is_built_again(step)).map(|step| step.number).collect();
        assert_eq!(again, [22, 24]);
    }
}
