//! What a role must be allowed, said before the first statement that would meet it.

use mainstay_store::ErrorKind;
use tokio_postgres::Client;

use crate::fault::Fault;
use crate::identifier::{Schema, literal};
use crate::plain;
use crate::text::OURS;

/// Tables whose rows the store writes.
const WRITTEN: &[&str] = &[
    "workflow_status",
    "workflow_input",
    "workflow_output",
    "operation_outputs",
    "notifications",
    "workflow_events",
    "workflow_events_history",
    "streams",
    "workflow_schedules",
    "application_versions",
    "queues",
];
/// Our own tables whose rows the store writes.
const OWN_WRITTEN: &[&str] = &["leases", "starts", "claims"];
/// What that takes.
const DML: &str = "SELECT INSERT UPDATE DELETE";

/// Refuses a role that lacks a right on a table that is there, naming role, right and table.
pub(super) async fn check(client: &Client, schema: &Schema) -> Result<(), Fault> {
    let needed = wanted(schema.name(), WRITTEN, "dbos_migrations") + ", " + &wanted(OURS, OWN_WRITTEN, "migrations");
    let ask = format!(
        "SELECT pg_catalog.quote_ident(current_user), right_name,
            pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname)
        FROM (VALUES {needed}) w (space, name, rights)
        JOIN pg_catalog.pg_namespace n ON n.nspname = w.space
        JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = w.name
        CROSS JOIN LATERAL pg_catalog.unnest(pg_catalog.string_to_array(w.rights, ' ')) right_name
        WHERE NOT pg_catalog.has_table_privilege(c.oid, right_name)
        ORDER BY n.nspname, c.relname, right_name"
    );
    let rows = plain::rows(client, &ask).await?;
    let Some(role) = rows.first().and_then(|row| row.get(0)) else { return Ok(()) };
    let missing: Vec<String> =
        rows.iter().filter_map(|row| Some(format!("{} on {}", row.get(1)?, row.get(2)?))).collect();
    Err(Fault::Store(ErrorKind::Denied, format!("role {role} lacks {}", missing.join(", "))))
}

fn wanted(space: &str, written: &[&str], read: &str) -> String {
    let row = |name: &str, rights: &str| format!("({}, {}, {})", literal(space), literal(name), literal(rights));
    let rows: Vec<String> = written.iter().map(|name| row(name, DML)).chain([row(read, "SELECT")]).collect();
    rows.join(", ")
}
