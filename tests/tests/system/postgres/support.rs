//! Databases with the whole schema, stores on them, and an engine with bodies that leave marks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mainstay::postgres::{self, Config};
use mainstay::{Builder, Ctx, Engine, Queue, Settings, Store};
use mainstay_env::{Env, block_on};
pub(crate) use mainstay_pgkit::own_server;
use mainstay_pgkit::proxy::{Kind, Message};
use mainstay_pgkit::{Client, Database, Server, Template};
use mainstay_store::{Place, Submit, Unit};

/// The application of the tests.
pub(crate) const APP: &str = "shop";

/// Their queue.
pub(crate) const ORDERS: &str = "orders";

/// The function that leaves a mark in its one step.
pub(crate) const JOB: &str = "job";

/// Polling interval of [`ORDERS`], the usual one.
pub(crate) const POLL: Duration = Duration::from_secs(1);

/// How long a standing lease counts as alive under [`quick`].
pub(crate) const TTL: Duration = Duration::from_secs(1);

/// Nothing that a test waits for takes longer, on a machine that is busy with others too.
const PATIENCE: Duration = Duration::from_secs(30);

/// Between two looks.
const LOOK: Duration = Duration::from_millis(10);

/// Template of a database with the whole schema. One of an older program is brought up by whoever opens its copy.
const TEMPLATE: &str = "system";

/// A database of its own on the server of the run, with the whole schema; nothing where there is no server.
pub(crate) fn fresh_database() -> Option<Database> {
    Some(database_on(&mainstay_pgkit::server()?))
}

/// The same on a given server.
pub(crate) fn database_on(server: &Server) -> Database {
    if let Template::Build(build) = server.template(TEMPLATE).expect("a template") {
        let store = block_on(mainstay::open(&build.url())).expect("a schema");
        drop(store);
        build.finish().expect("a template");
    }
    server.database_like(TEMPLATE)
}

/// A store by its address.
pub(crate) async fn open(url: &str, set: impl FnOnce(Config) -> Config) -> Arc<dyn Store> {
    let opened = postgres::open(set(Config::new(url))).await;
    opened.unwrap_or_else(|error| panic!("a store: {}", error.message()))
}

/// Settings under which a death is noticed soon.
pub(crate) fn quick(settings: Settings) -> Settings {
    settings.tick(Duration::from_millis(200)).beat(Duration::from_millis(200)).ttl(TTL)
}

/// How often the step of each workflow has run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks(Arc<Mutex<BTreeMap<String, u32>>>);

impl Marks {
    pub(crate) fn note(&self, id: &str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(id.to_owned()).or_default() += 1;
    }

    /// All of them.
    pub(crate) fn all(&self) -> BTreeMap<String, u32> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many workflows have run their step.
    pub(crate) fn len(&self) -> usize {
        self.all().len()
    }

    /// Workflows that ran it more than once.
    pub(crate) fn doubles(&self) -> Vec<(String, u32)> {
        self.all().into_iter().filter(|(_, times)| *times > 1).collect()
    }
}

/// An engine that serves [`ORDERS`] with bodies that note their one step, which takes `long`.
pub(crate) fn shop(store: &Arc<dyn Store>, marks: &Marks, long: Duration) -> Builder {
    let (env, marks) = (store.env().clone(), marks.clone());
    Engine::builder(store.clone()).app(APP).settings(quick).queue(Queue::new(ORDERS).polling(POLL)).function(
        JOB,
        move |ctx: Ctx| {
            let (env, marks) = (env.clone(), marks.clone());
            async move {
                let id = ctx.workflow_id().to_string();
                ctx.step("one", || async {
                    marks.note(&id);
                    env.sleep(long).await;
                    Ok(())
                })
                .await
            }
        },
    )
}

/// Launches an engine.
pub(crate) async fn launch(builder: Builder) -> Engine {
    builder.launch().await.unwrap_or_else(|error| panic!("a launch: {}", error.message()))
}

/// Ids with a prefix and a number.
pub(crate) fn ids(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{prefix}{n}")).collect()
}

/// Puts workflows of [`JOB`] where they are to be, in one commit.
pub(crate) async fn submit(store: &Arc<dyn Store>, ids: &[String], place: impl Fn() -> Place) {
    let unit = |id: &String| {
        let submit = Submit::new(id.as_str(), JOB, format!("token-{id}"), place()).app(APP).version("shop@1");
        Unit::new().effect(submit.input(r#"{"positionalArgs":[],"namedArgs":{}}"#))
    };
    let units: Vec<Unit> = ids.iter().map(unit).collect();
    let committed = store.commit(&units).await.expect("a commit");
    for reply in committed.units {
        assert!(reply.as_ref().is_ok_and(|reply| reply.is_done()), "{reply:?}");
    }
}

/// The number of rows of the status table for which a condition holds.
pub(crate) fn count(client: &mut Client, condition: &str) -> usize {
    let sql = format!("SELECT count(*) FROM dbos.workflow_status WHERE {condition}");
    client.value(&sql).parse().expect("a number")
}

/// Waits until something holds.
pub(crate) async fn until(env: &Env, what: &str, holds: impl FnMut() -> bool) -> Duration {
    within(env, PATIENCE, what, holds).await
}

/// Waits until something holds, and tells how long that took; fails when it takes longer than the limit.
pub(crate) async fn within(env: &Env, limit: Duration, what: &str, mut holds: impl FnMut() -> bool) -> Duration {
    let begun = env.monotonic();
    while !holds() {
        let took = env.monotonic().since(begun);
        assert!(took < limit, "not within {limit:?}: {what}");
        env.sleep(LOOK).await;
    }
    env.monotonic().since(begun)
}

/// Whether a message has the server claim rows of a queue.
pub(crate) fn is_claim(message: &Message) -> bool {
    answers_claimed_rows(message) && flips(message)
}

/// Whether a message asks the server for the rows that a claim has, its token sent again.
pub(crate) fn is_repeat_of_a_claim(message: &Message) -> bool {
    answers_claimed_rows(message) && !flips(message)
}

fn answers_claimed_rows(message: &Message) -> bool {
    message.kind() == Kind::Execute && message.sql().contains("picked AS MATERIALIZED")
}

fn flips(message: &Message) -> bool {
    message.sql().contains("status = 'PENDING', executor_id = ")
}

/// Whether a message has the server write checkpoints.
pub(crate) fn is_checkpoint(message: &Message) -> bool {
    message.kind() == Kind::Execute && message.sql().contains("operation_outputs (")
}
