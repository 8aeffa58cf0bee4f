//! PgBouncer in front of a server, one transaction a server connection.

use crate::client::{Client, Place};
use crate::database::Database;
use crate::error::{During, Error};
use crate::process::{self, User, Watchdog};
use crate::server::{Server, free_port};
use crate::shared::missing;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// How long a pooler may take to start.
const PATIENCE: Duration = Duration::from_secs(20);
/// Where Debian's package puts it, which is not in every user's path.
const PLACES: &[&str] = &["/usr/sbin/pgbouncer", "/usr/local/sbin/pgbouncer"];

/// A private PgBouncer with `pool_mode=transaction` and trust. It ends when it is dropped, or with this process.
#[derive(Debug)]
pub struct PgBouncer {
    port: u16,
    child: Child,
    log: PathBuf,
    _watchdog: Watchdog,
}

impl PgBouncer {
    /// Starts one, or prints that the test is skipped since there is none (`None`). Panics: it does not start, or
    /// `MAINSTAY_REQUIRE_POSTGRES=1` and it is not installed.
    pub fn before(server: &Server) -> Option<Self> {
        Self::before_with(server, &[])
    }

    /// The same with further lines of its section `[pgbouncer]`.
    pub fn before_with(server: &Server, settings: &[(&str, &str)]) -> Option<Self> {
        let Some(program) = Self::program() else { return missing("no pgbouncer: install Debian's package") };
        Some(Self::start(&program, server, settings).unwrap_or_else(|error| panic!("pgbouncer: {error}")))
    }

    /// Where the program is; `None` when it is not installed.
    pub fn program() -> Option<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let places = PLACES.iter().map(PathBuf::from);
        let searched = std::env::split_paths(&path).map(|folder| folder.join("pgbouncer"));
        places.chain(searched).find(|program| program.is_file())
    }

    /// Starts the program in front of a server with further lines of its section `[pgbouncer]`, such as
    /// `("default_pool_size", "1")`. Errors: what its log says.
    pub fn start(program: &Path, server: &Server, settings: &[(&str, &str)]) -> Result<Self, Error> {
        let user = User::current();
        let folder = process::fresh_folder(user, false)?;
        let (port, pid_file, log) = (free_port()?, folder.join("pid"), folder.join("log"));
        let watchdog = Watchdog::start(user, &folder, &pid_file, &folder, "TERM")?;
        let Place { user: login, .. } = server.place();
        let mut text = format!(
            "[databases]\n* = host=127.0.0.1 port={} user={login}\n\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\npidfile = {}\n\
             admin_users = {login}\nserver_reset_query =\nmax_client_conn = 300\n",
            server.port(),
            pid_file.display(),
        );
        text.extend(settings.iter().map(|(name, value)| format!("{name} = {value}\n")));
        let config = folder.join("pgbouncer.ini");
        std::fs::write(&config, text).during("the pooler's configuration")?;
        let output = File::create(&log).during("the pooler's log")?;
        let mut command: Command = user.command(program, &folder);
        command.arg(&config).stdout(output.try_clone().during("the pooler's log")?).stderr(output);
        let child = command.spawn().during("pgbouncer")?;
        let mut bouncer = Self { port, child, log, _watchdog: watchdog };
        bouncer.wait_ready(login)?;
        Ok(bouncer)
    }

    /// The port to connect to instead of the server's.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of a database by way of the pooler.
    pub fn url(&self, database: &Database) -> String {
        let url = database.url();
        let Place { user, database, .. } = Place::of(&url).unwrap_or_else(|error| panic!("{error}"));
        format!("postgres://{user}@127.0.0.1:{}/{database}", self.port)
    }

    /// Its own console, for `SHOW POOLS` and the like. Panics: when it does not answer.
    pub fn console(&self) -> Client {
        let url = format!("postgres://postgres@127.0.0.1:{}/pgbouncer", self.port);
        Client::connect(&url).unwrap_or_else(|error| panic!("pgbouncer's console: {error}\n{}", self.log()))
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn wait_ready(&mut self, login: &str) -> Result<(), Error> {
        let begun = Instant::now();
        let url = format!("postgres://{login}@127.0.0.1:{}/pgbouncer", self.port);
        while Client::connect(&url).is_err() {
            if let Some(status) = process::wait(&mut self.child, Duration::from_millis(10)) {
                return Err(Error::new(format!("pgbouncer ended with {status}:\n{}", self.log())));
            }
            if begun.elapsed() > PATIENCE {
                return Err(Error::new(format!("pgbouncer takes no connection:\n{}", self.log())));
            }
        }
        Ok(())
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
