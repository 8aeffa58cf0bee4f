//! Names of the shared schema that somebody's own objects have, where it would be made.

use std::collections::BTreeSet;

use mainstay_store::ErrorKind;
use tokio_postgres::Client;

use crate::fault::Fault;
use crate::identifier::{Schema, literal};
use crate::plain;

use super::catalog;

/// The refusal of a schema in which a name is taken that the numbers up to `target` use; none where all are free.
///
/// A function counts whatever its parameters: one with ours would be replaced.
pub(super) async fn find(
    client: &Client,
    schema: &Schema,
    target: u32,
) -> Result<Option<Fault>, tokio_postgres::Error> {
    let relations = list(&catalog::relation_names(target));
    let functions = list(&catalog::function_names(target));
    let ask = format!(
        "SELECT kind || ' ' || pg_catalog.quote_ident(name) FROM (
            SELECT relnamespace AS space, relname AS name, CASE relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view'
                WHEN 'S' THEN 'sequence' WHEN 'f' THEN 'foreign table' WHEN 'c' THEN 'type' WHEN 'i' THEN 'index'
                WHEN 'I' THEN 'index' ELSE 'table' END AS kind
            FROM pg_catalog.pg_class
            WHERE relname IN ({relations}) AND NOT (relname = 'dbos_migrations' AND relkind IN ('r', 'p'))
            UNION ALL
            SELECT typnamespace, typname, 'type' FROM pg_catalog.pg_type WHERE typrelid = 0 AND typname IN ({relations})
            UNION ALL
            SELECT pronamespace, proname, 'function' FROM pg_catalog.pg_proc WHERE proname IN ({functions})
        ) taken
        JOIN pg_catalog.pg_namespace n ON n.oid = taken.space
        WHERE n.nspname = {} ORDER BY kind, name",
        literal(schema.name())
    );
    let rows = plain::rows(client, &ask).await?;
    let Some(first) = rows.first().and_then(|row| row.get(0)) else { return Ok(None) };
    let more = if rows.len() > 1 { format!(" (and {} more)", rows.len() - 1) } else { String::new() };
    let name = schema.quoted();
    Ok(Some(Fault::Store(
        ErrorKind::Unsupported,
        format!(
            "schema {name} has a {first}{more} that is no part of the shared schema, which uses the name itself: \
             rename what is there, or let the store have another schema"
        ),
    )))
}

fn list(names: &BTreeSet<&str>) -> String {
    let quoted: Vec<String> = names.iter().map(|name| literal(name)).collect();
    quoted.join(", ")
}
