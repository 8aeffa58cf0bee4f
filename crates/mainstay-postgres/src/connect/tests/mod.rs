//! Connecting to real servers, each private to its test.

use std::future::Future;
use std::sync::mpsc;

use mainstay_env::Env;
use mainstay_pgkit::{Server, own_server as start};
use mainstay_store::StoreError;

use super::attempt::drive;
use super::environment::Environment;
use super::{Connected, Connector};
use crate::config::Config;
use crate::plain;

mod canary;
mod certificates;
mod codes;
mod create;
mod hostile;
mod hosts;
mod matrix;

fn env() -> Env {
    Env::system("connect-test").expect("an environment")
}

/// The value of a future that runs on the environment's own thread.
fn block<T: Send + 'static>(env: &Env, future: impl Future<Output = T> + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    let task = env.tasks().spawn("test", async move { sender.send(future.await) });
    let value = receiver.recv().expect("the task has ended with a value");
    drop(task);
    value
}

/// A connector in surroundings of these variables alone.
fn connector(env: &Env, config: &Config, variables: &[(&str, &str)]) -> Result<Connector, StoreError> {
    let variables = variables.iter().copied().chain([("USER", "postgres")]);
    Connector::within(config, env, &Environment::of(variables))
}

/// Connects and answers the one value of a query.
fn value(env: &Env, url: &str, query: &'static str) -> Result<String, StoreError> {
    let connector = connector(env, &Config::new(url), &[])?;
    block(env, async move { Ok(ask(connector.connect().await?, query).await) })
}

/// The first value of a query.
async fn ask(connected: Connected, query: &str) -> String {
    let Connected { client, mut messages } = connected;
    let row = drive(&mut messages, &mut Default::default(), plain::row(&client, query)).await.expect("an answer");
    row.expect("a row").get(0).unwrap_or_default().to_owned()
}

/// The server's place in a URL by TCP, with a query.
fn url(server: &Server, user: &str, database: &str, query: &str) -> String {
    format!("postgres://{user}@127.0.0.1:{}/{database}?{query}", server.port())
}
