//! One server: its addresses in turn, each within a limit and with TLS tried as the mode says, and its kind of session.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::Poll;

use futures_util::{StreamExt, stream};
use mainstay_store::{ErrorKind, StoreError};
use tokio_postgres::config::{SslMode, SslNegotiation};
use tokio_postgres::{AsyncMessage, Client, Config as Driver, Error};

use crate::plain;

use super::redact::redacted;
use super::settings::{Place, SessionKind, Target};
use super::{Connected, Connector, Messages, refuse};
use crate::error::{self, Failure};

/// Whether the server is a standby, and whether its transactions are read-only: t or f, on or off.
const SESSION: &str = "SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('transaction_read_only')";

/// Why there is no connection.
#[derive(Debug)]
pub(super) struct Unconnected {
    kind: ErrorKind,
    code: Option<String>,
    text: String,
    other_kind: bool,
}

impl Unconnected {
    fn unavailable(text: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Unavailable, code: None, text: text.into(), other_kind: false }
    }

    /// Whether a server has said it.
    pub(super) fn is_answer(&self) -> bool {
        self.code.is_some()
    }

    /// Whether the database does not exist.
    pub(super) fn is_missing(&self) -> bool {
        self.code.as_deref() == Some("3D000")
    }

    /// Whether the role lacks CONNECT on the database.
    pub(super) fn is_refused_there(&self) -> bool {
        self.code.as_deref() == Some("42501")
    }

    /// Whether the server has no entry for this role and database, or refused its password.
    pub(super) fn is_login(&self) -> bool {
        self.code.as_deref().is_some_and(|code| code.starts_with("28"))
    }

    /// Whether all that was wrong was the kind of a session.
    pub(super) fn is_of_other_kind(&self) -> bool {
        self.other_kind
    }

    /// Whether the next server is tried: not after one that answered and refused, as with libpq.
    pub(super) fn goes_on(&self) -> bool {
        let is_busy = |code: &str| code.starts_with("57") || code.starts_with("53");
        self.other_kind
            || match &self.code {
                Some(code) => is_busy(code),
                None => self.kind == ErrorKind::Unavailable,
            }
    }

    /// Whether the next address of the server is tried: where this one has said nothing that ends the search, as with libpq.
    fn is_of_address(&self) -> bool {
        self.kind == ErrorKind::Unavailable && !self.is_answer() && !self.other_kind
    }

    /// One failure for those of several addresses.
    fn of_addresses(failures: &[Self]) -> Self {
        let mut texts: Vec<&str> = failures.iter().map(|failure| failure.text.as_str()).collect();
        texts.dedup();
        Self::unavailable(if texts.is_empty() { "its name has no address".into() } else { texts.join("; ") })
    }

    /// One failure for those of several servers; the last decides, unless an earlier one may pass.
    pub(super) fn of_all(failures: Vec<(usize, Self)>, servers: usize) -> Self {
        let may_pass = failures.iter().rposition(|(_, failure)| failure.kind == ErrorKind::Unavailable);
        let other_kind = failures.iter().any(|(_, failure)| failure.other_kind);
        let decides = failures
            .last()
            .filter(|(_, last)| !last.goes_on())
            .or(may_pass.map(|at| &failures[at]))
            .or(failures.last());
        let Some((_, decides)) = decides else { return Self::unavailable("no server is given") };
        let line = |(at, failure): &(usize, Self)| format!("host {} of {servers}: {}", at + 1, failure.text);
        let text = match failures.as_slice() {
            [(_, only)] if servers == 1 => only.text.clone(),
            failures => failures.iter().map(line).collect::<Vec<_>>().join("; "),
        };
        Self { kind: decides.kind, code: decides.code.clone(), text, other_kind }
    }

    pub(super) fn into_error(self) -> StoreError {
        refuse(self.kind, self.text)
    }
}

impl Connector {
    /// Connects to one server, by the first of its addresses that answers.
    pub(super) async fn attempt(
        &self,
        target: &Target,
        database: &str,
        kind: SessionKind,
    ) -> Result<Connected, Unconnected> {
        match &target.place {
            Place::Tcp(name, None) => {
                let addresses = self.addresses(name, target.port).await?;
                self.attempt_each(target, &addresses, database, kind).await
            }
            Place::Tcp(_, Some(address)) => self.attempt_at(target, Some(*address), database, kind).await,
            Place::Unix(_) => self.attempt_at(target, None, database, kind).await,
        }
    }

    /// The addresses of a name, in the order in which they are tried.
    pub(super) async fn addresses(&self, name: &str, port: u16) -> Result<Vec<IpAddr>, Unconnected> {
        let limit = self.settings.patience;
        let found = self.env.timeout(limit, tokio::net::lookup_host((name, port))).await;
        let found = found.map_err(|_| Unconnected::unavailable(format!("no address within {} s", limit.as_secs())))?;
        let unknown =
            |error| Unconnected::unavailable(redacted(&self.settings, format!("error connecting to server: {error}")));
        let mut addresses: Vec<IpAddr> = found.map_err(unknown)?.map(|address| address.ip()).collect();
        if self.settings.shuffled {
            self.env.rng().shuffle(&mut addresses);
        }
        Ok(addresses)
    }

