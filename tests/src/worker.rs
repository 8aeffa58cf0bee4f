//! One process of a test: the queue engine on a file, with bodies that write into the ledger and end.

use std::collections::BTreeMap;
use std::io::{Read, Write, stderr, stdin, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mainstay_env::{Env, Task, block_on};
use mainstay_queue::{Config, Dispatch, Launcher, Stats, Work};
use mainstay_sqlite::Sqlite;
use mainstay_store::wrap::{FaultPlan, Faults, Rates, WithDeadline, WithFaults, WithRetry};
use mainstay_store::{Outcome, Registered, Store, StoreClock, Unit, WorkflowId};
use tokio::sync::oneshot;

use crate::ledger::{Ledger, Running};
use crate::load::{APP, JOB, VERSION};

/// How long a call of a faulted store may take, far below the usual 30 s: a call that hangs must not be the whole test.
const LIMIT: Duration = Duration::from_millis(500);

/// Longest delay of a delayed call.
const DELAY: Duration = Duration::from_millis(50);

/// How long a body waits before it sends its outcome again.
const AGAIN: Duration = Duration::from_millis(20);

/// What runs may take at the end.
const DRAIN: Duration = Duration::from_secs(10);

/// What a process is told, as arguments of its command line.
#[derive(Clone, Debug, PartialEq)]
pub struct Orders {
    /// The store's file.
    pub file: PathBuf,
    /// The ledger's.
    pub ledger: PathBuf,
    /// Name of the process.
    pub name: String,
    /// Share of the calls that meet each fault.
    pub faults: f64,
    /// Seed of the faults.
    pub seed: u64,
    /// How long faults happen.
    pub span: Duration,
    /// How long a body runs at most; at least it runs no time at all.
    pub body: Duration,
}

impl Orders {
    /// The arguments that say this.
    #[must_use]
    pub fn to_args(&self) -> Vec<String> {
        let Self { file, ledger, name, faults, seed, span, body } = self;
        let (span, body) = (span.as_millis(), body.as_millis());
        let (file, ledger) = (file.display().to_string(), ledger.display().to_string());
        let (faults, seed, span, body) = (faults.to_string(), seed.to_string(), span.to_string(), body.to_string());
        vec![file, ledger, name.clone(), faults, seed, span, body]
    }

    fn from_args(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut next = |what: &str| args.next().ok_or_else(|| format!("{what} is missing"));
        Ok(Self {
            file: next("file")?.into(),
            ledger: next("ledger")?.into(),
            name: next("name")?,
            faults: number(&next("faults")?)?,
            seed: number(&next("seed")?)?,
            span: Duration::from_millis(number(&next("span")?)?),
            body: Duration::from_millis(number(&next("body")?)?),
        })
    }
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{text} is no number"))
}

/// Runs a process until its standard input is closed, and says on its standard output what it did.
#[must_use]
pub fn main() -> ExitCode {
    match Orders::from_args(std::env::args().skip(1)).and_then(run) {
        Ok(line) => {
            // A test that no longer listens has failed already.
            let _ = writeln!(stdout(), "{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(orders: Orders) -> Result<String, String> {
    let env = Env::system(orders.name.clone()).map_err(|error| error.to_string())?;
    block_on(env.tasks().spawn("worker", work(env.clone(), orders))).map_err(|error| error.to_string())?
}

async fn work(env: Env, orders: Orders) -> Result<String, String> {
    let opened = Sqlite::open(&env, orders.file.clone(), StoreClock::Server).await;
    let (store, faults) = troubled(Arc::new(opened.map_err(|error| error.to_string())?), &orders);
    let ledger = Ledger::open(&orders.ledger).map_err(|error| error.to_string())?;
    let bodies = Bodies { store: store.clone(), ledger, longest: orders.body, running: Mutex::default() };
    let bodies = Arc::new(bodies);
    let config = Config::new(APP, VERSION, orders.name.clone());
    let dispatch = loop {
        match Dispatch::launch(store.clone(), bodies.clone(), config.clone()).await {
            Ok(dispatch) => break dispatch,
            Err(error) if orders.faults > 0.0 && error.kind().outcome_unknown() => {}
            Err(error) => return Err(error.to_string()),
        }
    };
    let quiet = env.tasks().spawn("quiet", {
        let (env, faults) = (env.clone(), faults.clone());
        async move {
            env.sleep(orders.span).await;
            faults.stop();
        }
    });
    closed(&env).await?;
    quiet.abort();
    faults.stop();
    let stats = dispatch.stats();
    let drained = dispatch.shutdown(DRAIN).await;
    if !drained.evicted.is_empty() || !drained.ended {
        return Err(format!("the end was not clean: {drained:?}"));
    }
    Ok(told(&stats))
}

/// The store with faults beneath, under the wrappers that an engine uses.
fn troubled(store: Arc<dyn Store>, orders: &Orders) -> (Arc<dyn Store>, Faults) {
    let plan =
        FaultPlan::new(orders.seed).everywhere(Rates::each(orders.faults)).delay(Duration::from_millis(1), DELAY);
    let (store, faults) = WithFaults::new(store, plan);
    if orders.faults > 0.0 {
        return (WithRetry::new(WithDeadline::after(store, LIMIT)), faults);
    }
    (WithRetry::new(WithDeadline::new(store)), faults)
}

/// Waits until the standard input is closed.
async fn closed(env: &Env) -> Result<(), String> {
    let (tell, told) = oneshot::channel::<()>();
    let wait = move || {
        let mut rest = Vec::new();
        // However the input ends, it has ended.
        let _ = stdin().read_to_end(&mut rest);
        drop(tell);
    };
    let thread = env.tasks().thread("input", wait).map_err(|error| error.to_string())?;
    let _ = told.await;
    thread.await.map_err(|error| error.to_string())
}

/// What a test asks of the numbers, as `name=number` words.
fn told(stats: &Stats) -> String {
    let Stats { launched, claims, contended, failed_claims, repeats, taken_over, renewals, .. } = stats;
    format!(
        "launched={launched} claims={claims} contended={contended} failed={failed_claims} repeats={repeats} \
        taken_over={taken_over} renewals={renewals}"
    )
}

/// The bodies of a process.
#[derive(Debug)]
struct Bodies {
    store: Arc<dyn Store>,
    ledger: Ledger,
    longest: Duration,
    running: Mutex<BTreeMap<WorkflowId, Task<()>>>,
}

impl Launcher for Bodies {
    fn registered(&self) -> Arc<[Registered]> {
        Arc::new([Registered::new(JOB)])
    }

    fn launch(&self, work: Work) {
        let id = work.claimed.row.id.clone();
        let Ok(running) = self.ledger.start(id.as_str()) else { return };
        let store = self.store.clone();
        let env = store.env().clone();
        let longest = self.longest;
        let task = env.tasks().spawn("body", async move { body(&*store, work, longest, running).await });
        let before = self.running.lock().unwrap_or_else(PoisonError::into_inner).insert(id, task);
        drop(before);
    }

    /// The engine calls this on the thread that polls the bodies: an aborted one is never polled again.
    fn evict(&self, id: &WorkflowId) {
        if let Some(task) = self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(id) {
            task.abort();
        }
    }
}

/// Runs a moment, ends in the ledger, and then in the store.
async fn body(store: &dyn Store, work: Work, longest: Duration, running: Running) {
    let env = store.env();
    env.sleep(env.rng().between(Duration::ZERO, longest)).await;
    drop(running);
    let end = Unit::by(&work.claimed.fence).outcome(Outcome::Success("1".into()));
    // Until it is written, or its fence is void.
    while !matches!(store.commit(std::slice::from_ref(&end)).await, Ok(committed) if committed.units[0].is_ok()) {
        env.sleep(AGAIN).await;
    }
    drop(work.slot);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read_as_they_were_given() {
        let orders = Orders {
            file: "a/store.db".into(),
            ledger: "a/ledger".into(),
            name: "w1".to_owned(),
            faults: 0.05,
            seed: 7,
            span: Duration::from_secs(20),
            body: Duration::from_millis(2),
        };
        assert_eq!(Orders::from_args(orders.to_args().into_iter()), Ok(orders));
        assert!(Orders::from_args(std::iter::empty()).is_err());
    }
}
