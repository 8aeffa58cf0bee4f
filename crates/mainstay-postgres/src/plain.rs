//! Statements without parameters, on a connection that has no session yet.

use tokio_postgres::{Client, SimpleQueryMessage, SimpleQueryRow};

/// The first row of an answer to statements without parameters.
pub(crate) async fn row(client: &Client, ask: &str) -> Result<Option<SimpleQueryRow>, tokio_postgres::Error> {
    Ok(rows(client, ask).await?.into_iter().next())
}

/// The rows of an answer to statements without parameters.
pub(crate) async fn rows(client: &Client, ask: &str) -> Result<Vec<SimpleQueryRow>, tokio_postgres::Error> {
    let rows = client.simple_query(ask).await?.into_iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    Ok(rows.collect())
}
