//! Opening PostgreSQL.

use std::sync::Arc;

use mainstay_runtime::Result;
use mainstay_runtime::private::not_opened;
use mainstay_store::{Store, StoreClock};

/// How a PostgreSQL database is opened: its address, schema, pool and payload cap, whether a pooler is between.
///
/// ```
/// use mainstay::postgres::Config;
/// use std::time::Duration;
///
/// let config = Config::new("postgres://app:secret@db.example/shop?sslmode=verify-full")
///     .schema("workflows")
///     .pool(20)
///     .call_timeout(Duration::from_secs(10));
/// assert!(!format!("{config:?}").contains("secret"));
/// ```
#[doc(inline)]
pub use mainstay_postgres::Config;
/// Where [`Config::payload_layout`] puts payloads of new workflows.
///
/// ```
/// use mainstay::postgres::{Config, PayloadLayout};
/// let for_older_readers = Config::new("postgres:///shop").payload_layout(PayloadLayout::Inline);
/// # drop(for_older_readers);
/// ```
#[doc(inline)]
pub use mainstay_postgres::PayloadLayout;

/// Opens a PostgreSQL database; [`mainstay::open`](crate::open) with an address does the same with the usual settings.
///
/// Errors: `Refused` names the part of the settings that is wrong; else what the server or the network says. No error
/// shows an address.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use mainstay::postgres::{self, Config};
/// let error = postgres::open(Config::new("postgres://app:secret@localhost/shop").schema("")).await.unwrap_err();
/// assert!(error.message().contains("schema") && !error.message().contains("secret"));
/// # }
/// ```
pub async fn open(config: Config) -> Result<Arc<dyn Store>> {
    let env = crate::open::env()?;
    let opened = mainstay_postgres::Postgres::open(&env, config, StoreClock::Server).await;
    Ok(Arc::new(opened.map_err(|error| not_opened("postgres", error))?))
}
