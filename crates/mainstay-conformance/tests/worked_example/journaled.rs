//! A backend of one's own in a page or two: memory behind an append-only file of requests, replayed at opening.
//!
//! Every request that may write is appended to the file as a line of JSON, with the clock's reading, and synced; then
//! memory executes it. Memory decides from requests, state and clock alone, so that replaying the file gives the same state.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use mainstay_env::{Clock, SimClock};
use mainstay_memory::Memory;
use mainstay_store::*;
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, MutexGuard};

/// A request that may write, as the file holds it.
#[derive(Serialize, Deserialize)]
enum Request {
    Commit(Vec<Unit>),
    Claim(Claim),
    Register(RegisterQueue),
    Update(UpdateQueue),
    DeleteQueue(AppName, QueueName),
    RegisterVersion(AppName, VersionName),
    PromoteVersion(AppName, VersionName),
    Beat(Beat),
    TakeOver(TakeOver),
    Tick(Tick),
    Collect(Collect),
}

/// One line of the file.
#[derive(Serialize, Deserialize)]
struct Entry {
    now: Timestamp,
    request: Request,
}

/// The file, up to where it is known to be good.
#[derive(Debug)]
struct Journal {
    file: File,
    good: u64,
}

/// Memory behind a journal.
#[derive(Debug)]
pub(crate) struct Journaled {
    memory: Memory,
    /// What memory reads: moved to the outer clock's reading before each operation, and by the replay.
    inner: SimClock,
    outer: StoreClock,
    /// Held through an operation, so that the file's order is memory's.
    journal: Mutex<Journal>,
}

impl Journaled {
    /// Opens or makes the file and replays it. Errors: what the file system says; `Corrupt` for a line that is no request.
    pub(crate) async fn open(env: Env, clock: StoreClock, path: &Path) -> Result<Self> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(broken)?;
        let inner = SimClock::new(Timestamp::from_millis(0));
        let memory = Memory::open(env, StoreClock::Manual(inner.clone()));
        let mut journal = Journal { file, good: 0 };
        for entry in journal.entries()? {
            advance(&inner, entry.now);
            replay(&memory, entry.request).await;
        }
        Ok(Self { memory, inner, outer: clock, journal: Mutex::new(journal) })
    }

    /// Begins an operation that only reads.
    async fn read(&self) -> MutexGuard<'_, Journal> {
        let journal = self.journal.lock().await;
        let now = match &self.outer {
            StoreClock::Server => self.memory.env().now(),
            StoreClock::Manual(clock) => clock.now(),
        };
        advance(&self.inner, now);
        journal
    }

    /// Begins an operation that may write: it is in the file before memory hears of it.
    async fn write(&self, request: Request) -> Result<MutexGuard<'_, Journal>> {
        let mut journal = self.read().await;
        journal.append(&Entry { now: self.inner.now(), request })?;
        Ok(journal)
    }
}

/// A clock that memory reads never goes back.
fn advance(clock: &SimClock, now: Timestamp) {
    clock.advance(now.since(clock.now()));
}

fn broken(error: io::Error) -> StoreError {
    StoreError::new(ErrorKind::Unavailable, "journal").with_source(error)
}

impl Journal {
    /// All whole lines. A last one without its end was being written when its process died: nobody was answered.
    fn entries(&mut self) -> Result<Vec<Entry>> {
        let mut lines = BufReader::new(&self.file);
        let (mut entries, mut line) = (Vec::new(), String::new());
        while lines.read_line(&mut line).map_err(broken)? > 0 && line.ends_with('\n') {
            let corrupt = |error| StoreError::new(ErrorKind::Corrupt, "journal").with_source(error);
            entries.push(serde_json::from_str(&line).map_err(corrupt)?);
            self.good += line.len() as u64;
            line.clear();
        }
        self.file.set_len(self.good).map_err(broken)?;
        Ok(entries)
    }

    /// Appends a line that survives the machine, or leaves the file as it was.
    fn append(&mut self, entry: &Entry) -> Result<()> {
        let bug = |error| StoreError::new(ErrorKind::Bug, "journal").with_source(error);
        let line = serde_json::to_string(entry).map_err(bug)? + "\n";
        // What an earlier failure left behind must not stand before this line.
        self.file.set_len(self.good).map_err(broken)?;
        self.file.seek(SeekFrom::End(0)).map_err(broken)?;
        self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data()).map_err(broken)?;
        self.good += line.len() as u64;
        Ok(())
    }
}

/// Executes a request again. Its answer was given long ago, so it is not looked at.
async fn replay(memory: &Memory, request: Request) {
    let failed = match request {
        Request::Commit(units) => memory.commit(&units).await.is_err(),
        Request::Claim(request) => memory.queue_claim(request).await.is_err(),
        Request::Register(request) => memory.queue_register(request).await.is_err(),
        Request::Update(request) => memory.queue_update(request).await.is_err(),
        Request::DeleteQueue(app, name) => memory.queue_delete(&app, &name).await.is_err(),
        Request::RegisterVersion(app, version) => memory.version_register(&app, &version).await.is_err(),
        Request::PromoteVersion(app, version) => memory.version_promote(&app, &version).await.is_err(),
        Request::Beat(request) => memory.lease_beat(request).await.is_err(),
        Request::TakeOver(request) => memory.lease_take_over(request).await.is_err(),
        Request::Tick(request) => memory.tick(request).await.is_err(),
        Request::Collect(request) => memory.collect(request).await.is_err(),
    };
    // One that was refused at first is refused again, and has written nothing either time.
    let _ = failed;
}

