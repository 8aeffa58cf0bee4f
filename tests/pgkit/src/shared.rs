//! The server that tests share: the one of the run, else one of this process.

use crate::binaries::Binaries;
use crate::options::Options;
use crate::server::Server;
use std::sync::OnceLock;

/// The variable by which a run of many test processes names one server: a superuser's URL without a password.
pub const URL_VARIABLE: &str = "MAINSTAY_TEST_POSTGRES";
/// The variable that, set to 1, makes a missing server a failure.
pub const REQUIRE_VARIABLE: &str = "MAINSTAY_REQUIRE_POSTGRES";

/// What is said where there is neither a named server nor programs.
const NO_SERVER: &str = "no PostgreSQL: run under `cargo xtask test`, or set MAINSTAY_TEST_POSTGRES or MAINSTAY_PG_BIN";
/// What is said where there are no programs.
const NO_BINARIES: &str = "no PostgreSQL binaries for a server of its own: install them, or set MAINSTAY_PG_BIN";

/// The server for a test, or `None` when there is none, which is printed: the test returns then.
///
/// It is the one named by `MAINSTAY_TEST_POSTGRES`, else a private one of this process. Panics: the named server is not
/// there, a private one does not start, or `MAINSTAY_REQUIRE_POSTGRES=1` and there are no binaries.
pub fn server() -> Option<Server> {
    static SHARED: OnceLock<Option<Server>> = OnceLock::new();
    let shared = SHARED.get_or_init(find).clone();
    shared.or_else(|| missing(NO_SERVER))
}

/// A private server of the test alone, or `None` where there are no binaries, which is printed: a server that
/// `MAINSTAY_TEST_POSTGRES` names is not in its place. Panics: it does not start, or `MAINSTAY_REQUIRE_POSTGRES=1` and there
/// are no binaries.
pub fn own_server(options: Options) -> Option<Server> {
    let Some(binaries) = options.binaries.clone().or_else(Binaries::find) else { return missing(NO_BINARIES) };
    let started = Server::start(options.binaries(binaries));
    Some(started.unwrap_or_else(|error| panic!("a server of the test's own: {error}")))
}

/// What a test does where something is not installed: it prints that it is skipped. Panics: with
/// `MAINSTAY_REQUIRE_POSTGRES=1`.
pub(crate) fn missing<T>(what: &str) -> Option<T> {
    let required = std::env::var(REQUIRE_VARIABLE).is_ok_and(|value| value == "1");
    assert!(!required, "{REQUIRE_VARIABLE}=1 and {what}");
    eprintln!("skipped {}: {what}", std::thread::current().name().unwrap_or("a test"));
    None
}

fn find() -> Option<Server> {
    if let Some(url) = std::env::var(URL_VARIABLE).ok().filter(|url| !url.is_empty()) {
        let server = Server::at(&url).unwrap_or_else(|error| panic!("{URL_VARIABLE}: {error}"));
        let _ = server.client();
        return Some(server);
    }
    let started = Server::start(Options::new().binaries(Binaries::find()?));
    Some(started.unwrap_or_else(|error| panic!("a private PostgreSQL: {error}")))
}

impl Server {
    /// As [`server`].
    pub fn shared() -> Option<Self> {
        server()
    }
}
