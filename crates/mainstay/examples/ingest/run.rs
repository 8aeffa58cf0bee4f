//! One call of the program: find out what is left to do, have it done, and tell how it went.

use std::sync::Arc;
use std::time::Duration;

use mainstay::{Engine, Queue, Settings, Workflow};
use mainstay_store::{Outcome, Standing, Store, WorkflowId};
use sha2::{Digest, Sha256};

use crate::args::Args;
use crate::figures;
use crate::ledger::Ledger;
use crate::places::Places;
use crate::plan::{Latest, List, State, file_id, hex};
use crate::progress::{Progress, say};
use crate::scan::{Scan, scan};
use crate::summary::Summary;
use crate::work::{self, FILES, IngestFile, IngestRun, Report, Tools};

/// Ids in one question to the store.
const BATCH: usize = 500;

/// Between two looks at what has ended.
const LOOK: Duration = Duration::from_millis(100);

/// What steps may take when the program is told to stop. The run itself waits for files that are no longer begun.
const DRAIN: Duration = Duration::from_secs(2);

/// What runs may take when all is done: a run over other files may still be in its last step.
const CLOSE: Duration = Duration::from_secs(1);

/// How often a run is made again whose summary was replaced meanwhile.
const ROUNDS: u32 = 3;

/// Failures that are named one by one on the terminal; the summary names all.
const NAMED: usize = 20;

/// How a call of the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Everything was ingested.
    Complete,
    /// Something failed.
    Incomplete,
    /// The user stopped it.
    Interrupted,
}

/// Runs the program. The error is one line for the user, who has to change something.
pub(crate) async fn run(args: &Args) -> Result<Ending, String> {
    let places = Places::find(args)?;
    let ledger = Ledger::open(args.ledger.as_deref()).map_err(|error| format!("the ledger: {error}"))?;
    let store =
        mainstay::open(&places.url).await.map_err(|error| format!("{}: {}", shown(&places.url), error.message()))?;
    let without = places.without(args.ledger.as_deref());
    let scan = scan(&places.folder, &without).map_err(|error| format!("{}: {error}", args.folder.display()))?;
    places.out.sweep(store.env().now());
    let engine = launch(args, &places, store.clone(), ledger).await.map_err(|error| error.message().to_owned())?;
    let job = Run { args, places: &places, scan: &scan, engine: &engine, store: &*store };
    let ending = tokio::select! {
        ending = job.to_its_end() => ending,
        () = interrupted() => {
            say("stopping; run it again to go on, or press Ctrl-C once more to end at once");
            Ok(Ending::Interrupted)
        }
    };
    let limit = if ending == Ok(Ending::Interrupted) { DRAIN } else { CLOSE };
    tokio::select! {
        closed = engine.shutdown(limit) => closed.map_err(|error| error.message().to_owned())?,
        () = interrupted() => {}
    }
    ending
}

/// An address as it may be shown: one that is no file may hold a password.
fn shown(url: &str) -> &str {
    if url.starts_with("sqlite:") { url } else { "--store" }
}

/// Ends when the user presses Ctrl-C; never where that cannot be noticed.
async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Launches an engine. Where others use the store, it takes rows of its own folders alone: a file is there where it was listed.
async fn launch(args: &Args, places: &Places, store: Arc<dyn Store>, ledger: Ledger) -> mainstay::Result<Engine> {
    let env = store.env().clone();
    let tools = Tools { ledger, pause: Duration::from_millis(args.pause), env };
    let lease = args.lease.map(Duration::from_millis);
    let builder = Engine::builder(store).app("ingest");
    let builder = places.place().version().into_iter().fold(builder, mainstay::Builder::version);
    builder
        .queue(Queue::new(FILES).worker_concurrency(args.workers))
        .register(IngestFile(tools.clone()))
        .register(IngestRun(tools))
        .settings(move |settings| lease.into_iter().fold(settings, leased))
        .launch()
        .await
}

/// Settings under which a death is noticed within a lease of this length.
fn leased(settings: Settings, lease: Duration) -> Settings {
    settings.tick(lease / 4).beat(lease / 4).ttl(lease)
}

