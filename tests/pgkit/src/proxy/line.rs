//! Accepting connections, and what all of them share.

use super::counts::{Counts, Record};
use super::message::Message;
use super::pump;
use super::script::{End, Fired, Rule, Script, Verdict};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// What passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    #[default]
    Open,
    Blackhole,
    Refuse,
}

/// What the test has asked of every connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Control {
    pub(crate) mode: Mode,
    pub(crate) delay: Duration,
    /// Grows when all connections of that moment are to end in the way of `end`.
    pub(crate) cuts: u64,
    pub(crate) end: End,
    /// Grows when what is half open is to be reset.
    pub(crate) heals: u64,
    pub(crate) stopped: bool,
}

/// What the connections and the test share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) server: SocketAddr,
    script: Mutex<Script>,
    record: Mutex<Record>,
    next: AtomicU64,
    open: AtomicUsize,
}

impl Shared {
    pub(crate) fn new(server: SocketAddr) -> Self {
        let (script, record) = (Mutex::default(), Mutex::default());
        Self { server, script, record, next: AtomicU64::new(1), open: AtomicUsize::new(0) }
    }

    pub(crate) fn script(&self, rule: Rule) -> Fired {
        lock(&self.script).add(rule)
    }

    pub(crate) fn clear_script(&self) {
        lock(&self.script).clear();
    }

    pub(crate) fn judge(&self, message: &Message) -> Verdict {
        lock(&self.script).judge(message)
    }

    pub(crate) fn record(&self) -> MutexGuard<'_, Record> {
        lock(&self.record)
    }

    pub(crate) fn counts(&self) -> Counts {
        self.record().counts.clone()
    }

    pub(crate) fn reset_counts(&self) {
        *self.record() = Record::default();
    }

    pub(crate) fn messages(&self) -> Vec<Message> {
        self.record().latest.iter().cloned().collect()
    }

    pub(crate) fn open_connections(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// The number of a new connection.
    pub(crate) fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::SeqCst)
    }

    /// A connection to the server, counted as open while the guard lives.
    pub(crate) async fn connect(&self) -> std::io::Result<(TcpStream, Open<'_>)> {
        let stream = TcpStream::connect(self.server).await?;
        stream.set_nodelay(true)?;
        self.record().counts.connections += 1;
        self.open.fetch_add(1, Ordering::SeqCst);
        Ok((stream, Open(&self.open)))
    }
}

/// Counts an open connection to the server.
#[derive(Debug)]
pub(crate) struct Open<'a>(&'a AtomicUsize);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes connections until the proxy is dropped. While connections are refused nobody listens, so that the system
/// itself refuses them.
pub(crate) async fn accept(
    listener: std::net::TcpListener,
    here: SocketAddr,
    shared: Arc<Shared>,
    mut control: watch::Receiver<Control>,
) {
    let mut listener = Some(TcpListener::from_std(listener).expect("a socket that does not block"));
    let mut lines = JoinSet::new();
    loop {
        let (mode, stopped) = {
            let now = control.borrow_and_update();
            (now.mode, now.stopped)
        };
        if stopped {
            return;
        }
        if mode == Mode::Refuse {
            listener = None;
        } else if listener.is_none() {
            listener = Some(TcpListener::bind(here).await.expect("the proxy's own port again"));
        }
        let next = async {
            match &listener {
                Some(listener) => listener.accept().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = control.changed() => if changed.is_err() { return },
            accepted = next => if let Ok((client, _)) = accepted {
                lines.spawn(pump::carry(client, Arc::clone(&shared), control.clone()));
            },
            Some(_) = lines.join_next() => {}
        }
    }
}