    /// Each address has the whole limit, so that one that keeps silent takes nothing from those behind it.
    pub(super) async fn attempt_each(
        &self,
        target: &Target,
        addresses: &[IpAddr],
        database: &str,
        kind: SessionKind,
    ) -> Result<Connected, Unconnected> {
        let mut failures = Vec::new();
        for address in addresses {
            match self.attempt_at(target, Some(*address), database, kind).await {
                Err(failure) if failure.is_of_address() => failures.push(failure),
                result => return result,
            }
        }
        Err(Unconnected::of_addresses(&failures))
    }

    /// Connects within the limit, the check of the session included.
    async fn attempt_at(
        &self,
        target: &Target,
        address: Option<IpAddr>,
        database: &str,
        kind: SessionKind,
    ) -> Result<Connected, Unconnected> {
        let limit = self.settings.patience;
        let attempt = async {
            let connected = self.negotiate(target, address, database).await.map_err(|error| self.failure(&error))?;
            self.of_kind(connected, kind).await
        };
        let late = |_| Unconnected::unavailable(format!("no connection within {} s", limit.as_secs()));
        self.env.timeout(limit, attempt).await.map_err(late)?
    }

    async fn negotiate(&self, target: &Target, address: Option<IpAddr>, database: &str) -> Result<Connected, Error> {
        let tls = &self.settings.tls;
        let mut mode = tls.first(&target.place);
        let mut again = true;
        loop {
            let (maker, used) = tls.connector();
            let error = match self.driver(target, address, database, mode).connect(maker).await {
                Ok((client, mut connection)) => {
                    let messages = stream::poll_fn(move |cx| connection.poll_message(cx));
                    return Ok(Connected { client, messages: Box::pin(messages) });
                }
                Err(error) => error,
            };
            match tls.second(&target.place, used.load(Ordering::Relaxed), &error) {
                Some(other) if again => (mode, again) = (other, false),
                _ => return Err(error),
            }
        }
    }

    fn driver(&self, target: &Target, address: Option<IpAddr>, database: &str, mode: SslMode) -> Driver {
        let settings = &*self.settings;
        let mut driver = Driver::new();
        driver.user(&settings.user).dbname(database).port(target.port).ssl_mode(mode).channel_binding(settings.binding);
        if settings.tls.direct && mode == SslMode::Require {
            driver.ssl_negotiation(SslNegotiation::Direct);
        }
        match &target.place {
            Place::Tcp(name, _) => {
                driver.host(name);
                address.map(|address| driver.hostaddr(address));
            }
            Place::Unix(folder) => {
                driver.host_path(folder);
            }
        }
        target.password.as_ref().map(|password| driver.password(password.reveal()));
        settings.options.as_ref().map(|options| driver.options(options));
        settings.application.as_ref().map(|name| driver.application_name(name));
        let keepalive = &settings.keepalive;
        driver.keepalives(keepalive.on);
        keepalive.idle.map(|idle| driver.keepalives_idle(idle));
        keepalive.interval.map(|interval| driver.keepalives_interval(interval));
        keepalive.count.map(|count| driver.keepalives_retries(count));
        keepalive.user_timeout.map(|limit| driver.tcp_user_timeout(limit));
        driver
    }

    async fn of_kind(&self, connected: Connected, kind: SessionKind) -> Result<Connected, Unconnected> {
        if kind == SessionKind::Any {
            return Ok(connected);
        }
        let Connected { client, mut messages } = connected;
        let mut early = VecDeque::new();
        let row = drive(&mut messages, &mut early, session(&client)).await.map_err(|error| self.failure(&error))?;
        let Some([standby, read_only]) = row else {
            return Err(Unconnected::unavailable("the server did not say what kind of session it has"));
        };
        let (fits, wanted) = match kind {
            SessionKind::ReadWrite => (!read_only, "read-write"),
            SessionKind::ReadOnly => (read_only, "read-only"),
            SessionKind::Primary => (!standby, "primary"),
            SessionKind::Standby | SessionKind::PreferStandby => (standby, "standby"),
            SessionKind::Any => (true, "any"),
        };
        if !fits {
            let text = format!("its session is not {wanted}, as target_session_attrs asks");
            return Err(Unconnected { other_kind: true, ..Unconnected::unavailable(text) });
        }
        Ok(Connected { client, messages: Box::pin(stream::iter(early).chain(messages)) })
    }

    fn failure(&self, error: &Error) -> Unconnected {
        let shown = Failure::of(error).map(|text| redacted(&self.settings, text));
        let code = shown.code().map(Into::into);
        Unconnected { kind: error::kind(error), code, text: shown.to_string(), other_kind: false }
    }
}

/// Whether the session is of a standby, and whether it is read-only.
async fn session(client: &Client) -> Result<Option<[bool; 2]>, Error> {
    let row = plain::row(client, SESSION).await?;
    let is = |row: &tokio_postgres::SimpleQueryRow, at| matches!(row.get(at), Some("t" | "on"));
    Ok(row.map(|row| [is(&row, 0), is(&row, 1)]))
}

/// Runs a call on a connection that nobody polls yet; what it is told meanwhile is kept.
pub(super) async fn drive<T>(
    messages: &mut Messages,
    early: &mut VecDeque<Result<AsyncMessage, Error>>,
    call: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let mut call = pin!(call);
    let mut open = true;
    poll_fn(move |cx| {
        while open {
            match messages.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(message))) => early.push_back(Ok(message)),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
                Poll::Ready(None) => open = false,
                Poll::Pending => break,
            }
        }
        call.as_mut().poll(cx)
    })
    .await
}
