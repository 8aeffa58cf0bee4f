//! A line between client and server that knows the protocol's messages, counts them, and fails where a test says.

mod counts;
mod frame;
mod line;
mod message;
mod pump;
mod script;

pub use counts::Counts;
pub use message::{Kind, Message};
pub use script::{End, Fired, Rule};

use crate::client::Place;
use crate::database::Database;
use crate::error::{During, Error};
use crate::server::Server;
use line::{Control, Mode, Shared};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// A proxy on a port of its own in front of a server. It works on a thread of its own, so that tests of any kind may
/// use it, and ends when it is dropped, with every connection.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    control: watch::Sender<Control>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Proxy {
    /// Listens in front of a server. Errors: no port or thread is to be had.
    pub fn before(server: &Server) -> Result<Self, Error> {
        Self::to_port(server.port())
    }

    /// Listens in front of a port of 127.0.0.1, such as a pooler's.
    pub fn to_port(port: u16) -> Result<Self, Error> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).during("the proxy's port")?;
        listener.set_nonblocking(true).during("the proxy's port")?;
        let here = listener.local_addr().during("the proxy's port")?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().during("the proxy")?;
        let shared = Arc::new(Shared::new(SocketAddr::from(([127, 0, 0, 1], port))));
        let (control, watched) = watch::channel(Control::default());
        let thread = std::thread::Builder::new().name("pgkit-proxy".into()).spawn({
            let shared = Arc::clone(&shared);
            move || runtime.block_on(line::accept(listener, here, shared, watched))
        });
        Ok(Self { port: here.port(), shared, control, thread: Some(thread.during("the proxy's thread")?) })
    }

    /// The port to connect to instead of the server's.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of a database by way of this proxy.
    pub fn url(&self, database: &Database) -> String {
        self.url_of(&database.url())
    }

    /// A URL with this proxy's address in place of its own. Panics: when it is not a URL of this crate.
    pub fn url_of(&self, url: &str) -> String {
        let Place { user, database, .. } = Place::of(url).unwrap_or_else(|error| panic!("{error}"));
        format!("postgres://{user}@127.0.0.1:{}/{database}", self.port)
    }

    /// Adds a rule, which fires once; messages count for it from now on.
    pub fn script(&self, rule: Rule) -> Fired {
        self.shared.script(rule)
    }

    /// Takes back every rule that has not fired.
    pub fn clear_script(&self) {
        self.shared.clear_script();
    }

    /// What has passed since the start or the last reset.
    pub fn counts(&self) -> Counts {
        self.shared.counts()
    }

    /// Begins to count and to record anew.
    pub fn reset_counts(&self) {
        self.shared.reset_counts();
    }

    /// The client's messages that were forwarded since the last reset, oldest first, at most the latest 10,000.
    pub fn messages(&self) -> Vec<Message> {
        self.shared.messages()
    }

    /// Holds every message of either side back for this long, as a slow line does.
    pub fn delay(&self, delay: Duration) {
        self.control.send_modify(|control| control.delay = delay);
    }

    /// From now on nothing passes and nothing is said about it: connections are accepted, but no byte, no end and no
    /// reset comes through either way until [`Proxy::heal`]. What is sent meanwhile is held.
    pub fn blackhole(&self) {
        self.control.send_modify(|control| control.mode = Mode::Blackhole);
    }

    /// Refuses new connections until [`Proxy::heal`]; open ones stay.
    pub fn refuse(&self) {
        self.control.send_modify(|control| control.mode = Mode::Refuse);
    }

    /// Ends every open connection in this way.
    pub fn cut_all(&self, end: End) {
        self.control.send_modify(|control| {
            control.cuts += 1;
            control.end = end;
        });
    }

    /// Passes everything on again without delay, and resets the connections that were left half open.
    pub fn heal(&self) {
        self.control.send_modify(|control| {
            control.mode = Mode::Open;
            control.delay = Duration::ZERO;
            control.heals += 1;
        });
    }

    /// How many connections are open between the proxy and the server.
    pub fn open_connections(&self) -> usize {
        self.shared.open_connections()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.control.send_modify(|control| control.stopped = true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
