//! Looks after a connection whose statements may take as long as they will, such as the building of an index.
//!
//! No deadline tells a long statement from a line that has gone dead. The server does: it says on another connection
//! whether it still works for this one.

use std::time::Duration;

use mainstay_store::{ErrorKind, StoreError};
use tokio_postgres::Client;

use super::attempt::drive;
use super::{Connected, Connector, OP};
use crate::error;
use crate::plain;
use crate::session::{IDLE, lowered};

/// Looks that find the server unreachable, one after the other, until it is said.
const LOST: u32 = 3;

/// Shortest time between two looks: no pause between two statements is as long.
const LEAST: Duration = Duration::from_secs(1);

/// A connection that is looked after.
#[derive(Debug)]
pub(crate) struct Watched {
    /// The server's process, where it is one alone.
    process: Option<i32>,
    every: Duration,
}

/// What a look at a connection has found.
enum Look {
    /// The server works for it, or waits for a lock.
    Works,
    /// The server waits for this client, since the moment that the text has; or the session is gone.
    Waits(String),
    /// The server is there, and has no connection for the question.
    Unknown,
    Unreached(StoreError),
}

impl Watched {
    /// Begins: from now on the server undoes a transaction of which it hears nothing for as long as `limit`.
    /// Behind a pooler nothing is set or known of a process.
    ///
    /// Errors: `Unavailable` when there is no answer within `limit`; as the server's.
    pub(crate) async fn begin(connector: &Connector, client: &Client, limit: Duration) -> Result<Self, StoreError> {
        let every = limit.max(LEAST);
        if connector.pooler {
            return Ok(Self { process: None, every });
        }
        let ask = format!("SELECT pg_catalog.pg_backend_pid(), {}", lowered(IDLE, limit, false));
        let Ok(answer) = connector.env.timeout(limit, plain::row(client, &ask)).await else {
            return Err(silent());
        };
        let row = answer.map_err(|error| error::failed(OP, error))?;
        Ok(Self { process: row.and_then(|row| row.get(0)?.parse().ok()), every })
    }

    /// Ends when the server no longer works for the connection, or can no longer be reached; says why.
    pub(crate) async fn lost(&self, connector: &Connector) -> StoreError {
        let (mut unreached, mut before) = (0, None);
        loop {
            connector.env.sleep(self.every).await;
            let look = connector.env.timeout(self.every, self.look(connector)).await;
            match look.unwrap_or_else(|_| Look::Unreached(silent())) {
                Look::Works => (unreached, before) = (0, None),
                // Between two statements it waits for a moment, but not in the same pause twice.
                Look::Waits(since) if before.as_ref() == Some(&since) => return silent(),
                Look::Waits(since) => (unreached, before) = (0, Some(since)),
                Look::Unknown => unreached = 0,
                Look::Unreached(why) => {
                    unreached += 1;
                    if unreached == LOST {
                        return why;
                    }
                }
            }
        }
    }

    /// Asks on a connection of its own.
    async fn look(&self, connector: &Connector) -> Look {
        let Connected { client, mut messages } = match connector.connect_to(&connector.settings.database).await {
            Ok(connected) => connected,
            Err(failure) if failure.is_answer() => return Look::Unknown,
            Err(failure) => return Look::Unreached(failure.into_error()),
        };
        let Some(process) = self.process else { return Look::Works };
        let ask = format!(
            "SELECT coalesce((SELECT CASE WHEN state LIKE 'idle%' THEN state_change::text ELSE 'works' END
                FROM pg_catalog.pg_stat_activity WHERE pid = {process}), 'gone')"
        );
        match drive(&mut messages, &mut Default::default(), plain::row(&client, &ask)).await {
            Ok(row) => match row.as_ref().and_then(|row| row.get(0)) {
                Some(since) if since != "works" => Look::Waits(since.to_owned()),
                _ => Look::Works,
            },
            Err(error) => Look::Unreached(error::failed(OP, error)),
        }
    }
}

fn silent() -> StoreError {
    StoreError::new(ErrorKind::Unavailable, OP).with_source("no answer of the server")
}