/// What a run works with.
struct Run<'a> {
    args: &'a Args,
    places: &'a Places,
    scan: &'a Scan,
    engine: &'a Engine,
    store: &'a dyn Store,
}

/// What is to be done.
enum Decision {
    /// Nothing: the summary stands as the last run has written it.
    Finished(Summary),
    /// This run, new or begun before.
    Go { list: List, id: String, done: u64 },
}

impl Run<'_> {
    async fn to_its_end(&self) -> Result<Ending, String> {
        match self.scan.unread.len() {
            0 => {}
            1 => say("1 entry cannot be read and counts as failed, beside the files"),
            unread => say(&format!("{unread} entries cannot be read and count as failed, beside the files")),
        }
        for _ in 0..ROUNDS {
            match self.decide().await? {
                Decision::Finished(summary) => return Ok(self.report(&summary)),
                Decision::Go { list, id, done } => {
                    if let Some(summary) = self.go(&list, &id, done).await? {
                        return Ok(self.report(&summary));
                    }
                }
            }
        }
        Err(format!("{}: other runs write their summaries here", self.places.out.folder().display()))
    }

    /// Finds the latest workflow of each file. Where the run over them has ended and some have failed, or there is no such
    /// run, those are tried again under new ids, and with them a new run. So are those whose result is gone, in any case.
    async fn decide(&self) -> Result<Decision, String> {
        let place = self.places.place();
        let bases = self.scan.files.iter().map(|found| file_id(&place, found)).collect();
        let mut files = self.latest(bases).await?;
        let lost = self.mark_lost(&mut files);
        let list = List::new(place.clone(), self.scan, files.iter().map(Latest::id));
        let run = self.latest_run(&list).await?;
        let ended = |state| files.iter().filter(|file| file.state == state).count() as u64;
        let (done, failed) = (ended(State::Done), ended(State::Failed));
        if run.state == State::Open && lost == 0 {
            return Ok(Decision::Go { list, id: run.id(), done: done + failed });
        }
        if failed + lost == 0 {
            if run.state == State::Done
                && let Some(summary) = self.written(&self.result(&run.id()).await?)
            {
                Progress::new(files.len() as u64, done).close();
                return Ok(Decision::Finished(summary));
            }
            return Ok(Decision::Go { list, id: run.next(), done });
        }
        let again = files.iter().map(|file| if file.state.is_to_be_tried_again() { file.next() } else { file.id() });
        let list = List::new(place, self.scan, again);
        let run = self.latest_run(&list).await?;
        let id = if run.state == State::Open { run.id() } else { run.next() };
        Ok(Decision::Go { list, id, done })
    }

    async fn latest_run(&self, list: &List) -> Result<Latest, String> {
        let found = self.latest(vec![list.run_id()]).await?;
        found.into_iter().next().ok_or_else(|| "no run".to_owned())
    }

    /// Finds out which files have ended well and have no result. Answers how many.
    fn mark_lost(&self, files: &mut [Latest]) -> u64 {
        let mut lost = 0;
        for (file, found) in files.iter_mut().zip(&self.scan.files) {
            if file.state == State::Done && !self.places.out.file(&found.path, &file.id()).is_file() {
                file.state = State::Lost;
                lost += 1;
            }
        }
        lost
    }

    /// The latest of each.
    async fn latest(&self, bases: Vec<String>) -> Result<Vec<Latest>, String> {
        let mut all: Vec<Latest> = bases.into_iter().map(Latest::never).collect();
        let mut asked: Vec<usize> = (0..all.len()).collect();
        let mut number = 0;
        while !asked.is_empty() {
            let ids: Vec<WorkflowId> = asked.iter().map(|at| all[*at].numbered(number).into()).collect();
            let mut states = self.states(&ids).await?.into_iter();
            asked.retain(|at| {
                let state = states.next().unwrap_or(State::Never);
                if state != State::Never {
                    all[*at].found(number, state);
                }
                state != State::Never
            });
            number += 1;
        }
        Ok(all)
    }

    async fn states(&self, ids: &[WorkflowId]) -> Result<Vec<State>, String> {
        let mut states = Vec::with_capacity(ids.len());
        for ids in ids.chunks(BATCH) {
            let standings = self.store.workflow_standing(ids).await.map_err(|error| error.to_string())?;
            states.extend(standings.iter().map(state));
        }
        Ok(states)
    }

    /// Starts a run, or joins it, and waits for its end. None when its summary was replaced.
    async fn go(&self, list: &List, id: &str, done: u64) -> Result<Option<Summary>, String> {
        let told = |error: mainstay::Error| error.message().to_owned();
        let ids: Vec<WorkflowId> = list.files.iter().map(|job| WorkflowId::from(&job.id)).collect();
        let mut progress = Progress::new(ids.len() as u64, done);
        let clock = self.store.env();
        let begun = clock.monotonic();
        let sha256 = work::announce(&self.places.out, id, list).await.map_err(told)?;
        let run = IngestRun::invoke((list.place.out.clone(), sha256));
        let handle = self.engine.start(run).id(id).await.map_err(told)?;
        let report = tokio::select! {
            report = handle.result() => report.map_err(told)?,
            error = self.watch(&ids, done, &mut progress) => return Err(error),
        };
        progress.finish();
        if self.args.figures {
            let took = clock.monotonic().since(begun);
            say(&figures::tell(self.store, &ids, took, ids.len() as u64 - done).await?);
        }
        // What a run needs is needed no more once it has ended; one that is left behind takes space alone.
        let _ = std::fs::remove_file(self.places.out.list(id));
        Ok(self.written(&report))
    }

    /// Shows what has ended, for ever; ends with an error of the store, unless it may come back from it.
    async fn watch(&self, ids: &[WorkflowId], done: u64, progress: &mut Progress) -> String {
        let mut left: Vec<WorkflowId> = ids.to_vec();
        let (mut shown, mut is_away) = (done, false);
        loop {
            // Files are worked on in order, so that those which end next are among the first.
            let asked = left.len().min(BATCH);
            let standings = match self.store.workflow_standing(&left[..asked]).await {
                Ok(standings) => standings,
                // The run waits for it too, and goes on where it was.
                Err(error) if error.kind().outcome_unknown() => {
                    if !std::mem::replace(&mut is_away, true) {
                        say("the store does not answer; waiting for it");
                    }
                    self.store.env().sleep(LOOK).await;
                    continue;
                }
                Err(error) => return error.to_string(),
            };
            is_away = false;
            let mut open = standings.iter().map(|standing| matches!(state(standing), State::Never | State::Open));
            left.retain(|_| open.next().unwrap_or(true));
            let ended = (ids.len() - left.len()) as u64;
            progress.add(ended.saturating_sub(shown));
            shown = shown.max(ended);
            self.store.env().sleep(LOOK).await;
        }
    }

    async fn result(&self, id: &str) -> Result<Report, String> {
        self.engine.handle_by_id::<Report>(id).result().await.map_err(|error| error.message().to_owned())
    }

    /// The summary on the disk, if it is the one that the run has written.
    fn written(&self, report: &Report) -> Option<Summary> {
        let text = std::fs::read(self.places.out.summary()).ok()?;
        let is_same = report.sha256.as_deref() == Some(&hex(&Sha256::digest(&text)));
        if is_same { serde_json::from_slice(&text).ok() } else { None }
    }

    fn report(&self, summary: &Summary) -> Ending {
        for left in summary.failed.iter().take(NAMED) {
            say(&format!("failed: {}: {}", left.path, left.reason));
        }
        if summary.failed.len() > NAMED {
            say(&format!("… and {} more", summary.failed.len() - NAMED));
        }
        let totals = &summary.totals;
        say(&format!(
            "{} ingested, {} failed, {} skipped: {}",
            totals.files,
            totals.failed,
            totals.skipped,
            self.places.out.summary().display()
        ));
        if summary.failed.is_empty() { Ending::Complete } else { Ending::Incomplete }
    }
}

fn state(standing: &Standing) -> State {
    match standing {
        Standing::Gone => State::Never,
        Standing::Open(_) => State::Open,
        Standing::Ended(Outcome::Success(_)) => State::Done,
        Standing::Ended(_) => State::Failed,
    }
}
