//! The server that tests share: the one of the run, else one of this process.

use crate::binaries::Binaries;
use crate::options::Options;
use crate::server::Server;
use std::sync::OnceLock;

/// The variable by which a run of many test processes names one server: a superuser's URL without a password.
pub const URL_VARIABLE: &str = "MAINSTAY_TEST_POSTGRES";
/// The variable that, set to 1, makes a missing server a failure.
pub const REQUIRE_VARIABLE: &str = "MAINSTAY_REQUIRE_POSTGRES";

/// The server for a test, or `None` when there is none, which is printed: the test returns then.
///
/// It is the one named by `MAINSTAY_TEST_POSTGRES`, else a private one of this process. Panics: the named server is not
/// there, a private one does not start, or `MAINSTAY_REQUIRE_POSTGRES=1` and there are no binaries.
pub fn server() -> Option<Server> {
    static SHARED: OnceLock<Option<Server>> = OnceLock::new();
    let shared = SHARED.get_or_init(find).clone();
    if shared.is_none() {
        let thread = std::thread::current();
        eprintln!("skipped {}: no PostgreSQL binaries; `cargo xtask pg` says how", thread.name().unwrap_or("a test"));
    }
    shared
}

fn find() -> Option<Server> {
    if let Some(url) = std::env::var(URL_VARIABLE).ok().filter(|url| !url.is_empty()) {
        let server = Server::at(&url).unwrap_or_else(|error| panic!("{URL_VARIABLE}: {error}"));
        let _ = server.client();
        return Some(server);
    }
    if let Some(binaries) = Binaries::find() {
        let started = Server::start(Options::new().binaries(binaries));
        return Some(started.unwrap_or_else(|error| panic!("a private PostgreSQL: {error}")));
    }
    let required = std::env::var(REQUIRE_VARIABLE).is_ok_and(|value| value == "1");
    assert!(
        !required,
        "{REQUIRE_VARIABLE}=1 and no PostgreSQL: run under `cargo xtask test`, or set {URL_VARIABLE} or MAINSTAY_PG_BIN"
    );
    None
}

impl Server {
    /// As [`server`].
    pub fn shared() -> Option<Self> {
        server()
    }
}
