//! Connecting as libpq does: texts and environment to settings, hosts tried in turn, TLS by rustls.
//!
//! `docs/postgres/connecting.md` tells users what is read. No error, span or log line holds a part of an address.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::Stream;
use mainstay_env::Env;
use mainstay_store::{ErrorKind, StoreError};
use tokio_postgres::{AsyncMessage, Client};

use crate::config::Config;
use attempt::Unconnected;
use environment::Environment;
use settings::{SessionKind, Settings, Target};

mod attempt;
mod create;
mod environment;
mod given;
mod keys;
mod passfile;
mod redact;
mod secret;
mod settings;
mod text;
mod tls;
mod verify;
mod watch;

pub(crate) use secret::Secret;
pub(crate) use watch::Watched;

/// The method under whose name connecting fails.
const OP: &str = "open";

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

/// Makes connections to one database. A cheap clone.
#[derive(Clone)]
pub(crate) struct Connector {
    env: Env,
    settings: Arc<Settings>,
    may_create: bool,
    pooler: bool,
    create_limit: Duration,
    warned: Arc<AtomicBool>,
}

impl Connector {
    /// Reads and checks all that was said and what the environment adds.
    ///
    /// Errors: `Invalid` with the part that is wrong or unsupported.
    pub(crate) fn new(config: &Config, env: &Env) -> Result<Self, StoreError> {
        Self::within(config, env, &Environment::process())
    }

    /// The same in other surroundings than the process's.
    pub(crate) fn within(config: &Config, env: &Env, environment: &Environment) -> Result<Self, StoreError> {
        let settings = Settings::read(config.url(), config.application(), environment);
        let settings = settings.map_err(|field| StoreError::field_error(OP, field))?;
        Ok(Self {
            env: env.clone(),
            settings: Arc::new(settings),
            may_create: config.may_create_database(),
            pooler: config.is_pooled(),
            create_limit: config.call_limit(),
            warned: Arc::default(),
        })
    }

    /// Connects to the first server that answers and is of the kind asked for.
    ///
    /// Errors: `Unavailable` when none answers in time; `Denied` when one refuses the role or proves not to be the one
    /// meant; `NotFound` when the database is missing.
    pub(crate) async fn connect(&self) -> Result<Connected, StoreError> {
        self.connect_to(&self.settings.database).await.map_err(Unconnected::into_error)
    }

    /// The same; a database that is missing is created first where that is allowed.
    ///
    /// Errors: as [`Connector::connect`], and `Denied` when the role may not create it.
    pub(crate) async fn connect_or_create(&self) -> Result<Connected, StoreError> {
        match self.connect_to(&self.settings.database).await {
            Err(failure) if failure.is_missing() && self.may_create => {
                self.create().await?;
                self.connect().await
            }
            result => result.map_err(Unconnected::into_error),
        }
    }

    /// Tries the servers in turn; `prefer-standby` takes another look at all of them, for any kind.
    async fn connect_to(&self, database: &str) -> Result<Connected, Unconnected> {
        let mut order: Vec<usize> = (0..self.settings.targets.len()).collect();
        if self.settings.shuffled {
            self.env.rng().shuffle(&mut order);
        }
        match self.settings.session {
            SessionKind::PreferStandby => match self.first_of(&order, database, SessionKind::Standby).await {
                Err(failure) if failure.is_of_other_kind() => self.first_of(&order, database, SessionKind::Any).await,
                result => result,
            },
            kind => self.first_of(&order, database, kind).await,
        }
    }

    async fn first_of(&self, order: &[usize], database: &str, kind: SessionKind) -> Result<Connected, Unconnected> {
        let mut failures = Vec::new();
        for &at in order {
            let target = &self.settings.targets[at];
            self.warn_once(target);
            match self.attempt(target, database, kind).await {
                Ok(connected) => return Ok(connected),
                Err(failure) => {
                    let ends = !failure.goes_on();
                    failures.push((at, failure));
                    if ends {
                        break;
                    }
                }
            }
        }
        Err(Unconnected::of_all(failures, self.settings.targets.len()))
    }

    /// Says once that a server on another machine is not verified.
    fn warn_once(&self, target: &Target) {
        if self.settings.tls.can_be_listened_to(&target.place) && !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                sslmode = ?self.settings.tls.mode,
                "the database server is on another machine and its identity is not verified: use sslmode=verify-full"
            );
        }
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("servers", &self.settings.targets.len()).finish_non_exhaustive()
    }
}

/// A failure of connecting.
fn refuse(kind: ErrorKind, text: impl Into<String>) -> StoreError {
    StoreError::new(kind, OP).with_source(text.into())
}

#[cfg(test)]
mod tests;
