//! The conformance suite on the PostgreSQL store, each case on a database of its own, copied from one that a migrator has
//! made. The store is opened as the application's role, which has what `docs/postgres/roles.sql` gives it and no more.

mod layout;
#[path = "../postgres/schema/psql.rs"]
mod psql;
mod roles;
mod trouble;

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use mainstay_conformance::{Backend, Lasting, Trouble};
use mainstay_pgkit::{Client, Database, Server, Template};
use mainstay_postgres::Postgres;
use mainstay_store::{Capabilities, Capability, Env, Result, Store, StoreClock};

use layout::Layout;

/// Connections of a handle: more than a case has calls at once.
const POOL: u32 = 8;

/// A database, made when a case opens it.
#[derive(Default)]
struct Fresh {
    database: OnceLock<Database>,
}

impl Fresh {
    async fn database(&self) -> Result<&Database> {
        if self.database.get().is_none() {
            let server = mainstay_pgkit::server().expect("a server, since the suite runs");
            let made = copy(&server).await?;
            let _ = self.database.set(made);
        }
        Ok(self.database.get().expect("the database was made"))
    }

    async fn open_with(&self, connections: u32, env: &Env, clock: StoreClock) -> Result<Arc<dyn Store>> {
        let url = roles::url(&self.database().await?.url(), roles::APP);
        let config = Layout::chosen().config(url).pool(connections);
        Ok(Arc::new(Postgres::open(env, config, clock).await?))
    }
}

/// A copy of the migrated database, which whoever comes first fills.
async fn copy(server: &Server) -> Result<Database> {
    let key = key();
    if let Template::Build(build) = server.template(&key).expect("a template") {
        roles::create(server);
        let mut owner = Client::connect(&build.url()).expect("a client");
        roles::grant(&mut owner);
        let env = Env::system("template").expect("a thread");
        let (layout, url) = (Layout::chosen(), roles::url(&build.url(), roles::MIGRATOR));
        if let Some(statements) = layout.before() {
            Client::connect(&url).expect("a client").run(&statements);
        }
        drop(Postgres::open(&env, layout.config(url), StoreClock::Server).await?);
        roles::grant(&mut owner);
        build.finish().expect("the template is named");
    }
    Ok(server.database_like(&key))
}

/// What the template is made of, as its key.
fn key() -> String {
    let steps = mainstay_migrations::POSTGRES.iter().chain(mainstay_migrations::OWN).map(|step| step.checksum);
    mainstay_pgkit::template_key(&format!("roles{}", Layout::chosen().number()), steps.chain([roles::FILE]))
}

#[async_trait]
impl Backend for Fresh {
    fn capabilities(&self) -> Capabilities {
        Capabilities::none().with(Capability::Durable).with(Capability::Shared)
    }

    fn has_own_clock(&self) -> bool {
        true
    }

    async fn open(&self, env: Env, clock: StoreClock) -> Result<Arc<dyn Store>> {
        self.open_with(POOL, &env, clock).await
    }

    /// One connection is had by one call after the other.
    async fn open_in_order(&self, env: Env, clock: StoreClock) -> Result<Arc<dyn Store>> {
        self.open_with(1, &env, clock).await
    }

    fn can_trouble(&self, trouble: Trouble) -> bool {
        trouble::can(trouble)
    }

    async fn trouble(&self, trouble: Trouble) -> Lasting {
        trouble::make(self.database.get().expect("the store was opened"), trouble)
    }
}

fn main() -> ExitCode {
    // A list needs no server. Where there is none the kit has said so, or has failed because there must be one.
    let lists = std::env::args().any(|argument| argument == "--list");
    if !lists && mainstay_pgkit::server().is_none() {
        return ExitCode::SUCCESS;
    }
    mainstay_conformance::run(Layout::chosen().name(), || Box::new(Fresh::default()))
}
