//! Creates the database, as a role that may.

use std::collections::VecDeque;
use std::time::Duration;

use mainstay_store::{ErrorKind, StoreError};

use super::attempt::{Unconnected, drive};
use super::{Connected, Connector, refuse};
use crate::error::{self, Failure};
use crate::identifier::quote;

/// Databases to ask from, in turn: the second can be had where the first is closed to the role.
const NEIGHBOURS: [&str; 2] = ["postgres", "template1"];

/// What the database is made from, in turn: the server's template; where that has another encoding, the one that takes any;
/// and where its locale is for another encoding too, the locale that is for all. Every text must have a place in it.
const ORIGINS: [&str; 3] = [
    "ENCODING 'UTF8'",
    "TEMPLATE template0 ENCODING 'UTF8'",
    "TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'",
];

/// What the server says of an encoding that the template or the locale does not go with.
const ENCODING: &str = "22023";

/// Tries of the statement: the template is busy while another process connects to it or copies it.
const TRIES: u32 = 10;

const PAUSE: Duration = Duration::from_millis(200);

impl Connector {
    /// Creates the database; one that is there by now is as good.
    pub(super) async fn create(&self) -> Result<(), StoreError> {
        let mut tries = 1;
        loop {
            let Err(error) = self.create_once().await else { return Ok(()) };
            if error.kind() != ErrorKind::Contended || tries == TRIES {
                return Err(error);
            }
            tries += 1;
            self.env.sleep(PAUSE).await;
        }
    }

    async fn create_once(&self) -> Result<(), StoreError> {
        let Connected { client, mut messages } = self.neighbour().await?;
        let name = quote(&self.settings.database);
        let run = async {
            let mut done = Ok(());
            for origin in ORIGINS {
                let statement = format!("CREATE DATABASE {name} {origin}");
                done = drive(&mut messages, &mut VecDeque::new(), client.batch_execute(&statement)).await;
                if !done.as_ref().is_err_and(|error| error.code().is_some_and(|code| code.code() == ENCODING)) {
                    break;
                }
            }
            done
        };
        let done = self.env.timeout(self.create_limit, run).await;
        let Ok(done) = done else { return Err(refuse(ErrorKind::Timeout, "creating the database took too long")) };
        let Err(error) = done else { return Ok(()) };
        match error.code().map(|code| code.code()) {
            // Another process was faster; the second code is its row in the catalog.
            Some("42P04" | "23505") => Ok(()),
            Some("42501") => Err(refuse(
                ErrorKind::Denied,
                "the database does not exist and the role may not create it: grant it CREATEDB, or create the database",
            )),
            _ => {
                let shown = Failure::of(&error).map(|text| super::redact::redacted(&self.settings, text));
                Err(refuse(error::kind(&error), format!("creating the database: {shown}")))
            }
        }
    }

    async fn neighbour(&self) -> Result<Connected, StoreError> {
        let mut closed: Option<Unconnected> = None;
        for database in NEIGHBOURS {
            match self.connect_to(database).await {
                Ok(connected) => return Ok(connected),
                Err(failure) if failure.is_missing() || failure.is_refused_there() || failure.is_login() => {
                    closed = Some(failure);
                }
                Err(failure) => return Err(failure.into_error()),
            }
        }
        let why = closed.map_or_else(String::new, |failure| failure.into_error().to_string());
        Err(refuse(
            ErrorKind::Denied,
            format!(
                "the database does not exist, and it is created from the database postgres or template1, which the role \
                 cannot connect to: grant it CONNECT on one of them, or create the database ({why})"
            ),
        ))
    }
}
