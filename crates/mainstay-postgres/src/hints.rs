//! Hints between processes by LISTEN and NOTIFY, on a connection of their own. Lossy: everything is right without them.
//!
//! A hint is sent after the commit that it speaks of, one NOTIFY at a time; what comes meanwhile goes with the next.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::{Either, select};
use mainstay_env::{Env, Task, Tasks};
use mainstay_store::{ErrorKind, Wakeup, Wakeups};
use sha2::{Digest, Sha256};
use tokio::sync::{Notify, mpsc};
use tokio_postgres::Client;

use crate::connect::Connector;
use crate::fault::Fault;
use crate::identifier::{Schema, quote};
use crate::pool::drive;

/// Most bytes of a notification that the server takes. Source: the documentation of NOTIFY, 8,000 with the ending.
const PAYLOAD: usize = 7_900;
/// Longer names are not sent; the hint says [`Wakeup::All`] instead.
const NAME: usize = 64;
/// Most hints that wait for the next notification, and notifications that wait to be passed on; beyond it they say
/// [`Wakeup::All`].
const MOST: usize = 512;
/// Pause between two notifications: each is a transaction of the server under a lock of the whole database.
const GAP: Duration = Duration::from_millis(2);
/// How long hints of ended workflows wait for others: work waits for no such hint, only who awaits a result elsewhere.
const CALM: Duration = Duration::from_millis(10);
/// How long a connection that listens may take to hear itself.
const SELF_TEST: Duration = Duration::from_secs(5);
/// Longest that a notification may take before its connection is given up.
const SEND: Duration = Duration::from_secs(10);
/// How long nothing may come and go before the line is asked for a sign of life: a dead one is silent like an idle one.
const QUIET: Duration = Duration::from_secs(30);
/// Pauses between attempts to connect.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(5);

/// Where hints are sent and heard.
pub(crate) struct Line {
    env: Env,
    tasks: Tasks,
    connector: Connector,
    channel: String,
    /// Ours are heard too, and passed over by this.
    nonce: String,
    /// Behind a pooler nothing can be heard.
    deaf: bool,
}

impl Line {
    pub(crate) fn new(env: &Env, tasks: &Tasks, connector: Connector, schema: &Schema, deaf: bool) -> Self {
        let digest = Sha256::digest(schema.name().as_bytes());
        let hash: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let channel = format!("mainstay_{hash}");
        Self { env: env.clone(), tasks: tasks.clone(), connector, channel, nonce: env.nonce(), deaf }
    }
}

/// Hints that wait for the next notification.
#[derive(Debug, Default)]
struct Waiting {
    hints: Mutex<BTreeSet<Wakeup>>,
    more: Notify,
}

impl Waiting {
    /// Ends when work may wait for one of them.
    async fn urgent(&self) {
        while !self.is_urgent() {
            self.more.notified().await;
        }
    }

    /// Whether work may wait for one of them.
    fn is_urgent(&self) -> bool {
        let hints = self.hints.lock().unwrap_or_else(PoisonError::into_inner);
        hints.iter().any(|hint| !matches!(hint, Wakeup::Workflow(_)))
    }
}

/// The end of a line that hears.
struct Hears {
    hears: mpsc::Receiver<String>,
    /// Whether more came than could wait.
    lost: Arc<AtomicBool>,
}

impl Hears {
    /// The next notification; none when the line has ended. What was lost since is told of.
    async fn next(&mut self, wakeups: &Wakeups) -> Option<String> {
        let payload = self.hears.recv().await;
        if self.lost.swap(false, Ordering::Relaxed) {
            wakeups.publish(Wakeup::All);
        }
        payload
    }
}

/// What a line does next.
enum Next {
    Send,
    Heard(Option<String>),
    Quiet,
}

/// The sending end.
#[derive(Debug)]
pub(crate) struct Hints {
    waiting: Option<Arc<Waiting>>,
}

impl Hints {
    /// Begins to listen and to send.
    /// Without a line hints stay in this process.
    pub(crate) fn start(line: Option<Line>, wakeups: &Wakeups) -> Self {
        let waiting = line.map(|line| {
            let waiting = Arc::<Waiting>::default();
            let (wakeups, sent) = (wakeups.clone(), waiting.clone());
            // Owned by the store's group of tasks, which ends with the store.
            drop(line.tasks.clone().spawn("hints", async move { line.hold(&wakeups, &sent).await }));
            waiting
        });
        Self { waiting }
    }

    /// Tells this process at once, and the others soon.
    pub(crate) fn publish(&self, wakeups: &Wakeups, hints: impl IntoIterator<Item = Wakeup>) {
        let hints: BTreeSet<Wakeup> = hints.into_iter().collect();
        if hints.is_empty() {
            return;
        }
        for hint in &hints {
            wakeups.publish(hint.clone());
        }
        let Some(Waiting { hints: sent, more }) = self.waiting.as_deref() else { return };
        let mut sent = sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.extend(hints);
        if sent.len() > MOST {
            *sent = BTreeSet::from([Wakeup::All]);
        }
        drop(sent);
        more.notify_one();
    }
}

