//! A database that belongs to one test, and templates from which many are copied.

use crate::client::Client;
use crate::error::Error;
use crate::server::Server;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How often a copy is tried while somebody is still connected to the template, 20 ms apart.
const TRIES: u32 = 250;
/// The server's code for a template that is in use.
const IN_USE: &str = "55006";

/// A database of its own name. Clones are the same database; it is dropped with the last one, whoever is connected.
#[derive(Clone, Debug)]
pub struct Database {
    owned: Arc<Owned>,
}

#[derive(Debug)]
struct Owned {
    server: Server,
    name: String,
}

impl Database {
    pub(crate) fn create(server: &Server, clause: &str) -> Result<Self, Error> {
        let name = fresh_name("test");
        create(server, &name, clause)?;
        Ok(Self { owned: Arc::new(Owned { server: server.clone(), name }) })
    }

    /// The superuser's URL of this database.
    pub fn url(&self) -> String {
        self.owned.server.url_of(&self.owned.name)
    }

    /// The bare name: lower case letters, digits and `_`.
    pub fn name(&self) -> &str {
        &self.owned.name
    }

    /// The server that it is on.
    pub fn server(&self) -> &Server {
        &self.owned.server
    }

    /// A superuser's connection to this database. Panics: when there is none.
    pub fn client(&self) -> Client {
        let client = self.owned.server.try_client(&self.owned.name);
        client.unwrap_or_else(|error| panic!("{}: {error}", self.url()))
    }

    /// Ends every session of this database, as an administrator would (57P01), and returns how many there were.
    pub fn terminate_sessions(&self) -> usize {
        let sql = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}'", self.name());
        self.owned.server.client().rows(&sql).len()
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        let sql = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        let dropped = self.server.try_client("postgres").and_then(|mut client| client.query(&sql));
        if let Err(error) = dropped
            && !std::thread::panicking()
        {
            eprintln!("the database {} stays: {error}", self.name);
        }
    }
}

/// A database that is copied, made once a server by whoever asks first.
#[derive(Debug)]
pub enum Template {
    /// It is there; [`Server::database_like`] copies it.
    Ready,
    /// The caller fills it; everybody else who asks waits for that.
    Build(Build),
}

/// The right to fill a template. Dropped without [`Build::finish`], the next who asks begins anew.
#[derive(Debug)]
pub struct Build {
    server: Server,
    lock: Client,
    building: String,
    name: String,
}

impl Build {
    /// The URL to fill it by.
    pub fn url(&self) -> String {
        self.server.url_of(&self.building)
    }

    /// Ends every session of the template and gives it its name. Errors: the server refuses.
    pub fn finish(mut self) -> Result<(), Error> {
        let Self { building, name, lock, .. } = &mut self;
        lock.query(&format!("ALTER DATABASE {building} WITH ALLOW_CONNECTIONS false"))?;
        lock.query(&format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{building}'"))?;
        retried(|| lock.query(&format!("ALTER DATABASE {building} RENAME TO {name}")).map(drop))
    }
}

impl Server {
    /// Asks for the template of a key: lower case letters, digits and `_`. What fills it should be part of the key, or
    /// an older one is taken where the server outlives the program. Errors: the server refuses.
    pub fn template(&self, key: &str) -> Result<Template, Error> {
        let name = template_name(key)?;
        let mut lock = self.try_client("postgres")?;
        lock.query(&format!("SELECT pg_advisory_lock(hashtextextended('{name}', 0))"))?;
        if !lock.query(&format!("SELECT 1 FROM pg_database WHERE datname = '{name}'"))?.is_empty() {
            return Ok(Template::Ready);
        }
        let building = fresh_name("building");
        create(self, &building, "")?;
        Ok(Template::Build(Build { server: self.clone(), lock, building, name }))
    }

    /// A fresh copy of a template that is ready. Panics: when it is not, or the copy cannot be made.
    pub fn database_like(&self, key: &str) -> Database {
        let name = template_name(key).unwrap_or_else(|error| panic!("{error}"));
        let made = Database::create(self, &format!("TEMPLATE {name}"));
        made.unwrap_or_else(|error| panic!("a copy of {name} on {}: {error}", self.url()))
    }
}

/// A key of a template after what fills it: a name, and a hash of the texts (FNV-1a, for a name only).
pub fn template_key<'a>(name: &str, texts: impl IntoIterator<Item = &'a str>) -> String {
    let bytes = texts.into_iter().flat_map(str::bytes);
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{name}_{hash:016x}")
}

fn template_name(key: &str) -> Result<String, Error> {
    let is_plain = key.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if !is_plain || key.is_empty() || key.len() > 40 {
        return Err(Error::new(format!("not the key of a template: `{key}`")));
    }
    Ok(format!("mainstay_template_{key}"))
}

/// Copying files is the faster way on a server that does not sync; PostgreSQL 15 has the choice.
fn create(server: &Server, name: &str, clause: &str) -> Result<(), Error> {
    let mut client = server.try_client("postgres")?;
    let version = client.query("SHOW server_version_num")?.concat().into_iter().flatten().next();
    let copies = version.and_then(|version| version.parse().ok()).is_some_and(|version: u32| version >= 150_000);
    let strategy = if copies && !clause.contains("STRATEGY") { " STRATEGY file_copy" } else { "" };
    let sql = format!("CREATE DATABASE {name} {clause}{strategy}");
    retried(|| client.query(&sql).map(drop))
}

fn retried(mut work: impl FnMut() -> Result<(), Error>) -> Result<(), Error> {
    let mut tries = 0;
    loop {
        match work() {
            Err(error) if error.sqlstate() == Some(IN_USE) && tries < TRIES => {
                tries += 1;
                std::thread::sleep(Duration::from_millis(20));
            }
            other => return other,
        }
    }
}

/// No two processes of a machine have one id at one time, and no process makes a number twice.
fn fresh_name(kind: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    format!("mainstay_{kind}_{}_{}_{now:x}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
