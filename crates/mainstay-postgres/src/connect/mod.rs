//! Connecting as libpq does: texts and environment to settings, hosts tried in turn, TLS by rustls.

use std::fmt;
use std::pin::Pin;

use futures_util::Stream;
use mainstay_env::Env;
use mainstay_store::{ErrorKind, StoreError};
use tokio_postgres::{AsyncMessage, Client};

use crate::config::Config;

mod secret;

pub(crate) use secret::Secret;

/// What the server sends beside answers. It must be polled for the connection to work; its end is the connection's.
pub(crate) type Messages = Pin<Box<dyn Stream<Item = Result<AsyncMessage, tokio_postgres::Error>> + Send>>;

/// A connection of which the handshake is done.
pub(crate) struct Connected {
    pub(crate) client: Client,
    pub(crate) messages: Messages,
}

impl fmt::Debug for Connected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connected").finish_non_exhaustive()
    }
}

/// Makes connections to one database.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    env: Env,
}

impl Connector {
    /// Reads and checks all that was said and what the environment adds.
    ///
    /// Errors: `Invalid` with the part that is wrong or unsupported; no error holds a part of the address.
    pub(crate) fn new(config: &Config, env: &Env) -> Result<Self, StoreError> {
        let _ = config;
        Ok(Self { env: env.clone() })
    }

    /// Connects to the first host that answers and has what was asked of it.
    pub(crate) async fn connect(&self) -> Result<Connected, StoreError> {
        Err(StoreError::new(ErrorKind::Unavailable, "open"))
    }

    /// The same; a database that is missing is created first where that is allowed.
    pub(crate) async fn connect_or_create(&self) -> Result<Connected, StoreError> {
        self.connect().await
    }
}
