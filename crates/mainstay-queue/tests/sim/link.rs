//! The line between one process and the store: it can be cut, it fails reads on demand, and it reports every claim.

use crate::seen::{ClaimCall, Run, Seen, Written};
use async_trait::async_trait;
use mainstay_env::yield_now;
use mainstay_store::*;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// What a process's line does at the moment.
#[derive(Debug, Default)]
struct Line {
    /// Calls wait until it is mended.
    cut: bool,
    /// So many ticks fail.
    failing_reads: u32,
    /// Those that have.
    reads_failed: u64,
}

/// Steers one line; clones steer the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Switch {
    line: Arc<Mutex<Line>>,
    mended: Arc<Notify>,
}

impl Switch {
    fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing gets through until the line is mended; what waits then goes on.
    pub(crate) fn cut(&self) {
        self.lock().cut = true;
    }

    pub(crate) fn mend(&self) {
        let mut line = self.lock();
        (line.cut, line.failing_reads) = (false, 0);
        drop(line);
        self.mended.notify_waiters();
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.lock().cut
    }

    pub(crate) fn fail_reads(&self, count: u32) {
        self.lock().failing_reads = count;
    }

    /// Ticks that failed on demand.
    pub(crate) fn reads_failed(&self) -> u64 {
        self.lock().reads_failed
    }

    async fn open(&self) {
        loop {
            let mended = self.mended.notified();
            if !self.is_cut() {
                return;
            }
            mended.await;
        }
    }

    fn takes_a_failure(&self) -> bool {
        let mut line = self.lock();
        if line.failing_reads == 0 {
            return false;
        }
        line.failing_reads -= 1;
        line.reads_failed += 1;
        true
    }
}

/// A store behind a line.
#[derive(Debug)]
pub(crate) struct Linked {
    pub(crate) inner: Arc<dyn Store>,
    pub(crate) switch: Switch,
    pub(crate) run: Run,
    pub(crate) seen: Seen,
    /// No younger beat may be taken for a standing one.
    pub(crate) ttl: Duration,
}

impl Linked {
    /// A read: others run before and after it, as across a network.
    async fn read<T>(&self, _method: &'static str, call: impl Future<Output = Result<T>>) -> Result<T> {
        self.go().await;
        let answer = call.await;
        self.come().await;
        answer
    }

    /// A write of queues or versions.
    async fn register<T>(&self, call: impl Future<Output = T>) -> T {
        self.go().await;
        let answer = call.await;
        self.seen.lock().registry = true;
        self.come().await;
        answer
    }

    async fn go(&self) {
        yield_now().await;
        self.switch.open().await;
    }

    fn tell(&self, line: impl FnOnce() -> String) {
        self.seen.tell_reader(self.inner.env().monotonic(), || format!("{:?} {}", self.run.0, line()));
    }

    async fn come(&self) {
        yield_now().await;
        self.switch.open().await;
    }
}

#[async_trait]
impl WriteStore for Linked {
    async fn commit(&self, units: &[Unit]) -> Result<Committed> {
        self.go().await;
        let answer = self.inner.commit(units).await;
        let ends = units.iter().filter(|unit| unit.outcome.is_some());
        let outcomes = ends.filter_map(|unit| unit.fence.clone()).collect();
        self.seen.lock().wrote_all(Written { now: None, claim: None, outcomes });
        self.tell(|| format!("{units:?}"));
        self.come().await;
        answer
    }
}

pass_on! { Linked => inner via read: WorkflowStore }
pass_on! { Linked => inner: Store }

#[async_trait]
impl QueueStore for Linked {
    async fn queue_claim(&self, request: Claim) -> Result<Claimed> {
        let at = self.note(&request);
        self.go().await;
        let answer = self.inner.queue_claim(request.clone()).await;
        if let Ok(claimed) = &answer {
            let ids: Vec<_> = claimed.rows.iter().map(|row| &row.row.id).collect();
            self.tell(|| format!("claim on {}: {ids:?} {:?} of {:?}", request.queue, claimed.stop, request.executor));
            let mut state = self.seen.lock();
            state.version += 1;
            state.wrote(Some(claimed.now), Some((self.run.clone(), request)));
            if let Some(label) = met(&claimed.stop) {
                state.note(label);
            }
            state.claims[at].reply = Some(claimed.clone());
        }
        self.come().await;
        answer
    }

    async fn queue_probe(&self, request: Probe) -> Result<Probed> {
        let answer = self.read("queue_probe", self.inner.queue_probe(request.clone())).await;
        self.tell(|| format!("probe of {:?}: {answer:?}", request.queues));
        answer
    }

    async fn queue_audit(&self, request: Audit) -> Result<Audited> {
        let answer = self.read("queue_audit", self.inner.queue_audit(request.clone())).await;
        self.tell(|| format!("{request:?}: {answer:?}"));
        answer
    }
}

impl Linked {
    /// Remembers whose executor this is, and when its beat arrived.
    fn beaten(&self, beat: &Beat, beaten: Option<&Beaten>) {
        let executor = &beat.executor;
        let now = self.inner.env().monotonic();
        let mut state = self.seen.lock();
        state.executors.insert(executor.clone(), self.run.clone());
        match beaten {
            Some(Beaten::Alive) => {
                let latest = state.beats.entry(executor.clone()).or_insert((beat.beat, now));
                if latest.0 < beat.beat {
                    *latest = (beat.beat, now);
                }
            }
            Some(_) => state.note("lease lost"),
            None => {}
        }
    }

