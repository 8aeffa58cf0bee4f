//! What stands in a database before anything is done to it.

use mainstay_store::ErrorKind;
use tokio_postgres::{Client, SimpleQueryRow};

use crate::fault::Fault;
use crate::identifier::{Schema, literal};
use crate::layout::Layout;
use crate::plain;

use super::NEWEST;

/// What is known of a schema from one look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct State {
    /// The schema itself is there.
    pub(super) has_schema: bool,
    /// The recorded number; 0 where there is none.
    pub(super) number: i64,
    /// Tables of workflows are there, whatever the number says.
    pub(super) has_tables: bool,
    /// Tables or keys that only the TypeScript SDK has made.
    is_typescript: bool,
    /// A `shard_key` column marks a schema whose rows are spread over databases.
    is_sharded: bool,
}

impl State {
    /// Refuses what must not be opened.
    pub(super) fn refuse(&self, schema: &Schema) -> Result<(), Fault> {
        let no = |why: String| Err(Fault::Store(ErrorKind::Unsupported, why));
        let (name, number) = (schema.quoted(), self.number);
        if self.is_sharded {
            return no(format!("schema {name} is sharded: it has a column shard_key, which this store does not serve"));
        }
        if self.number == 0 && self.has_tables {
            return no(format!("schema {name} has tables of workflows but no recorded number in dbos_migrations"));
        }
        // Numbers from 48 to 99 are recorded by that SDK alone; below, it counts other things by the same numbers.
        if (48..=99).contains(&number) || (number < 48 && self.is_typescript) {
            return no(format!(
                "schema {name} is at number {number} of the TypeScript SDK's own ladder: open it once with \
                 @dbos-inc/dbos-sdk 4.26 or newer, which takes it to the shared numbers from 100 on"
            ));
        }
        Ok(())
    }

    /// The recorded number, where this code knows it.
    pub(super) fn known_number(&self) -> Option<u32> {
        u32::try_from(self.number).ok().filter(|number| *number <= NEWEST)
    }

    /// Whether a fresh schema may be made here.
    pub(super) fn is_empty(&self) -> bool {
        self.number == 0 && !self.has_tables
    }
}

/// Refuses a database in which not every text can be stored.
pub(super) async fn refuse_encoding(client: &Client) -> Result<(), Fault> {
    let row = plain::row(client, "SELECT pg_catalog.current_setting('server_encoding')").await?;
    let encoding = row.as_ref().and_then(|row| row.get(0)).unwrap_or_default();
    // The latter takes every text as it comes.
    if ["UTF8", "SQL_ASCII"].contains(&encoding) {
        return Ok(());
    }
    Err(Fault::Store(
        ErrorKind::Unsupported,
        format!(
            "the database has the encoding {encoding}, which cannot hold every text: use one that was created with \
             TEMPLATE template0 ENCODING 'UTF8'"
        ),
    ))
}

/// Looks at a schema.
pub(super) async fn read(client: &Client, schema: &Schema) -> Result<State, tokio_postgres::Error> {
    let name = literal(schema.name());
    let marks = format!(
        "SELECT
            EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = {name}),
            coalesce(bool_or(c.relname = 'dbos_migrations'), false),
            coalesce(bool_or(c.relname = 'workflow_status'), false),
            coalesce(bool_or(c.relname IN ('workflow_inputs', 'scheduler_state')), false)
            OR EXISTS (
                SELECT FROM pg_catalog.pg_constraint k
                JOIN pg_catalog.pg_namespace s ON s.oid = k.connamespace
                WHERE s.nspname = {name} AND k.conname = 'operation_outputs_workflow_uuid_foreign'
            ),
            EXISTS (
                SELECT FROM pg_catalog.pg_attribute a
                JOIN pg_catalog.pg_class w ON w.oid = a.attrelid
                JOIN pg_catalog.pg_namespace s ON s.oid = w.relnamespace
                WHERE s.nspname = {name} AND w.relname = 'workflow_status' AND a.attname = 'shard_key'
                    AND NOT a.attisdropped
            )
        FROM pg_catalog.pg_class c
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = {name} AND c.relkind IN ('r', 'p')"
    );
    let row = plain::row(client, &marks).await?;
    let is = |column: usize| row.as_ref().is_some_and(|row| row.get(column) == Some("t"));
    let number = if is(1) { number(client, schema).await? } else { 0 };
    Ok(State { has_schema: is(0), number, has_tables: is(2), is_typescript: is(3), is_sharded: is(4) })
}

/// The recorded number, the highest of several rows; 0 where no row counts.
pub(super) async fn number(client: &Client, schema: &Schema) -> Result<i64, tokio_postgres::Error> {
    let ask = format!("SELECT greatest(max(version), 0) FROM {}.dbos_migrations", schema.quoted());
    Ok(plain::row(client, &ask).await?.map_or(0, |row| integer(&row, 0)))
}

/// What a database has, in one trip that needs no prepared statement. Errors: 42P01 where there is no schema yet.
pub(crate) async fn probe(client: &Client, schema: &Schema) -> Result<Layout, tokio_postgres::Error> {
    let ask = format!(
        "SELECT (SELECT coalesce(max(version), 0) FROM {quoted}.dbos_migrations),
            count(*) FILTER (WHERE (c.relname, a.attname) IN (
                ('workflow_input', 'inputs'), ('workflow_output', 'output'), ('operation_outputs', 'retention_timestamp')
            )) = 3,
            count(*) FILTER (WHERE (c.relname, a.attname) = ('workflow_status', 'creator_xid')) = 1,
            count(*) FILTER (WHERE (c.relname, a.attname) = ('notifications', 'consumed_by_function_id')) = 1,
            count(*) FILTER (
                WHERE c.relname = 'workflow_status' AND a.attname IN ('inputs', 'output', 'error')
            ) = 3
        FROM pg_catalog.pg_attribute a
        JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = {name} AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped",
        quoted = schema.quoted(),
        name = literal(schema.name()),
    );
    let row = plain::row(client, &ask).await?;
    let is = |column: usize| row.as_ref().is_some_and(|row| row.get(column) == Some("t"));
    let number = row.as_ref().map_or(0, |row| integer(row, 0));
    Ok(Layout { number, split: is(1), owner: is(2), consumed_by: is(3), inline: is(4) })
}

/// A bigint that the server has printed.
fn integer(row: &SimpleQueryRow, column: usize) -> i64 {
    row.get(column).and_then(|text| text.parse().ok()).unwrap_or(0)
}
