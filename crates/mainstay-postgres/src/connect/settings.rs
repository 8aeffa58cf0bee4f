//! All that a connection needs, decided: hosts with ports and passwords, names, limits, TLS.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use mainstay_store::FieldError;
use tokio_postgres::config::ChannelBinding;

use super::Secret;
use super::environment::Environment;
use super::given::Given;
use super::passfile::{self, Wanted};
use super::tls::Tls;

/// Where a server listens that was given no host: Debian's folder, PostgreSQL's own, then this machine's address.
const DEFAULT_HOSTS: [&str; 3] = ["/var/run/postgresql", "/tmp", "localhost"];

const DEFAULT_PORT: u16 = 5432;

/// Longest that one address of a host is waited for, handshake included, when nothing is said: libpq's would be for ever.
const DEFAULT_PATIENCE: Duration = Duration::from_secs(10);

/// Where `connect_timeout=0` ends, which with libpq is never.
const LONGEST_PATIENCE: Duration = Duration::from_secs(120);

/// When a silent connection is asked for a sign of life, how often and how many times, and how long what was sent may stay
/// unacknowledged, when nothing is said: libpq leaves these to the system, where they are 2 hours and 15 minutes on Linux.
/// Seconds, seconds, a number, milliseconds.
const KEEPALIVE_IDLE: u32 = 30;
const KEEPALIVE_INTERVAL: u32 = 5;
const KEEPALIVE_COUNT: u32 = 3;
const USER_TIMEOUT: u32 = 10_000;

/// What a session must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionKind {
    Any,
    ReadWrite,
    ReadOnly,
    Primary,
    Standby,
    PreferStandby,
}

const SESSION_KINDS: &[(&str, SessionKind)] = &[
    ("any", SessionKind::Any),
    ("read-write", SessionKind::ReadWrite),
    ("read-only", SessionKind::ReadOnly),
    ("primary", SessionKind::Primary),
    ("standby", SessionKind::Standby),
    ("prefer-standby", SessionKind::PreferStandby),
];

/// Where one server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A name or an address, and the address to use where one was given apart.
    Tcp(String, Option<IpAddr>),
    /// A folder of sockets.
    Unix(PathBuf),
}

impl Place {
    /// Whether what is sent leaves the machine.
    pub(crate) fn is_remote(&self) -> bool {
        match self {
            Self::Unix(_) => false,
            Self::Tcp(_, Some(address)) => !address.is_loopback(),
            Self::Tcp(name, None) => name != "localhost" && name.parse().map_or(true, |ip: IpAddr| !ip.is_loopback()),
        }
    }
}

/// One server to try.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) place: Place,
    pub(crate) port: u16,
    pub(crate) password: Option<Secret>,
}

/// Keepalives of a TCP connection.
#[derive(Clone, Debug)]
pub(crate) struct Keepalive {
    pub(crate) on: bool,
    pub(crate) idle: Option<Duration>,
    pub(crate) interval: Option<Duration>,
    pub(crate) count: Option<u32>,
    pub(crate) user_timeout: Option<Duration>,
}

/// A database, and how to reach it.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) targets: Vec<Target>,
    pub(crate) shuffled: bool,
    pub(crate) user: String,
    pub(crate) database: String,
    pub(crate) options: Option<String>,
    pub(crate) application: Option<String>,
    pub(crate) session: SessionKind,
    pub(crate) patience: Duration,
    pub(crate) keepalive: Keepalive,
    pub(crate) binding: ChannelBinding,
    pub(crate) tls: Tls,
}

impl Settings {
    /// Decides all; `application` stands before what the address says.
    pub(crate) fn read(
        address: &Secret,
        application: Option<&str>,
        environment: &Environment,
    ) -> Result<Self, FieldError> {
        let given = Given::read(address, environment)?;
        let Some(user) = given.get("user").or(environment.user()) else {
            return Err(FieldError::new("url.user", "is not given, and the process's user has no name"));
        };
        let database = given.get("dbname").unwrap_or(user);
        check_encoding(&given)?;
        given.word("gssencmode", &[("disable", ()), ("prefer", ())])?;
        if application.is_some_and(|name| name.contains('\0')) {
            return Err(FieldError::new("application_name", "contains a NUL character"));
        }
        let application = application.or(given.get("application_name")).or(given.get("fallback_application_name"));
        let targets = targets(&given, environment, database, user)?;
        let settings = Self {
            shuffled: given.word("load_balance_hosts", &[("disable", false), ("random", true)])?.unwrap_or(false),
            user: user.into(),
            database: database.into(),
            options: given.get("options").map(Into::into),
            application: application.map(Into::into),
            session: given.word("target_session_attrs", SESSION_KINDS)?.unwrap_or(SessionKind::Any),
            patience: patience(&given)?,
            keepalive: keepalive(&given)?,
            binding: binding(&given)?,
            tls: Tls::read(&given, environment, &targets)?,
            targets,
        };
        Ok(settings)
    }
}

/// The driver speaks UTF-8 alone.
fn check_encoding(given: &Given) -> Result<(), FieldError> {
    let is_utf8 = |name: &str| ["utf8", "utf-8", "unicode", "auto"].contains(&name.to_ascii_lowercase().as_str());
    match given.get("client_encoding") {
        Some(name) if !is_utf8(name) => Err(given.wrong("client_encoding", "must be UTF8")),
        _ => Ok(()),
    }
}

