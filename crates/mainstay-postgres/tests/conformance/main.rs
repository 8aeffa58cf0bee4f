//! The conformance suite on the PostgreSQL store, each case on a database of its own, copied from one that is migrated.

mod trouble;

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::UNIX_EPOCH;

use async_trait::async_trait;
use mainstay_conformance::{Backend, Lasting, Trouble};
use mainstay_pgkit::{Database, Server, Template};
use mainstay_postgres::{Config, Postgres};
use mainstay_store::{Capabilities, Capability, Env, Result, Store, StoreClock};

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
}

/// A copy of the migrated database of this program, which whoever comes first fills.
async fn copy(server: &Server) -> Result<Database> {
    let key = key();
    if let Template::Build(build) = server.template(&key).expect("a template") {
        let env = Env::system("template").expect("a thread");
        drop(Postgres::open(&env, Config::new(build.url()), StoreClock::Server).await?);
        build.finish().expect("the template is named");
    }
    Ok(server.database_like(&key))
}

/// Another program may bring other migrations.
fn key() -> String {
    let program = std::env::current_exe().and_then(std::fs::metadata).expect("this program");
    let built = program.modified().expect("a time").duration_since(UNIX_EPOCH).expect("after 1970");
    format!("conformance_{:x}_{:x}", program.len(), built.as_nanos() % (1 << 48))
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
        let config = Config::new(self.database().await?.url()).pool(POOL);
        Ok(Arc::new(Postgres::open(&env, config, clock).await?))
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
    mainstay_conformance::run("postgres", || Box::new(Fresh::default()))
}
