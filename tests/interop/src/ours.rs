//! Our engine with the same workflows as the programs of the other SDKs.

use std::time::Duration;

use mainstay::postgres::{Config, PayloadLayout};
use mainstay::prelude::*;
use mainstay::{Builder, Settings, Start, Target};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::plan::Tables;

/// Our application, its version and its queue.
pub(crate) const APP: &str = "ours";
pub(crate) const VERSION: &str = "ours@1";
pub(crate) const QUEUE: &str = "ours-q";
/// How long a result may take.
const PATIENCE: Duration = Duration::from_secs(40);

/// An application's error with a type of its own.
#[derive(Debug, Serialize, Deserialize, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct Declined {
    pub(crate) reason: String,
}

#[workflow]
async fn echo(_ctx: Ctx, value: Value) -> Result<Value> {
    Ok(value)
}

#[workflow]
async fn join(_ctx: Ctx, text: String, number: u64) -> Result<String> {
    Ok(format!("{text}{number}"))
}

#[workflow]
async fn nothing(_ctx: Ctx) -> Result<()> {
    Ok(())
}

#[workflow]
async fn refuse(_ctx: Ctx, reason: String) -> Result<()> {
    Err(Error::typed(Declined { reason }).with_code(42))
}

#[workflow]
async fn steps(ctx: Ctx, number: u64) -> Result<u64> {
    let first = ctx.step("double", || async { Ok(2 * number) }).await?;
    let second = ctx.step("double", || async { Ok(2 * number) }).await?;
    Ok(first + second)
}

#[workflow]
async fn largest(_ctx: Ctx) -> Result<u64> {
    Ok(u64::MAX)
}

#[workflow]
async fn hold(ctx: Ctx, seconds: u64) -> Result<String> {
    ctx.sleep(Duration::from_secs(seconds)).await?;
    Ok("held".to_owned())
}

/// A workflow of a class, with a configured instance.
struct Desk(&'static str);

impl Workflow for Desk {
    type Args = (String,);
    type Output = String;
    const NAME: &'static str = "open";
    const PARAMS: &'static [&'static str] = &["text"];
    const CLASS: Option<&'static str> = Some("Desk");

    fn instance(&self) -> Option<String> {
        Some(self.0.to_owned())
    }

    async fn run(&self, _ctx: Ctx, (text,): (String,)) -> Result<String> {
        Ok(format!("{}:{text}", self.0))
    }
}

/// Launches our engine on a database.
pub(crate) async fn launch(url: &str, tables: Tables) -> Result<Engine, String> {
    let builder = builder(url, tables).await?;
    let builder = builder.register(echo).register(join).register(nothing).register(refuse).register(steps);
    let builder = builder.register(largest).register(hold).register(Desk("east"));
    builder.launch().await.map_err(|error| format!("our engine: {error}"))
}

/// The word on the command line by which this program is a process of ours that is going to be killed.
pub(crate) const VICTIM: &str = "--victim";
/// Its application, which no other process has, so that its row is nobody's to take over.
pub(crate) const VICTIMS: &str = "victims";
/// Its workflow.
pub(crate) const VICTIM_ID: &str = "held-by-the-dead";

/// What the process does: begins a workflow that lasts and waits to be killed. Errors: it could not, or was not killed.
pub(crate) async fn be_killed(url: &str, tables: Tables) -> Result<(), String> {
    let builder = application(VICTIMS, url, tables).await?.register(hold);
    let engine = builder.launch().await.map_err(|error| format!("our engine: {error}"))?;
    started(engine.start(Invocation::named("hold").arg(600)).id(VICTIM_ID)).await?;
    tokio::time::sleep(PATIENCE).await;
    Err("nobody has killed it".to_owned())
}

/// As [`launch`], without a workflow of its own: whatever it starts is another's.
pub(crate) async fn launch_caller(url: &str, tables: Tables) -> Result<Engine, String> {
    builder(url, tables).await?.launch().await.map_err(|error| format!("our engine: {error}"))
}

async fn builder(url: &str, tables: Tables) -> Result<Builder, String> {
    // What their clients enqueue sends no hint.
    let queue = Queue::new(QUEUE).polling(Duration::from_millis(100));
    Ok(application(APP, url, tables).await?.version(VERSION).queue(queue))
}

/// An application of ours without queues, which belong to one, as versions do.
async fn application(name: &str, url: &str, tables: Tables) -> Result<Builder, String> {
    let config = Config::new(url);
    let config = match tables {
        Tables::Newest => config,
        Tables::Inline => config.payload_layout(PayloadLayout::Inline),
        Tables::Held => config.hold_at_108(),
    };
    let store = mainstay::postgres::open(config).await.map_err(|error| format!("our store: {error}"))?;
    let quick = |settings: Settings| {
        settings.tick(Duration::from_millis(200)).beat(Duration::from_millis(500)).ttl(Duration::from_secs(2))
    };
    Ok(Engine::builder(store).app(name).settings(quick))
}

/// Ends an engine.
pub(crate) async fn end(engine: Engine) -> Result<(), String> {
    engine.shutdown(Duration::from_secs(5)).await.map_err(|error| format!("our shutdown: {error}"))
}

/// Starts, and gives the id.
pub(crate) async fn started<W: Target>(start: Start<W>) -> Result<String, String> {
    start.await.map(|handle| handle.id().to_string()).map_err(|error| format!("our start: {error}"))
}

/// The result of a workflow that we know by its id alone. Outer errors: it has none in time.
pub(crate) async fn result(engine: &Engine, id: &str) -> Result<Result<Value>, String> {
    match engine.handle_by_id::<Value>(id).result().timeout(PATIENCE).await {
        Err(error) if error.kind() == ErrorKind::Timeout => {
            let row = engine.handle_by_id::<Value>(id).row().await;
            Err(format!("{error}: {row:?}"))
        }
        result => Ok(result),
    }
}
