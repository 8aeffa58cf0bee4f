//! `cargo xtask pg`: a private PostgreSQL until Ctrl-C or around one command, and the one of a test run.

mod npm;

use crate::counts::Outcome;
use crate::{shell, tools};
use mainstay_pgkit::{Binaries, Options, PROGRAMS_VARIABLE, PgBouncer, REQUIRE_VARIABLE, Server, URL_VARIABLE};
use std::path::Path;
use std::process::Command;

/// Where Debian's packages put a major version.
const DEBIAN: &str = "/usr/lib/postgresql";
/// Debian makes and starts a cluster of its own on installation unless this file says otherwise.
const CLUSTERS: &str = "/etc/postgresql-common/createcluster.conf";

/// The major versions that `--pg-version` may name.
pub(crate) fn versions() -> Vec<u32> {
    npm::PACKAGES.iter().map(|(major, _)| *major).collect()
}

/// The server that the tests of a run share, and what they are told about it.
#[derive(Debug)]
pub(crate) struct Postgres {
    /// `None` when the caller's environment names one, or when there is none.
    server: Option<Server>,
    required: bool,
}

impl Postgres {
    /// Starts the server of a test run, unless the environment names one and no version is asked for. Where there is
    /// none and none can be installed, the tests that need one say that they are skipped. Errors: it does not start.
    pub(crate) fn for_tests(root: &Path, version: Option<u32>) -> Result<Self, String> {
        let is_named = std::env::var_os(URL_VARIABLE).is_some_and(|url| !url.is_empty());
        let server = if is_named && version.is_none() { None } else { found_or_said(root, version)? };
        if server.is_some() && PgBouncer::program().is_none() {
            let installed = install(&["pgbouncer"], "its tests are skipped without it");
            installed.unwrap_or_else(|error| println!("xtask: no pgbouncer: {error}"));
        }
        Ok(Self { server, required: false })
    }

    /// The same, and a missing server or pooler is an error here, a skip in a test a failure there.
    pub(crate) fn demanded(root: &Path, version: Option<u32>) -> Result<Self, String> {
        let found = Self::for_tests(root, version)?;
        if found.server.is_none() && std::env::var_os(URL_VARIABLE).is_none() {
            return Err("the tests need a PostgreSQL".into());
        }
        Ok(Self { required: true, ..found })
    }

    /// Tells a command of it.
    pub(crate) fn tell(&self, command: &mut Command) {
        if let Some(server) = &self.server {
            tell(server, command);
        }
        if self.required {
            command.env(REQUIRE_VARIABLE, "1");
        }
    }
}

/// Runs a server until Ctrl-C, its URL printed, or runs `words` with the URL in `MAINSTAY_TEST_POSTGRES`. Errors: there
/// are no binaries, the server does not start, or the command fails.
pub(crate) fn run(root: &Path, version: Option<u32>, words: &[String]) -> Result<Outcome, String> {
    let server = start(binaries(root, version)?)?;
    let Some((program, args)) = words.split_first() else {
        println!(
            "MAINSTAY_TEST_POSTGRES={}\nuntil Ctrl-C; it syncs nothing, so that a crash of it loses what was committed last",
            server.url()
        );
        loop {
            // Ctrl-C ends this process, and the server's watchdog ends the server.
            std::thread::park();
        }
    };
    let mut command = Command::new(program);
    tell(&server, command.args(args));
    shell::run(&mut command).map(|()| Outcome::default())
}

/// Tells a command of a server and of its programs: a test with a server of its own is to meet the same version.
fn tell(server: &Server, command: &mut Command) {
    command.env(URL_VARIABLE, server.url()).env(PROGRAMS_VARIABLE, server.binaries().folder());
}

fn found_or_said(root: &Path, version: Option<u32>) -> Result<Option<Server>, String> {
    match binaries(root, version) {
        Ok(binaries) => start(binaries).map(Some),
        // A version that was asked for is not to be replaced by skipped tests.
        Err(error) if version.is_some() => Err(error),
        Err(error) => {
            println!("xtask: {error}\nxtask: going on without PostgreSQL: tests that need it are skipped");
            Ok(None)
        }
    }
}

fn start(binaries: Binaries) -> Result<Server, String> {
    println!("xtask: PostgreSQL {}", binaries.version());
    Server::start(Options::new().binaries(binaries)).map_err(|error| format!("PostgreSQL does not start: {error}"))
}

/// The programs of a major version, or of the newest one that is there.
fn binaries(root: &Path, version: Option<u32>) -> Result<Binaries, String> {
    if let Some(major) = version {
        let debian = Binaries::of(&Path::new(DEBIAN).join(major.to_string()).join("bin"));
        return debian.or_else(|_| npm::binaries(root, major));
    }
    if let Some(found) = Binaries::find() {
        return Ok(found);
    }
    install(&["postgresql", "pgbouncer"], "or set MAINSTAY_PG_BIN to a folder with initdb and postgres")?;
    Binaries::find().ok_or_else(|| "Debian's package brought no PostgreSQL".into())
}

fn install(packages: &[&str], or: &str) -> Result<(), String> {
    let clusters = Path::new(CLUSTERS);
    if tools::is_root() && packages.contains(&"postgresql") && !clusters.exists() {
        let folder = clusters.parent().unwrap_or(clusters);
        let written = std::fs::create_dir_all(folder);
        let written = written.and_then(|()| std::fs::write(clusters, "create_main_cluster = false\n"));
        written.map_err(|error| format!("{CLUSTERS}: {error}"))?;
    }
    tools::install(packages).map_err(|error| format!("{error}; {or}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_told_of_the_server_and_of_the_programs_that_it_runs_from() {
        let Some(server) = mainstay_pgkit::own_server(Options::new()) else { return };
        let mut command = Command::new("true");
        Postgres { server: Some(server.clone()), required: true }.tell(&mut command);
        let told = |name: &str| {
            let mut set = command.get_envs().filter(|(set, _)| *set == name);
            set.next().and_then(|(_, value)| value).expect(name).to_str().expect("a text").to_owned()
        };
        assert_eq!(told(URL_VARIABLE), server.url());
        assert_eq!(told(REQUIRE_VARIABLE), "1");
        let programs = Binaries::of(Path::new(&told(PROGRAMS_VARIABLE))).expect("programs");
        assert_eq!(programs.version(), server.binaries().version());
    }
}