fn binding(given: &Given) -> Result<ChannelBinding, FieldError> {
    let words = [
        ("disable", ChannelBinding::Disable),
        ("prefer", ChannelBinding::Prefer),
        ("require", ChannelBinding::Require),
    ];
    Ok(given.word("channel_binding", &words)?.unwrap_or(ChannelBinding::Prefer))
}

/// As libpq: zero and less is no limit, one second is two.
fn patience(given: &Given) -> Result<Duration, FieldError> {
    Ok(match given.number::<i32>("connect_timeout")? {
        None => DEFAULT_PATIENCE,
        Some(..=0) => LONGEST_PATIENCE,
        Some(seconds) => Duration::from_secs(u64::from(seconds.unsigned_abs().max(2))),
    })
}

fn keepalive(given: &Given) -> Result<Keepalive, FieldError> {
    // Zero and less leave it to the system, as with libpq.
    let positive = |key, missing| -> Result<Option<u32>, FieldError> {
        Ok(match given.number::<i32>(key)? {
            None => Some(missing),
            Some(value) => u32::try_from(value).ok().filter(|&value| value > 0),
        })
    };
    let seconds = |key, missing| Ok(positive(key, missing)?.map(|seconds| Duration::from_secs(seconds.into())));
    let user_timeout = positive("tcp_user_timeout", USER_TIMEOUT)?;
    Ok(Keepalive {
        on: given.number::<i32>("keepalives")?.unwrap_or(1) != 0,
        idle: seconds("keepalives_idle", KEEPALIVE_IDLE)?,
        interval: seconds("keepalives_interval", KEEPALIVE_INTERVAL)?,
        count: positive("keepalives_count", KEEPALIVE_COUNT)?,
        user_timeout: user_timeout.map(|millis| Duration::from_millis(millis.into())),
    })
}

/// The servers in the order in which they were written.
fn targets(given: &Given, environment: &Environment, database: &str, user: &str) -> Result<Vec<Target>, FieldError> {
    let places = places(given)?;
    let ports = ports(given, places.len())?;
    let file = match given.get("password") {
        Some(_) => None,
        None => {
            let path = given.get("passfile").map(PathBuf::from);
            path.or_else(|| Some(environment.home()?.join(".pgpass"))).and_then(|path| passfile::read(&path))
        }
    };
    let named = given.get("host").is_some();
    let password = |place: &Place, port: u16| match (given.get("password"), &file) {
        (Some(password), _) => Some(Secret::new(password.into())),
        (None, Some(file)) => {
            let host = match place {
                Place::Tcp(name, _) => name.as_str(),
                // A folder that was named goes by its name, but for the default one; without a name a host is the local one.
                Place::Unix(folder) => {
                    folder.to_str().filter(|folder| named && *folder != DEFAULT_HOSTS[0]).unwrap_or("localhost")
                }
            };
            passfile::find(file, &Wanted { host, port, database, user })
        }
        (None, None) => None,
    };
    let target = |(place, port)| Target { password: password(&place, port), place, port };
    Ok(places.into_iter().zip(ports).map(target).collect())
}

fn places(given: &Given) -> Result<Vec<Place>, FieldError> {
    let (names, addresses) = (given.list("host"), given.list("hostaddr"));
    if addresses.is_empty() {
        if names.is_empty() {
            return DEFAULT_HOSTS.iter().map(|name| place(given, name)).collect();
        }
        return names
            .into_iter()
            .map(|name| place(given, if name.is_empty() { DEFAULT_HOSTS[0] } else { name }))
            .collect();
    }
    if !names.is_empty() && names.len() != addresses.len() {
        return Err(given.wrong("hostaddr", format!("has {} entries for {} hosts", addresses.len(), names.len())));
    }
    let of = |(at, address): (usize, &str)| {
        let name = names.get(at).copied().filter(|name| !name.is_empty());
        if address.is_empty() {
            return place(given, name.unwrap_or(DEFAULT_HOSTS[0]));
        }
        let parsed = address.parse().map_err(|_| given.wrong("hostaddr", "is not an IP address"))?;
        Ok(Place::Tcp(name.unwrap_or(address).into(), Some(parsed)))
    };
    addresses.iter().copied().enumerate().map(of).collect()
}

fn place(given: &Given, name: &str) -> Result<Place, FieldError> {
    if name.starts_with('@') {
        return Err(given.wrong("host", "names a socket in the abstract namespace, which is not supported"));
    }
    Ok(if name.starts_with('/') { Place::Unix(name.into()) } else { Place::Tcp(name.into(), None) })
}

/// One port for each host; a single one is for all.
fn ports(given: &Given, hosts: usize) -> Result<Vec<u16>, FieldError> {
    let parse = |text: &&str| match text.parse::<u16>() {
        _ if text.is_empty() => Ok(DEFAULT_PORT),
        Ok(port) if port > 0 => Ok(port),
        _ => Err(given.wrong("port", "is not a port")),
    };
    let ports = given.list("port").iter().map(parse).collect::<Result<Vec<u16>, _>>()?;
    match ports.as_slice() {
        [] => Ok(vec![DEFAULT_PORT; hosts]),
        [port] => Ok(vec![*port; hosts]),
        _ if ports.len() == hosts => Ok(ports),
        _ => Err(given.wrong("port", format!("has {} entries for {hosts} hosts", ports.len()))),
    }
}

#[cfg(test)]
mod tests;
