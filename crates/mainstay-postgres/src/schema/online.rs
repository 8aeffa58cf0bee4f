//! Steps that build or drop an index while others write: outside a transaction, and without a lock of a session, which would
//! be left behind in a pooler.
//!
//! What keeps order is the table's own lock: whoever builds an index holds SHARE UPDATE EXCLUSIVE to the end. With that
//! lock in hand an index that is not valid is nobody's work in progress, and may be dropped.

use mainstay_migrations::Step;

use crate::fault::Fault;
use crate::identifier::{literal, quote};
use crate::plain;

use super::ladder::{Climber, Turn};
use super::race::{self, BEGUN};
use super::shape::{Manner, fill};
use super::{catalog, state};

/// An index that an interrupted build or drop has left, or that somebody is building now.
#[derive(Debug)]
struct Unfinished {
    index: String,
    table: String,
}

/// Runs a step and records its number.
pub(super) async fn run(climber: &mut Climber<'_>, step: &Step, before: i64) -> Result<Turn, Fault> {
    for unfinished in unfinished(climber).await? {
        if clear(climber, &unfinished).await? == Turn::Busy {
            return Ok(Turn::Busy);
        }
    }
    // Somebody may have been waited for just now.
    if state::number(climber.client, climber.schema).await? != before {
        return Ok(Turn::Done);
    }
    if !climber.goes_ahead && is_building(climber).await? {
        return Ok(Turn::Busy);
    }
    climber.client.batch_execute(&fill(step, climber.schema, Manner::Online)).await?;
    // IF NOT EXISTS passes over an index that another has begun and not finished.
    if !unfinished(climber).await?.is_empty() {
        return Ok(Turn::Busy);
    }
    climber.record(step, before).await
}

async fn unfinished(climber: &Climber<'_>) -> Result<Vec<Unfinished>, Fault> {
    let ask = format!(
        "SELECT i.relname, t.relname FROM pg_catalog.pg_index x
        JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid
        JOIN pg_catalog.pg_class t ON t.oid = x.indrelid
        JOIN pg_catalog.pg_namespace n ON n.oid = i.relnamespace
        WHERE n.nspname = {} AND NOT x.indisvalid ORDER BY i.relname",
        literal(climber.schema.name())
    );
    let ours = catalog::index_names();
    let rows = plain::rows(climber.client, &ask).await?;
    let named = rows.iter().filter_map(|row| Some(Unfinished { index: row.get(0)?.into(), table: row.get(1)?.into() }));
    // A user's own index of another name is the user's.
    Ok(named.filter(|unfinished| ours.contains(unfinished.index.as_str())).collect())
}

/// Drops what an interrupted build has left, once nobody builds on its table.
async fn clear(climber: &mut Climber<'_>, unfinished: &Unfinished) -> Result<Turn, Fault> {
    let schema = climber.schema.quoted().to_owned();
    let name = literal(climber.schema.name());
    let index = quote(&unfinished.index);
    let tx = climber.client.transaction().await?;
    // Whoever waits in the line may have looked names up, by a snapshot that the build ahead waits for in its turn: the server
    // would end one of the two, and it may be the build. After a long time it is more likely a vacuum, which gives way.
    let wait = if climber.goes_ahead { "" } else { " NOWAIT" };
    let lock = format!("LOCK TABLE {schema}.{} IN SHARE UPDATE EXCLUSIVE MODE{wait}", quote(&unfinished.table));
    if let Err(error) = tx.batch_execute(&format!("{BEGUN}; {lock}")).await {
        return if race::is_lock_wait(&error) { Ok(Turn::Busy) } else { Err(error.into()) };
    }
    let ask = format!(
        "SELECT FROM pg_catalog.pg_index x
        JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid
        JOIN pg_catalog.pg_namespace n ON n.oid = i.relnamespace
        WHERE n.nspname = {name} AND i.relname = {} AND NOT x.indisvalid",
        literal(&unfinished.index)
    );
    if plain::row(tx.client(), &ask).await?.is_none() {
        return Ok(Turn::Done);
    }
    match tx.batch_execute(&format!("DROP INDEX {schema}.{index}")).await {
        Ok(()) => {}
        Err(error) if race::is_lock_wait(&error) => return Ok(Turn::Busy),
        Err(error) => return Err(error.into()),
    }
    tx.commit().await?;
    tracing::info!(schema = climber.schema.name(), index = unfinished.index, "unfinished index dropped");
    Ok(Turn::Done)
}

/// Whether somebody else builds or drops an index of the schema, or waits to.
///
/// Two that begin in the same moment deadlock; the server ends one, which comes back here.
async fn is_building(climber: &Climber<'_>) -> Result<bool, Fault> {
    let ask = format!(
        "SELECT FROM pg_catalog.pg_locks l
        JOIN pg_catalog.pg_class t ON t.oid = l.relation
        JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
        WHERE n.nspname = {} AND t.relkind IN ('r', 'p') AND l.mode = 'ShareUpdateExclusiveLock'
            AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
            AND l.pid <> pg_catalog.pg_backend_pid()
        LIMIT 1",
        literal(climber.schema.name())
    );
    Ok(plain::row(climber.client, &ask).await?.is_some())
}