impl Line {
    /// Keeps a connection for as long as the store is open.
    async fn hold(&self, wakeups: &Wakeups, waiting: &Waiting) {
        let mut pause = FIRST_PAUSE;
        let mut first = true;
        loop {
            let (heard, hears) = mpsc::channel(MOST);
            let mut hears = Hears { hears, lost: Arc::default() };
            match self.open(heard, hears.lost.clone()).await {
                Ok((client, driver)) => {
                    pause = FIRST_PAUSE;
                    if !std::mem::take(&mut first) {
                        // What was sent while nobody listened is not known.
                        wakeups.publish(Wakeup::All);
                    }
                    if let Err(fault) = self.serve(&client, &mut hears, wakeups, waiting).await {
                        tracing::debug!(error = %fault.of("listen"), "hints between processes are interrupted");
                    }
                    driver.abort();
                }
                Err(fault) => tracing::debug!(error = %fault.of("listen"), "hints between processes are not to be had"),
            }
            self.env.sleep(pause).await;
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    async fn open(&self, heard: mpsc::Sender<String>, lost: Arc<AtomicBool>) -> Result<(Client, Task<()>), Fault> {
        let connected = self.connector.connect().await.map_err(Fault::Given)?;
        let driver = drive(&self.tasks, connected.messages, hearing(heard, lost));
        if !self.deaf {
            // What a hint speaks of is safe already: losing the hint itself with the server loses nothing.
            let listen = format!("SET synchronous_commit = off; LISTEN {}", quote(&self.channel));
            self.answered(connected.client.batch_execute(&listen)).await?;
        }
        Ok((connected.client, driver))
    }

    async fn serve(
        &self,
        client: &Client,
        hears: &mut Hears,
        wakeups: &Wakeups,
        waiting: &Waiting,
    ) -> Result<(), Fault> {
        if !self.deaf {
            self.send(client, &[]).await?;
            if self.env.timeout(SELF_TEST, hears.next(wakeups)).await.is_err() {
                tracing::warn!("notifications do not arrive, so changes by other processes are found by polling");
            }
        }
        loop {
            let next = {
                let (more, payload) = (Box::pin(waiting.more.notified()), Box::pin(hears.next(wakeups)));
                match self.env.timeout(QUIET, select(more, payload)).await {
                    Ok(Either::Left(_)) => Next::Send,
                    Ok(Either::Right((payload, _))) => Next::Heard(payload),
                    Err(_) => Next::Quiet,
                }
            };
            match next {
                Next::Heard(Some(payload)) => self.hear(&payload, wakeups),
                // The connection has ended.
                Next::Heard(None) => return Ok(()),
                Next::Quiet => self.answered(client.check_connection()).await?,
                Next::Send => {
                    // Over at once by one that work waits for.
                    let _ = self.env.timeout(CALM, waiting.urgent()).await;
                    let taken = std::mem::take(&mut *waiting.hints.lock().unwrap_or_else(PoisonError::into_inner));
                    if !taken.is_empty() {
                        self.send(client, &payloads(&taken)).await?;
                        self.env.sleep(GAP).await;
                    }
                }
            }
        }
    }

    async fn send(&self, client: &Client, payloads: &[String]) -> Result<(), Fault> {
        let own = |text: &str| format!("{}:{text}", self.nonce);
        let texts: Vec<String> = match payloads {
            [] => vec![own("")],
            some => some.iter().map(|text| own(text)).collect(),
        };
        let params: [(&(dyn tokio_postgres::types::ToSql + Sync), _); 2] =
            [(&self.channel, tokio_postgres::types::Type::TEXT), (&texts, tokio_postgres::types::Type::TEXT_ARRAY)];
        let sent = client.query_typed("SELECT pg_catalog.pg_notify($1, p) FROM unnest($2) AS p", &params);
        self.answered(sent).await.map(drop)
    }

    async fn answered<T>(&self, sent: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T, Fault> {
        match self.env.timeout(SEND, sent).await {
            Ok(answer) => answer.map_err(Fault::Postgres),
            Err(_) => Err(Fault::Store(ErrorKind::Timeout, "the line for hints does not answer".into())),
        }
    }

    /// Passes on what another process has sent. Anybody may send, so what is not understood is only a hint of something.
    fn hear(&self, payload: &str, wakeups: &Wakeups) {
        let Some((nonce, text)) = payload.split_once(':') else {
            return wakeups.publish(Wakeup::All);
        };
        if nonce == self.nonce || text.is_empty() {
            return;
        }
        match serde_json::from_str::<Vec<Wakeup>>(text) {
            Ok(hints) => hints.into_iter().for_each(|hint| wakeups.publish(hint)),
            Err(_) => wakeups.publish(Wakeup::All),
        }
    }
}

/// Takes what a line hears. Whoever may connect may send, as much as he will.
fn hearing(heard: mpsc::Sender<String>, lost: Arc<AtomicBool>) -> impl Fn(&str) + Send + 'static {
    move |payload| {
        // On a line that has been given up it says nothing.
        if heard.try_send(payload.to_owned()).is_err() {
            lost.store(true, Ordering::Relaxed);
        }
    }
}

/// The hints as texts that fit into notifications.
fn payloads(hints: &BTreeSet<Wakeup>) -> Vec<String> {
    let all = || vec![serde_json::json!([Wakeup::All]).to_string()];
    if hints.iter().any(|hint| matches!(hint, Wakeup::All) || is_long(hint)) {
        return all();
    }
    let mut texts = Vec::new();
    let mut text = String::new();
    for hint in hints {
        let Ok(one) = serde_json::to_string(hint) else { return all() };
        if text.len() + one.len() > PAYLOAD {
            texts.push(format!("[{text}]"));
            text.clear();
        }
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(&one);
    }
    texts.push(format!("[{text}]"));
    texts
}

fn is_long(hint: &Wakeup) -> bool {
    match hint {
        Wakeup::Queue(name) => name.as_str().len() > NAME,
        Wakeup::Workflow(id) | Wakeup::Message(id) => id.as_str().len() > NAME,
        Wakeup::Event(id, key) => id.as_str().len() + key.as_str().len() > NAME,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
