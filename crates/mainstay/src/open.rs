//! Opening a store by its address.

use std::sync::Arc;

use mainstay_env::Env;
use mainstay_memory::Memory;
use mainstay_runtime::private::{refused, store_error};
use mainstay_runtime::{Error, Result};
use mainstay_store::{ErrorKind, Store, StoreClock, StoreError};

/// Name of the thread that engine and store work on.
const THREAD: &str = "mainstay";

/// A store that lives in the memory of this process and ends with it: for tests and examples.
///
/// # Panics
/// When the operating system has no thread to give.
///
/// ```
/// use mainstay::prelude::*;
/// # #[tokio::main]
/// # async fn main() -> Result<()> {
/// let engine = Engine::builder(mainstay::memory()).app("shop").launch().await?;
/// assert_eq!(engine.stats().running, 0);
/// # engine.shutdown(std::time::Duration::from_secs(5)).await
/// # }
/// ```
#[must_use]
pub fn memory() -> Arc<dyn Store> {
    match env() {
        Ok(env) => Arc::new(Memory::open(env, StoreClock::Server)),
        Err(error) => panic!("{}", error.message()),
    }
}

/// Opens a store: `postgres://USER@HOST/DATABASE` (with what libpq takes), `sqlite:FILE` (made when it is not there, shared by
/// processes), or `memory:`.
///
/// A PostgreSQL database and its schema are made and brought up to date as far as the role may; [`postgres`](crate::postgres) has
/// more ways to open one. A SQLite store is the file and those beside it that begin with its name: copy them together, or while no process has it open
/// after any SQLite program has folded them in.
///
/// Errors: `Refused` for an address that is none of these, or needs a feature that is switched off; what the store says
/// when it cannot be opened. An error never shows an address that may carry a password.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> mainstay::Result<()> {
/// # let dir = std::env::temp_dir().join(format!("mainstay-open-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// let file = dir.join("shop.db");
/// let store = mainstay::open(&format!("sqlite:{}", file.display())).await?;
/// # drop(store);
/// # std::fs::remove_dir_all(&dir)?;
/// let error = mainstay::open("mysql://shop").await.unwrap_err();
/// assert!(error.message().contains("sqlite:FILE"));
/// # Ok(())
/// # }
/// ```
pub async fn open(url: &str) -> Result<Arc<dyn Store>> {
    let (scheme, rest) = url.split_once(':').ok_or_else(unknown)?;
    match scheme {
        "memory" if rest.is_empty() || rest == "//" => Ok(Arc::new(Memory::open(env()?, StoreClock::Server))),
        "sqlite" => sqlite(rest.strip_prefix("//").unwrap_or(rest)).await,
        "postgres" | "postgresql" => postgres(url).await,
        _ => Err(unknown()),
    }
}

fn unknown() -> Error {
    refused("store address: `postgres://..`, `sqlite:FILE` or `memory:` is needed")
}

#[cfg(feature = "sqlite")]
async fn sqlite(path: &str) -> Result<Arc<dyn Store>> {
    if path.is_empty() {
        return Err(refused("store address: `sqlite:` needs a file"));
    }
    if path == ":memory:" {
        return Err(refused("store address: use `memory:` for a store that lives in memory"));
    }
    if path.contains('?') {
        return Err(refused("store address: `sqlite:FILE` takes no options after a `?`"));
    }
    let env = env()?;
    let store = mainstay_sqlite::Sqlite::open(&env, path, StoreClock::Server)
        .await
        .map_err(|error| mainstay_runtime::private::not_opened(path, error))?;
    Ok(Arc::new(store))
}

#[cfg(not(feature = "sqlite"))]
async fn sqlite(_: &str) -> Result<Arc<dyn Store>> {
    Err(refused("store address: the feature `sqlite` is switched off"))
}

#[cfg(feature = "postgres")]
async fn postgres(url: &str) -> Result<Arc<dyn Store>> {
    crate::postgres::open(mainstay_postgres::Config::new(url)).await
}

#[cfg(not(feature = "postgres"))]
async fn postgres(_: &str) -> Result<Arc<dyn Store>> {
    Err(refused("store address: the feature `postgres` is switched off"))
}

pub(crate) fn env() -> Result<Env> {
    Env::system(THREAD).map_err(|error| store_error(StoreError::new(ErrorKind::Unavailable, "open").with_source(error)))
}
