//! The runner for this crate's own tests, by plain values. No part of the public interface.

use mainstay_env::Env;
use mainstay_migrations::{POSTGRES, Step};
use mainstay_store::StoreError;
use tokio_postgres::Client;

use crate::identifier::Schema;

use super::shape::{Manner, fill};
use super::{Mode, Route, catalog, ladder, prepare, probe};

/// What may be done to a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum How {
    /// Bring it to 125.
    Up,
    /// Bring it to 108 at most.
    UpTo108,
    /// Change nothing.
    Verify,
    /// Change nothing, and be content with 108.
    Verify108,
}

/// Number, split, owner, consumed_by and inline of a layout.
pub type Seen = (i64, bool, bool, bool, bool);

/// Makes a schema ready. Errors: as opening a store.
pub async fn ready(client: &mut Client, schema: &str, how: How, env: &Env) -> Result<Seen, StoreError> {
    let mode = match how {
        How::Up => Mode::Migrate { hold_at_108: false },
        How::UpTo108 => Mode::Migrate { hold_at_108: true },
        How::Verify => Mode::Verify,
        How::Verify108 => Mode::VerifyHeld,
    };
    let layout = prepare(client, Route::Own, &named(schema), mode, env).await?;
    let probed = probe(client, &named(schema)).await.map_err(|error| crate::error::failed("probe", error))?;
    assert_eq!(layout, probed, "what opening says and what a later look says");
    Ok((layout.number, layout.split, layout.owner, layout.consumed_by, layout.inline))
}

/// Brings a schema to a number, where a start would go on. Errors: as opening a store.
pub async fn climb_to(client: &mut Client, schema: &str, number: u32, env: &Env) -> Result<(), StoreError> {
    ladder::climb(client, &named(schema), number, env).await.map_err(|fault| fault.of("climb"))
}

/// The facts of a schema, in their order.
pub async fn facts_of(client: &Client, schema: &str) -> Result<Vec<String>, tokio_postgres::Error> {
    catalog::lines(client, &named(schema)).await
}

/// The facts that the ladder promises at a number, in their order.
#[must_use]
pub fn facts_at(number: u32) -> Vec<&'static str> {
    let mut facts = catalog::facts(number);
    facts.sort_unstable();
    facts
}

/// The statements of one number, as they are run on a schema that is in use.
#[must_use]
pub fn statements(step: &Step, schema: &str) -> String {
    fill(step, &named(schema), if step.online { Manner::Online } else { Manner::Whole })
}

/// The statements that take an empty schema to a number, in one transaction or without one.
#[must_use]
pub fn statements_to(number: u32, schema: &str) -> String {
    let schema = named(schema);
    let quoted = schema.quoted();
    let mut text = format!(
        "CREATE SCHEMA IF NOT EXISTS {quoted}; CREATE TABLE {quoted}.dbos_migrations (version bigint NOT NULL PRIMARY KEY);"
    );
    for step in POSTGRES.iter().filter(|step| step.number <= number) {
        text.push_str(&fill(step, &schema, Manner::Whole));
    }
    text.push_str(&format!("INSERT INTO {quoted}.dbos_migrations (version) VALUES ({number});"));
    text
}

fn named(schema: &str) -> Schema {
    Schema::new("schema", schema).expect("a name that is allowed")
}