#[async_trait]
impl WriteStore for Journaled {
    async fn commit(&self, units: &[Unit]) -> Result<Committed> {
        let _turn = self.write(Request::Commit(units.to_vec())).await?;
        self.memory.commit(units).await
    }
}

#[async_trait]
impl WorkflowStore for Journaled {
    async fn workflow_standing(&self, ids: &[WorkflowId]) -> Result<Vec<Standing>> {
        let _turn = self.read().await;
        self.memory.workflow_standing(ids).await
    }
    async fn workflow_rows(&self, ids: &[WorkflowId]) -> Result<Vec<Option<WorkflowRow>>> {
        let _turn = self.read().await;
        self.memory.workflow_rows(ids).await
    }
    async fn workflow_steps(&self, request: ReadSteps) -> Result<Steps> {
        let _turn = self.read().await;
        self.memory.workflow_steps(request).await
    }
    async fn workflow_input(&self, id: &WorkflowId) -> Result<Option<Payload>> {
        let _turn = self.read().await;
        self.memory.workflow_input(id).await
    }
    async fn workflow_holder(&self, queue: &QueueName, key: &DedupKey) -> Result<Option<WorkflowId>> {
        let _turn = self.read().await;
        self.memory.workflow_holder(queue, key).await
    }
}

#[async_trait]
impl QueueStore for Journaled {
    async fn queue_claim(&self, request: Claim) -> Result<Claimed> {
        let _turn = self.write(Request::Claim(request.clone())).await?;
        self.memory.queue_claim(request).await
    }
    async fn queue_probe(&self, request: Probe) -> Result<Probed> {
        let _turn = self.read().await;
        self.memory.queue_probe(request).await
    }
    async fn queue_audit(&self, request: Audit) -> Result<Audited> {
        let _turn = self.read().await;
        self.memory.queue_audit(request).await
    }
}

#[async_trait]
impl Registry for Journaled {
    async fn queue_register(&self, request: RegisterQueue) -> Result<QueueReply> {
        let _turn = self.write(Request::Register(request.clone())).await?;
        self.memory.queue_register(request).await
    }
    async fn queue_update(&self, request: UpdateQueue) -> Result<QueueReply> {
        let _turn = self.write(Request::Update(request.clone())).await?;
        self.memory.queue_update(request).await
    }
    async fn queue_delete(&self, app: &AppName, name: &QueueName) -> Result<bool> {
        let _turn = self.write(Request::DeleteQueue(app.clone(), name.clone())).await?;
        self.memory.queue_delete(app, name).await
    }
    async fn queue_list(&self, app: &AppName) -> Result<Vec<Queue>> {
        let _turn = self.read().await;
        self.memory.queue_list(app).await
    }
    async fn version_register(&self, app: &AppName, version: &VersionName) -> Result<VersionReply> {
        let _turn = self.write(Request::RegisterVersion(app.clone(), version.clone())).await?;
        self.memory.version_register(app, version).await
    }
    async fn version_promote(&self, app: &AppName, version: &VersionName) -> Result<VersionReply> {
        let _turn = self.write(Request::PromoteVersion(app.clone(), version.clone())).await?;
        self.memory.version_promote(app, version).await
    }
    async fn version_list(&self, app: &AppName) -> Result<Vec<Version>> {
        let _turn = self.read().await;
        self.memory.version_list(app).await
    }
}

#[async_trait]
impl ExecutorStore for Journaled {
    async fn lease_beat(&self, request: Beat) -> Result<Beaten> {
        let _turn = self.write(Request::Beat(request.clone())).await?;
        self.memory.lease_beat(request).await
    }
    async fn lease_list(&self, app: &AppName) -> Result<Leases> {
        let _turn = self.read().await;
        self.memory.lease_list(app).await
    }
    async fn lease_take_over(&self, request: TakeOver) -> Result<TakenOver> {
        let _turn = self.write(Request::TakeOver(request.clone())).await?;
        self.memory.lease_take_over(request).await
    }
}

#[async_trait]
impl Maintenance for Journaled {
    async fn tick(&self, request: Tick) -> Result<Ticked> {
        let _turn = self.write(Request::Tick(request.clone())).await?;
        self.memory.tick(request).await
    }
    async fn collect(&self, request: Collect) -> Result<Collected> {
        let _turn = self.write(Request::Collect(request.clone())).await?;
        self.memory.collect(request).await
    }
}

impl SignalStore for Journaled {}
impl ScheduleStore for Journaled {}
impl AdminStore for Journaled {}

impl Store for Journaled {
    fn capabilities(&self) -> Capabilities {
        Capabilities::none().with(Capability::Durable)
    }
    fn env(&self) -> &Env {
        self.memory.env()
    }
    fn wakeups(&self) -> &Wakeups {
        self.memory.wakeups()
    }
}

/// The store as a program holds it.
pub(crate) async fn open(env: Env, clock: StoreClock, path: &Path) -> Result<Arc<dyn Store>> {
    Ok(Arc::new(Journaled::open(env, clock, path).await?))
}
