//! The schema of this project alone, with a small ladder of its own.

use mainstay_env::Env;
use mainstay_migrations::OWN;
use mainstay_store::ErrorKind;
use tokio_postgres::{Client, Transaction};

use crate::fault::Fault;
use crate::plain;
use crate::text::OURS;

use super::race::{self, BEGUN};

/// The letters of `mainstay`: who makes this schema, in a transaction.
const LOCK: i64 = 0x6d61_696e_7374_6179;
/// Tries against others that do the same; each waits for the one before it.
const TRIES: u32 = 12;

/// Makes the schema, or brings it up, where `may_change`; else says what is missing.
pub(super) async fn prepare(client: &mut Client, may_change: bool, env: &Env) -> Result<(), Fault> {
    let newest = i64::from(OWN.last().map_or(0, |last| last.number));
    let mut tries = 0;
    loop {
        let number = number(client).await?;
        if number >= newest {
            return Ok(());
        }
        if !may_change {
            return Err(Fault::Store(
                ErrorKind::Unsupported,
                format!(
                    "schema {OURS} is at number {number}, and {newest} is required: \
                     open the database once with migrations on, by a role that may create it"
                ),
            ));
        }
        let Err(fault) = up(client).await else { continue };
        tries += 1;
        if !race::is_race(&fault) || tries >= TRIES {
            return Err(fault);
        }
        race::pause(env).await;
    }
}

async fn up(client: &mut Client) -> Result<(), Fault> {
    let tx = client.transaction().await?;
    tx.batch_execute(&format!("{BEGUN}; SELECT pg_catalog.pg_advisory_xact_lock({LOCK})")).await?;
    let number = number(tx.client()).await?;
    let mut text = String::new();
    // Not attempted where it is there: that would take a right that the role need not have.
    if !has_schema(&tx).await? {
        text.push_str(&format!("CREATE SCHEMA {OURS};\n"));
    }
    text.push_str(&format!("CREATE TABLE IF NOT EXISTS {OURS}.migrations (version bigint NOT NULL PRIMARY KEY);\n"));
    for step in OWN.iter().filter(|step| i64::from(step.number) > number) {
        text.push_str(step.sql);
        text.push_str(&format!(
            "DELETE FROM {OURS}.migrations;\nINSERT INTO {OURS}.migrations (version) VALUES ({});\n",
            step.number
        ));
    }
    tx.batch_execute(&text).await?;
    Ok(tx.commit().await?)
}

async fn has_schema(tx: &Transaction<'_>) -> Result<bool, Fault> {
    let ask = format!("SELECT FROM pg_catalog.pg_namespace WHERE nspname = '{OURS}'");
    Ok(plain::row(tx.client(), &ask).await?.is_some())
}

/// The recorded number; 0 where nothing is.
async fn number(client: &Client) -> Result<i64, Fault> {
    let ask = format!(
        "SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = '{OURS}' AND c.relname = 'migrations'"
    );
    if plain::row(client, &ask).await?.is_none() {
        return Ok(0);
    }
    let ask = format!("SELECT coalesce(max(version), 0) FROM {OURS}.migrations");
    let row = plain::row(client, &ask).await?;
    Ok(row.and_then(|row| row.get(0)?.parse().ok()).unwrap_or(0))
}