    fn note(&self, request: &Claim) -> usize {
        let mut state = self.seen.lock();
        if state.stopped.contains(&self.run) {
            state.violation(format!("{:?} sent a claim on {} after it had stopped", self.run, request.queue));
        }
        if !request.repeat && !state.tokens.insert(request.token.clone()) {
            state.violation(format!("invariant 9: {:?} sends a new claim under a used token", self.run));
        }
        let slots = state.slots(&self.run, &request.queue);
        let freed = state.freed.remove(&(self.run.clone(), request.queue.clone())).unwrap_or_default();
        let call = ClaimCall { run: self.run.clone(), request: request.clone(), slots, freed, reply: None };
        state.claims.push(call);
        state.version += 1;
        state.claims.len() - 1
    }
}

/// The limit or refusal that a claim met, as the statistics call it.
fn met(stop: &Stop) -> Option<&'static str> {
    match stop {
        Stop::Limit(Reach::Fleet) => Some("limit: fleet"),
        Stop::Limit(_) => Some("limit: process"),
        Stop::RateIn(_) => Some("limit: rate"),
        Stop::Contended => Some("claim: contended"),
        Stop::Stale(_) => Some("claim: stale"),
        Stop::NoQueue => Some("claim: no queue"),
        Stop::Unleased => Some("claim: unleased"),
        _ => None,
    }
}

#[async_trait]
impl Registry for Linked {
    async fn queue_register(&self, request: RegisterQueue) -> Result<QueueReply> {
        self.register(self.inner.queue_register(request)).await
    }

    async fn queue_update(&self, request: UpdateQueue) -> Result<QueueReply> {
        self.register(self.inner.queue_update(request)).await
    }

    async fn queue_delete(&self, app: &AppName, name: &QueueName) -> Result<bool> {
        self.register(self.inner.queue_delete(app, name)).await
    }

    async fn queue_list(&self, app: &AppName) -> Result<Vec<Queue>> {
        self.read("queue_list", self.inner.queue_list(app)).await
    }

    async fn version_register(&self, app: &AppName, version: &VersionName) -> Result<VersionReply> {
        self.register(self.inner.version_register(app, version)).await
    }

    async fn version_promote(&self, app: &AppName, version: &VersionName) -> Result<VersionReply> {
        self.register(self.inner.version_promote(app, version)).await
    }

    async fn version_list(&self, app: &AppName) -> Result<Vec<Version>> {
        self.read("version_list", self.inner.version_list(app)).await
    }
}

#[async_trait]
impl ExecutorStore for Linked {
    async fn lease_beat(&self, request: Beat) -> Result<Beaten> {
        self.go().await;
        let answer = self.inner.lease_beat(request.clone()).await;
        self.beaten(&request, answer.as_ref().ok());
        self.come().await;
        answer
    }

    async fn lease_list(&self, app: &AppName) -> Result<Leases> {
        self.read("lease_list", self.inner.lease_list(app)).await
    }

    async fn lease_take_over(&self, request: TakeOver) -> Result<TakenOver> {
        self.go().await;
        let (asker, executor) = (self.run.clone(), request.executor.clone());
        let answer = self.inner.lease_take_over(request).await;
        self.tell(|| format!("take-over of {executor}: {answer:?}"));
        if let Ok(TakenOver::Rows { .. }) = &answer {
            let now = self.inner.env().monotonic();
            let mut state = self.seen.lock();
            state.wrote(None, None);
            state.note("take-over");
            let victim = state.executors.get(&executor).cloned();
            let own = victim.as_ref() == Some(&asker);
            if victim.is_some_and(|victim| !own && state.alive.contains(&victim)) {
                state.note("false dead taken over");
            }
            let beat = state.beats.get(&executor).map(|(_, at)| *at);
            if let Some(beat) = beat.filter(|beat| !own && now.since(*beat) < self.ttl) {
                let age = now.since(beat);
                state.violation(format!("invariant 51: {asker:?} took over {executor}, whose beat is {age:?} old"));
            }
        }
        self.come().await;
        answer
    }
}

#[async_trait]
impl Maintenance for Linked {
    async fn tick(&self, request: Tick) -> Result<Ticked> {
        if self.switch.takes_a_failure() {
            return Err(StoreError::new(ErrorKind::Unavailable, "tick").with_source("a read that fails on demand"));
        }
        self.go().await;
        let beat = request.beat.clone();
        let answer = self.inner.tick(request).await;
        if let (Some(beat), Ok(ticked)) = (&beat, &answer) {
            self.beaten(beat, ticked.beat.as_ref());
        }
        if let Ok(ticked) = &answer {
            self.tell(|| format!("tick: beat {:?} {beat:?} leases {:?}", ticked.beat, ticked.leases));
            self.seen.lock().wrote(Some(ticked.now), None);
        }
        self.come().await;
        answer
    }

    async fn collect(&self, request: Collect) -> Result<Collected> {
        self.go().await;
        let answer = self.inner.collect(request).await;
        self.seen.lock().wrote(None, None);
        self.come().await;
        answer
    }
}

// The engine uses no optional part of the contract.
impl SignalStore for Linked {}
impl ScheduleStore for Linked {}
impl AdminStore for Linked {}
