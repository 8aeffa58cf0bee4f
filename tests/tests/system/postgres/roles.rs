//! Programs that have the documented rights and no more.

use mainstay::postgres::{self, Config};
use mainstay::{Ctx, ErrorKind, Invocation, Store};
use mainstay_env::block_on;
use mainstay_pgkit::{Client, Database};
use mainstay_store::Place;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::suite;
use super::support::{self, Marks, ORDERS, ids, launch, shop, submit, until};

/// The file that an administrator runs with psql.
const ROLES: &str = include_str!("../../../../docs/postgres/roles.sql");

/// A database with its three roles, whose names belong to the server.
struct Guarded {
    database: Database,
    admin: Client,
}

impl Guarded {
    fn new() -> Option<Self> {
        let database = mainstay_pgkit::server()?.database();
        let guarded = Self { admin: database.client(), database };
        Some(guarded)
    }

    fn role(&self, name: &str) -> String {
        format!("{}_{name}", self.database.name())
    }

    fn url(&self, role: &str) -> String {
        self.database.url().replace("postgres@", &format!("{}@", self.role(role)))
    }

    /// The roles, the file, the migrator's opening, and the file again: as the file says it.
    async fn set_up(&mut self) {
        for role in ["migrator", "app", "viewer"] {
            let role = self.role(role);
            self.admin.run(&format!("CREATE ROLE {role} LOGIN"));
        }
        self.grant();
        drop(support::open(&self.url("migrator"), |config| config).await);
        self.grant();
    }

    /// Runs the file as psql does: variables filled in, what a statement before `\gexec` answers run in turn.
    fn grant(&mut self) {
        let mut text = ROLES.to_owned();
        let roles = ["migrator", "app", "viewer"].map(|name| (name, self.role(name)));
        for (name, value) in [("schema", "dbos".to_owned())].into_iter().chain(roles) {
            text = text.replace(&format!(":\"{name}\""), &format!("\"{value}\""));
            text = text.replace(&format!(":'{name}'"), &format!("'{value}'"));
        }
        let mut statement = String::new();
        for line in text.lines().filter(|line| !line.starts_with("--")) {
            statement += line;
            statement.push('\n');
            if let Some(ask) = statement.trim_end().strip_suffix("\\gexec") {
                for mut row in self.admin.rows(ask) {
                    let made = row.pop().flatten().expect("a statement");
                    self.admin.run(&made);
                }
            } else if line.ends_with(';') {
                self.admin.run(&statement);
            } else {
                continue;
            }
            statement.clear();
        }
        assert_eq!(statement.trim(), "", "an unfinished statement");
    }

    async fn open(&self, role: &str, set: impl FnOnce(Config) -> Config) -> mainstay::Result<Arc<dyn Store>> {
        postgres::open(set(Config::new(self.url(role)))).await
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        self.database.terminate_sessions();
        let mut admin = self.database.client();
        for role in ["migrator", "app", "viewer"] {
            let role = self.role(role);
            admin.run(&format!("DROP OWNED BY {role} CASCADE; DROP ROLE {role}"));
        }
    }
}

#[test]
fn case_o48_the_facade_works_as_the_application_role_with_and_without_migrations() {
    let Some(mut guarded) = Guarded::new() else { return };
    block_on(async {
        guarded.set_up().await;
        let verified = guarded.open("app", |config| config.verify_only()).await;
        let verified = verified.unwrap_or_else(|error| panic!("verified: {}", error.message()));
        suite::run(&verified, "shop").await;
        // With migrations there is nothing left to do, and nothing is tried.
        let marks = Marks::default();
        let store = guarded.open("app", |config| config).await.expect("a store");
        let engine = launch(shop(&store, &marks, Duration::ZERO)).await;
        submit(&store, &ids("w", 5), || Place::queue(ORDERS)).await;
        until(store.env(), "they run", || marks.len() == 5).await;
        engine.shutdown(Duration::from_secs(5)).await.expect("an end");
        let owner = "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname IN ('dbos', 'mainstay')";
        assert_eq!(guarded.admin.value(owner), guarded.role("migrator"), "the application made nothing");
    });
}

