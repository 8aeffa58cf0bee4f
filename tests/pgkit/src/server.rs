//! A server: one of our own, or one that somebody else runs and a URL names.

use crate::binaries::Binaries;
use crate::client::{Client, Place};
use crate::database::Database;
use crate::error::{During, Error};
use crate::options::Options;
use crate::process::{self, User, Watchdog};
use crate::template;
use std::fs::OpenOptions;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a server may take to start or to stop; a loaded machine takes seconds.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often another port is tried when somebody took the one found free.
const PORTS: usize = 5;

/// A PostgreSQL server. Clones are the same server; a private one ends with its last clone, or with this process.
#[derive(Clone, Debug)]
pub struct Server {
    url: String,
    own: Option<Arc<Own>>,
}

/// A private server's process and files.
#[derive(Debug)]
struct Own {
    child: Mutex<Option<Child>>,
    binaries: Binaries,
    options: Options,
    user: User,
    folder: PathBuf,
    port: u16,
    _watchdog: Watchdog,
}

impl Server {
    /// Starts a private server on a port and a socket of its own. Errors: no binaries, or what the server's log says.
    pub fn start(options: Options) -> Result<Self, Error> {
        Self::prepare(options, |own| template::data_directory(&own.binaries, own.user, &own.data()))
    }

    /// A server that is there already, as `postgres://SUPERUSER@HOST:PORT/DATABASE`, without a password.
    pub fn at(url: &str) -> Result<Self, Error> {
        Place::of(url)?;
        Ok(Self { url: url.to_owned(), own: None })
    }

    /// The superuser's URL of the database `postgres`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The TCP port.
    pub fn port(&self) -> u16 {
        self.place().port
    }

    /// The superuser's URL of another database of this server.
    pub fn url_of(&self, database: &str) -> String {
        let Place { user, host, port, .. } = self.place();
        format!("postgres://{user}@{host}:{port}/{database}")
    }

    /// The folder of the unix socket.
    pub fn socket_folder(&self) -> PathBuf {
        match &self.own {
            Some(own) => own.folder.clone(),
            None => {
                let folders = self.client().value("SHOW unix_socket_directories");
                PathBuf::from(folders.split(',').next().unwrap_or_default().trim())
            }
        }
    }

    /// The version as a number: 150018 is 15.18.
    pub fn version(&self) -> u32 {
        self.client().value("SHOW server_version_num").parse().expect("a number")
    }

    /// A superuser's connection to the database `postgres`. Panics: when there is none.
    pub fn client(&self) -> Client {
        self.try_client(self.place().database).unwrap_or_else(|error| panic!("{}: {error}", self.url))
    }

    /// A superuser's connection to a database, by the socket where the server is private.
    pub fn try_client(&self, database: &str) -> Result<Client, Error> {
        match &self.own {
            Some(own) => Client::connect_unix(&own.folder, own.port, "postgres", database),
            None => Client::connect(&self.url_of(database)),
        }
    }

    /// A fresh database, dropped with its last handle. Panics: when it cannot be made.
    pub fn database(&self) -> Database {
        Database::create(self, "").unwrap_or_else(|error| panic!("a database on {}: {error}", self.url))
    }

    /// A fresh database made with a clause of `CREATE DATABASE`, such as `TEMPLATE template0 LC_COLLATE 'C'`.
    pub fn database_with(&self, clause: &str) -> Result<Database, Error> {
        Database::create(self, clause)
    }

    /// What the server has logged so far. Panics: when the server is not private.
    pub fn log(&self) -> String {
        self.private().log()
    }

    /// The data directory. Panics: when the server is not private.
    pub fn data_folder(&self) -> PathBuf {
        self.private().data()
    }

    /// The programs that the server runs from. Panics: when the server is not private.
    pub fn binaries(&self) -> &Binaries {
        &self.private().binaries
    }

    /// Stops the server as `pg_ctl -m immediate` does, so that the next start recovers from the log of writes. Panics:
    /// when the server is not private or does not stop.
    pub fn stop_immediate(&self) {
        self.private().stop("QUIT");
    }

    /// Stops the server in order (`-m fast`): sessions are told (57P01), nothing needs recovery. Panics: as above.
    pub fn stop(&self) {
        self.private().stop("INT");
    }

    /// Starts a server that was stopped, on the port that it had.
    pub fn start_again(&self) -> Result<(), Error> {
        self.private().run()
    }

    /// Stops at once and starts on the same port; returns when connections are taken again. Panics: when it does not.
    pub fn restart_immediate(&self) {
        self.stop_immediate();
        self.start_again().unwrap_or_else(|error| panic!("the server did not start again: {error}"));
    }

    /// A hot standby of this server, fed by streaming: a copy of its files while it runs, since not every build of the
    /// programs has `pg_basebackup`. Errors: the copy fails, or it does not start.
    pub fn standby(&self) -> Result<Self, Error> {
        let primary = self.private();
        let options = Options { binaries: Some(primary.binaries.clone()), ..primary.options.clone() };
        // The backup is over with its session, as is the directory's part in it.
        let mut backup = self.client();
        let (start, stop) = match primary.binaries.major() {
            ..15 => ("pg_start_backup('standby', true, false)", "pg_stop_backup(false)"),
            15.. => ("pg_backup_start('standby', true)", "pg_backup_stop(false)"),
        };
        Self::prepare(options, |own| {
            backup.query(&format!("SELECT {start}"))?;
            let copied = own.user.command("cp", &own.folder).arg("-R").arg(primary.data()).arg(own.data()).output();
            let copied = copied.during("cp")?;
            let label = backup.query(&format!("SELECT labelfile FROM {stop}"))?;
            if !copied.status.success() {
                return Err(Error::new(format!("cp: {}", String::from_utf8_lossy(&copied.stderr).trim())));
            }
            std::fs::remove_file(own.data().join("postmaster.pid")).during("the copy")?;
            let label = label.into_iter().flatten().flatten().next().unwrap_or_default();
            let feed =
                format!("primary_conninfo = 'host={} port={} user=postgres'\n", primary.folder.display(), primary.port);
            own.put(&own.data().join("backup_label"), label.as_bytes())?;
            own.put(&own.data().join("standby.signal"), b"")?;
            own.put(&own.data().join("postgresql.auto.conf"), feed.as_bytes())
        })
    }

