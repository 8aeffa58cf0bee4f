//! The scenarios. Each is given a new database and says what it found instead of what it expected.

mod our_client;
mod side_by_side;
mod sql_function;
mod their_client;

use std::path::Path;

use mainstay::prelude::Engine;
use serde_json::Value;

use crate::ours;
use crate::peer::{Executor, Peer, Told};
use crate::plan::{First, Sdk, Tables};
use crate::values::{same, shown};

pub(crate) use our_client::our_client;
pub(crate) use side_by_side::side_by_side;
pub(crate) use sql_function::sql_function;
pub(crate) use their_client::their_client;

/// Their application, its version and its queue.
const THEIRS: Executor<'static> = Executor { app: "theirs", version: "t1", queue: "theirs-q" };

/// Where a scenario runs.
pub(crate) struct Place<'a> {
    pub(crate) sdk: Sdk,
    pub(crate) first: First,
    pub(crate) tables: Tables,
    pub(crate) sdks: &'a Path,
    pub(crate) url: &'a str,
}

impl Place<'_> {
    /// Both programs, theirs as an executor, started in the order of the scenario.
    async fn both(&self) -> Result<(Engine, Peer), String> {
        if self.first == First::Ours {
            let engine = self.ours().await?;
            return Ok((engine, self.theirs().await?));
        }
        let peer = self.theirs().await?;
        Ok((self.ours().await?, peer))
    }

    /// As `both`, and ours has no workflow of its own.
    async fn caller_and_theirs(&self) -> Result<(Engine, Peer), String> {
        let caller = ours::launch_caller(self.url, self.tables);
        if self.first == First::Ours {
            let engine = caller.await?;
            return Ok((engine, self.theirs().await?));
        }
        let peer = self.theirs().await?;
        Ok((caller.await?, peer))
    }

    async fn ours(&self) -> Result<Engine, String> {
        ours::launch(self.url, self.tables).await
    }

    async fn theirs(&self) -> Result<Peer, String> {
        Peer::executor(self.sdk, self.sdks, self.url, THEIRS).await
    }

    /// A client of theirs, once our engine has the database; where theirs makes the tables, an executor has been there first.
    async fn client(&self) -> Result<(Engine, Peer), String> {
        if self.first == First::Theirs {
            self.theirs().await?.end().await?;
        }
        let engine = self.ours().await?;
        Ok((engine, Peer::client(self.sdk, self.sdks, self.url).await?))
    }
}

/// A value that is told must be the one that was sent.
fn expect_value(what: &str, told: Told, expected: &Value) -> Result<(), String> {
    match told {
        Told::Value(value) if same(&value, expected) => Ok(()),
        Told::Value(value) => Err(format!("{what}: {} where {} was expected", shown(&value), shown(expected))),
        error => Err(format!("{what}: {error:?} where {} was expected", shown(expected))),
    }
}

/// What our handle gives, as told.
fn told(result: mainstay::Result<Value>) -> Told {
    match result {
        Ok(value) => Told::Value(value),
        Err(error) => Told::Error {
            name: error.name().to_owned(),
            message: error.message().to_owned(),
            code: error.code().cloned().unwrap_or_default(),
            data: error.data().cloned().unwrap_or_default(),
        },
    }
}

/// The error that every program's `refuse` gives.
fn declined(reason: &str) -> Told {
    Told::Error {
        name: "Declined".to_owned(),
        message: reason.to_owned(),
        code: serde_json::json!(42),
        data: serde_json::json!({ "reason": reason }),
    }
}

fn expect(what: &str, told: &Told, expected: &Told) -> Result<(), String> {
    if told == expected { Ok(()) } else { Err(format!("{what}: {told:?} where {expected:?} was expected")) }
}
