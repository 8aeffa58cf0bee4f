//! A database of a test, clients on it, and schemas at any number.

use std::future::Future;

use mainstay_env::{Env, block_on};
use mainstay_migrations::POSTGRES;
use mainstay_pgkit::{Database, server};
use mainstay_postgres::schema_testing::{self as runner, How, Seen};
use mainstay_store::StoreError;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

/// Whether the long runs are asked for.
pub(crate) fn is_full() -> bool {
    std::env::var_os("MAINSTAY_FULL").is_some()
}

/// A database and the environment that its connections live in.
#[derive(Clone, Debug)]
pub(crate) struct Lab {
    pub(crate) env: Env,
    pub(crate) database: Database,
}

/// Runs a test on a database of its own; not at all where there is no server.
pub(crate) fn with_database<F: Future<Output = ()> + Send + 'static>(body: impl FnOnce(Lab) -> F) {
    let Some(server) = server() else { return };
    let env = Env::system("schema").expect("a thread");
    let lab = Lab { env: env.clone(), database: server.database() };
    block_on(env.tasks().spawn("test", body(lab))).expect("the test to end well");
}

impl Lab {
    /// A connection.
    pub(crate) async fn client(&self) -> Client {
        self.connect(&self.database.url().parse().expect("a url")).await
    }

    /// A connection as another role.
    pub(crate) async fn client_as(&self, role: &str) -> Client {
        let mut config: Config = self.database.url().parse().expect("a url");
        config.user(role);
        self.connect(&config).await
    }

    async fn connect(&self, config: &Config) -> Client {
        let (client, connection) = config.connect(NoTls).await.expect("a connection");
        drop(self.env.tasks().spawn("connection", connection));
        client
    }

    /// Opens a schema on a connection of its own.
    pub(crate) async fn ready(&self, schema: &str, how: How) -> Result<Seen, StoreError> {
        runner::ready(&mut self.client().await, schema, how, &self.env).await
    }

    /// Makes a schema at a number, as a program of that time has left it.
    pub(crate) async fn schema_at(&self, number: u32, schema: &str) -> Client {
        let client = self.client().await;
        client.batch_execute(&runner::statements_to(number, schema)).await.expect("a schema of that number");
        client
    }
}

/// The numbers that a program may have recorded.
pub(crate) fn recorded() -> impl Iterator<Item = u32> {
    POSTGRES.iter().filter(|step| !step.sql.is_empty()).map(|step| step.number)
}

/// The rows of an answer, as text.
pub(crate) async fn rows(client: &Client, ask: &str) -> Vec<Vec<Option<String>>> {
    let messages = client.simple_query(ask).await.unwrap_or_else(|error| panic!("{ask}: {error:?}"));
    let row = |message| match message {
        SimpleQueryMessage::Row(row) => Some((0..row.len()).map(|n| row.get(n).map(str::to_owned)).collect()),
        _ => None,
    };
    messages.into_iter().filter_map(row).collect()
}

/// The one value of an answer; `NULL` for none.
pub(crate) async fn value(client: &Client, ask: &str) -> String {
    let rows = rows(client, ask).await;
    assert_eq!(rows.len(), 1, "{ask}");
    rows[0][0].clone().unwrap_or_else(|| "NULL".into())
}

/// What a schema must be: the catalog of a number, that number in one row, and no unfinished index.
pub(crate) async fn assert_at(client: &Client, schema: &str, number: u32, what: &str) {
    let found = runner::facts_of(client, schema).await.expect("a catalog");
    assert_eq!(found, runner::facts_at(number), "{what}");
    let quoted = quote(schema);
    let recorded = rows(client, &format!("SELECT version FROM {quoted}.dbos_migrations")).await;
    assert_eq!(recorded, [[Some(number.to_string())]], "{what}");
}

/// An identifier.
pub(crate) fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The whole text of an error.
pub(crate) fn text(error: &StoreError) -> String {
    format!("{:?}: {error}", error.kind())
}