    /// Makes a standby a primary; returns when it takes writes.
    pub fn promote(&self) -> Result<(), Error> {
        self.try_client("postgres")?.query("SELECT pg_promote(true, 60)").map(drop)
    }

    pub(crate) fn place(&self) -> Place<'_> {
        Place::of(&self.url).expect("the URL was read when the server was made")
    }

    fn prepare(options: Options, fill: impl FnOnce(&Own) -> Result<(), Error>) -> Result<Self, Error> {
        let user = User::current();
        let found = options.binaries.clone().or_else(Binaries::find);
        let binaries = found.ok_or_else(|| Error::new("no PostgreSQL binaries are found"))?.reachable()?;
        let folder = process::fresh_folder(user, options.durable)?;
        let data = folder.join("data");
        let watchdog = Watchdog::start(user, &folder, &data.join("postmaster.pid"), &data, "QUIT")?;
        let child = Mutex::new(None);
        let mut own = Own { child, binaries, options, user, folder, port: 0, _watchdog: watchdog };
        fill(&own)?;
        own.add_files()?;
        for attempt in 1..=PORTS {
            own.port = free_port()?;
            match own.run() {
                Err(error) if attempt < PORTS && error.to_string().contains("Address already in use") => {}
                Err(error) => return Err(error),
                Ok(()) => break,
            }
        }
        let url = format!("postgres://postgres@127.0.0.1:{}/postgres", own.port);
        Ok(Self { url, own: Some(Arc::new(own)) })
    }

    fn private(&self) -> &Own {
        self.own.as_deref().unwrap_or_else(|| panic!("{} is not a private server", self.url))
    }
}

impl Own {
    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn log_file(&self) -> PathBuf {
        self.folder.join("log")
    }

    fn log(&self) -> String {
        std::fs::read(self.log_file()).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    fn add_files(&self) -> Result<(), Error> {
        for (name, content) in &self.options.files {
            self.put(&self.data().join(name), content)?;
        }
        if let Some(lines) = &self.options.hba {
            let lines = format!("local all postgres trust\nlocal replication postgres trust\n{lines}\n");
            self.put(&self.data().join("pg_hba.conf"), lines.as_bytes())?;
        }
        Ok(())
    }

    fn put(&self, path: &Path, content: &[u8]) -> Result<(), Error> {
        let what = path.display().to_string();
        std::fs::write(path, content).during(&what)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).during(&what)?;
        self.user.give(path).during(&what)
    }

    fn run(&self) -> Result<(), Error> {
        let mut child = self.child();
        if child.is_some() {
            return Err(Error::new("the server runs already"));
        }
        let log = OpenOptions::new().create(true).append(true).open(self.log_file()).during("the log")?;
        let mut command = self.user.command(self.binaries.program("postgres"), &self.folder);
        command.arg("-D").arg(self.data()).args(["-p", &self.port.to_string()]);
        command.arg("-c").arg(format!("unix_socket_directories={}", self.folder.display()));
        for (name, value) in self.options.all_settings() {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        command.stdout(log.try_clone().during("the log")?).stderr(log);
        let mut started = command.spawn().during("postgres")?;
        let ready = self.wait_ready(&mut started);
        if ready.is_ok() {
            *child = Some(started);
        } else {
            let _ = started.kill();
            let _ = started.wait();
        }
        ready
    }

    fn wait_ready(&self, child: &mut Child) -> Result<(), Error> {
        let begun = Instant::now();
        loop {
            let answer = Client::connect_unix(&self.folder, self.port, "postgres", "postgres");
            let Err(error) = answer else { return Ok(()) };
            if let Some(status) = process::wait(child, Duration::from_millis(10)) {
                return Err(Error::new(format!("postgres ended with {status}:\n{}", self.log())));
            }
            if begun.elapsed() > PATIENCE {
                return Err(Error::new(format!("postgres takes no connection: {error}\n{}", self.log())));
            }
        }
    }

    fn stop(&self, signal: &str) {
        let mut child = self.child();
        let Some(mut running) = child.take() else { return };
        process::signal(running.id(), signal);
        if process::wait(&mut running, PATIENCE).is_none() {
            let _ = running.kill();
            let _ = running.wait();
            panic!("postgres did not stop:\n{}", self.log());
        }
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // The watchdog, dropped after this, removes the files and would end what does not end here.
        let Some(mut running) = self.child().take() else { return };
        process::signal(running.id(), "QUIT");
        if process::wait(&mut running, Duration::from_secs(10)).is_none() {
            let _ = running.kill();
            let _ = running.wait();
        }
    }
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> Result<u16, Error> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).during("a port")?;
    Ok(listener.local_addr().during("a port")?.port())
}