#[test]
fn case_o48_a_role_that_may_not_connect_to_the_database_postgres_needs_not() {
    let Some(server) = support::own_server(mainstay_pgkit::Options::new()) else { return };
    let database = server.database();
    let mut guarded = Guarded { admin: database.client(), database };
    block_on(async {
        guarded.set_up().await;
        server.client().run("REVOKE CONNECT ON DATABASE postgres FROM PUBLIC");
        let store = guarded.open("app", |config| config).await.expect("it needs nothing of another database");
        suite::run(&store, "shop").await;
    });
}

#[test]
fn case_o48_a_missing_right_is_named() {
    let Some(mut guarded) = Guarded::new() else { return };
    block_on(async {
        guarded.set_up().await;
        // Nothing at all of the schema: the error of the opening says what is missing.
        let refused = guarded.open("viewer", |config| config.verify_only()).await.expect_err("no rights");
        assert_eq!(refused.kind(), ErrorKind::Refused, "{}", refused.message());
        assert!(refused.message().contains("dbos"), "{}", refused.message());
        // One table: the call that meets it does.
        let store = guarded.open("app", |config| config).await.expect("a store");
        let app = guarded.role("app");
        guarded.admin.run(&format!("REVOKE SELECT ON dbos.queues FROM {app}"));
        let refused = store.queue_list(&"shop".into()).await.expect_err("a right is missing");
        assert_eq!(refused.kind(), mainstay_store::ErrorKind::Denied);
        let told = format!("{refused:?}");
        assert!(told.contains("42501") && told.contains("queues"), "{told}");
        let engine = mainstay::Engine::builder(store).app("shop").queue(mainstay::Queue::new("orders")).launch().await;
        let refused = engine.err().map(|error| format!("{error:?}")).expect("a launch reads the queues");
        assert!(refused.contains("42501") && refused.contains("queues"), "{refused}");
        // Given again, everything is there without another opening.
        guarded.grant();
        let store = guarded.open("app", |config| config).await.expect("a store");
        assert!(store.queue_list(&"shop".into()).await.is_ok());
        taken_at_run_time(&mut guarded).await;
    });
}

/// Takes rights while work runs: the caller is told which, and what runs waits for them.
async fn taken_at_run_time(guarded: &mut Guarded) {
    let store = guarded.open("app", |config| config).await.expect("a store");
    let env = store.env().clone();
    let (begun, app) = (Arc::new(AtomicBool::new(false)), guarded.role("app"));
    let seen = begun.clone();
    let steps = move |ctx: Ctx| {
        let seen = seen.clone();
        async move {
            let step = || async {
                seen.store(true, Ordering::Relaxed);
                Ok(())
            };
            ctx.step("one", step).await
        }
    };
    let engine = launch(mainstay::Engine::builder(store).app("shop").function("steps", steps)).await;
    let call = || Invocation::named("steps").returning::<()>();
    // A step that may not be written is waited for, since what it did is done.
    guarded.admin.run(&format!("REVOKE INSERT ON dbos.operation_outputs FROM {app}"));
    let running = engine.start(call()).await.expect("a start writes no step");
    until(&env, "the step has run", || begun.load(Ordering::Relaxed)).await;
    let error = running.result().timeout(Duration::from_millis(500)).await.expect_err("it waits");
    assert_eq!(error.kind(), ErrorKind::Timeout, "{}", error.message());
    // What a caller asks for is answered at once.
    guarded.admin.run(&format!("REVOKE INSERT ON dbos.workflow_status FROM {app}"));
    let asked = env.monotonic();
    let refused = engine.start(call()).await.expect_err("a right is missing");
    assert_eq!(refused.kind(), ErrorKind::Refused, "{}", refused.message());
    let message = refused.message();
    // Where both share a batch, the server names the table that it comes to first.
    let named = ["workflow_status", "operation_outputs"].iter().any(|table| message.contains(table));
    assert!(message.contains("42501") && named, "{message}");
    assert!(env.monotonic().since(asked) < Duration::from_secs(10), "it was tried again");
    guarded.grant();
    running.result().timeout(Duration::from_secs(60)).await.expect("it goes on");
    engine.shutdown(Duration::from_secs(5)).await.expect("an end");
}
