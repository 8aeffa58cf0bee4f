//! One lane: takes what waits, commits it, tells of it, and tries again what the store did not answer.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::{Future, pending, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use mainstay_env::{Env, Monotonic, Rng, yield_now};
use mainstay_store::{Committed, ErrorKind, Store, StoreError, Timestamp, Unit, UnitReply, WorkflowId};

use super::batch::{self, Entry};
use super::trouble::{GRAVE, JITTER, PRESSED, Trouble, is_doubtful, is_grave, is_undone};
use super::{Answer, Mailbox, stopped};

/// Yields between an answer and the next batch, so that callers who have just been resumed can join it: measured, three bring
/// nearly all of them (group commit on Postgres), and they cost nothing when nobody is there.
const GATHER_YIELDS: usize = 3;

/// Time between two warnings of one lane about failures of one kind.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// How long after a stop an answer of the store is waited for: enough for the retry wrapper with a store that fails at once.
/// One that is slow to fail is not waited for, and its unit is as an answer that was lost.
pub(super) const STOP_LIMIT: Duration = Duration::from_secs(5);

/// The task that serves one mailbox.
pub(super) struct Lane {
    number: usize,
    store: Arc<dyn Store>,
    env: Env,
    rng: Rng,
    mailbox: Arc<Mailbox>,
    /// In the order in which they go.
    waiting: VecDeque<Entry>,
    /// The batch under way.
    flying: Vec<Entry>,
    /// Workflows with a unit that fails alone, and all their units: they let the others pass until their time.
    aside: Aside,
    stopped: Option<Monotonic>,
    trouble: Option<Trouble>,
    /// The store's clock as last heard.
    now: Timestamp,
    /// When each kind of failure was last warned of.
    warned: BTreeMap<ErrorKind, Monotonic>,
}

/// Units that are set aside.
#[derive(Default)]
struct Aside {
    ids: BTreeSet<WorkflowId>,
    units: VecDeque<Entry>,
    due: Monotonic,
    pause: Duration,
}

/// Whether a lane rests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// Something waits.
    Busy,
    /// Something was sent in the meantime.
    Sent,
    /// The next unit rings.
    Rests,
    /// The recorder is stopped and all is answered.
    Over,
}

/// Why a wait ended.
enum Woken<T> {
    Ready(T),
    Time,
    Bell,
}

impl Lane {
    pub(super) fn new(number: usize, store: Arc<dyn Store>, mailbox: Arc<Mailbox>) -> Self {
        let env = store.env().clone();
        let rng = env.rng().child("recorder").child(&number.to_string());
        let now = env.now();
        Self {
            number,
            store,
            env,
            rng,
            mailbox,
            waiting: VecDeque::new(),
            flying: Vec::new(),
            aside: Aside::default(),
            stopped: None,
            trouble: None,
            now,
            warned: BTreeMap::new(),
        }
    }

    /// Serves until the recorder is stopped. A panic of the lane itself costs the batch under way and nothing else.
    pub(super) async fn run(mut self) {
        while let Err(panic) = AssertUnwindSafe(self.serve()).catch_unwind().await {
            tracing::error!(lane = self.number, panic = %panic_text(&*panic), "recorder lane panicked");
            let error = StoreError::new(ErrorKind::Bug, "commit").with_source("the recorder panicked");
            self.answer_flying(|_| Err(error.clone()));
            // A panic at every pass must not keep the thread from its other tasks.
            self.env.sleep(PRESSED).await;
        }
    }

    async fn serve(&mut self) {
        loop {
            self.look_in();
            let rest = if self.waiting.is_empty() { self.rest() } else { Rest::Busy };
            match self.next_try() {
                _ if rest == Rest::Over => return,
                // A unit came after the look: it found a busy lane and has not rung.
                _ if rest == Rest::Sent => {}
                Some(due) if due <= self.env.monotonic() && !self.waiting.is_empty() => {
                    self.flying = batch::take(&mut self.waiting);
                    self.fly().await;
                    for _ in 0..GATHER_YIELDS {
                        yield_now().await;
                    }
                }
                due => {
                    self.wait(due, pin!(pending::<()>())).await;
                }
            }
        }
    }

    /// Takes over what was sent, and answers what cannot wait any longer.
    fn look_in(&mut self) {
        let mut sent = {
            let mut mail = self.mailbox.lock();
            mail.resting = false;
            self.stopped = mail.stopped;
            std::mem::take(&mut mail.inbox)
        };
        if self.stopped.is_some() {
            for entry in sent.iter_mut().filter(|entry| entry.late) {
                entry.answer(Err(stopped()));
            }
        }
        for entry in sent.into_iter().filter(Entry::is_open) {
            let aside = self.aside.ids.contains(&entry.id);
            if aside { self.aside.units.push_back(entry) } else { self.waiting.push_back(entry) }
        }
        let now = self.env.monotonic();
        let error = self.last_error();
        for entry in self.all().filter(|entry| entry.is_over(now)) {
            entry.answer(Err(error.clone()));
        }
        self.forget_answered();
        if self.stopped.is_some() || now >= self.aside.due {
            self.bring_back();
        }
    }

    /// Every unit that the lane has, the oldest ones of a workflow first.
    fn all(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.flying.iter_mut().chain(&mut self.aside.units).chain(&mut self.waiting)
    }

    /// What a unit hears whose sender has waited long enough.
    fn last_error(&self) -> StoreError {
        match &self.trouble {
            Some(trouble) => trouble.error.clone(),
            None => StoreError::new(ErrorKind::Timeout, "commit").with_source("no answer in time"),
        }
    }

    /// Drops what has been answered, and tells those who wait for a flush how far the answers are.
    fn forget_answered(&mut self) {
        self.waiting.retain(Entry::is_open);
        self.aside.units.retain(Entry::is_open);
        if self.mailbox.lock().flushing == 0 {
            return;
        }
        let first = self.all().filter(|entry| entry.is_open()).map(|entry| entry.number).min();
        {
            let mut mail = self.mailbox.lock();
            let first = first.or_else(|| mail.inbox.front().map(|entry| entry.number));
            mail.answered = first.unwrap_or(mail.sent);
        }
        self.mailbox.answered.notify_waiters();
    }

    /// Has the next unit ring, as nothing could go now.
    fn rest(&self) -> Rest {
        let mut mail = self.mailbox.lock();
        if !mail.inbox.is_empty() {
            return Rest::Sent;
        }
        mail.resting = true;
        mail.ended = mail.stopped.is_some() && self.aside.units.is_empty();
        if mail.ended { Rest::Over } else { Rest::Rests }
    }

    /// When the store is asked next; never while nothing waits.
    fn next_try(&self) -> Option<Monotonic> {
        if self.waiting.is_empty() {
            return (!self.aside.units.is_empty()).then_some(self.aside.due);
        }
        match &self.trouble {
            Some(trouble) if self.stopped.is_none() => {
                let pressed = self.waiting.iter().any(|entry| entry.deadline.is_some());
                Some(trouble.due(self.aside.ids.len(), pressed))
            }
            _ => Some(Monotonic::default()),
        }
    }

    /// Waits for `ready`, the bell, a time, or the first deadline of a unit.
    async fn wait<T>(&mut self, until: Option<Monotonic>, mut ready: Pin<&mut impl Future<Output = T>>) -> Woken<T> {
        let deadlines = self.all().filter(|entry| entry.is_open()).filter_map(|entry| entry.deadline);
        let first = deadlines.chain(until).min();
        let mut timer = first.map(|at| self.env.sleep_until(at));
        let mut bell = pin!(self.mailbox.bell.notified());
        poll_fn(|cx| {
            if let Poll::Ready(value) = ready.as_mut().poll(cx) {
                return Poll::Ready(Woken::Ready(value));
            }
            if bell.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Woken::Bell);
            }
            match &mut timer {
                Some(timer) => timer.as_mut().poll(cx).map(|()| Woken::Time),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// Commits the batch under way and tells of it.
    async fn fly(&mut self) {
        let units: Vec<Unit> = self.flying.iter_mut().map(|entry| std::mem::take(&mut entry.unit)).collect();
        let result = self.ask(&units).await;
        self.look_in();
        match result {
            Ok(committed) if committed.units.len() == units.len() => self.committed(committed),
            Ok(_) => self.failed(StoreError::new(ErrorKind::Bug, "commit").with_source("answers are missing"), units),
            Err(error) => self.failed(error, units),
        }
    }

    /// The store's answer, while deadlines pass and a stop is heard of.
    async fn ask(&mut self, units: &[Unit]) -> Result<Committed, StoreError> {
        let store = self.store.clone();
        let mut call = pin!(AssertUnwindSafe(async { store.commit(units).await }).catch_unwind());
        loop {
            let limit = self.stopped.map(|at| at + STOP_LIMIT);
            match self.wait(limit, call.as_mut()).await {
                Woken::Ready(result) => return result.unwrap_or_else(|panic| Err(store_panicked(&*panic))),
                Woken::Time | Woken::Bell => self.look_in(),
            }
            if self.stopped.is_some_and(|at| at + STOP_LIMIT <= self.env.monotonic()) {
                return Err(StoreError::new(ErrorKind::Timeout, "commit").with_source("stopped before the answer"));
            }
        }
    }

    fn committed(&mut self, committed: Committed) {
        self.now = committed.now;
        if let Some(trouble) = self.trouble.take()
            && self.warned.values().any(|at| *at >= trouble.since)
        {
            let lasted = self.env.monotonic().since(trouble.since);
            tracing::info!(lane = self.number, ?lasted, failures = trouble.failures, "store commits again");
        }
        if self.flying.first().is_some_and(|entry| entry.doubtful) {
            self.aside.pause = Duration::ZERO;
        }
        let mut answers = committed.units.into_iter();
        let now = committed.now;
        self.answer_flying(|_| match answers.next() {
            Some(answer) => answer.map(|reply| Answer { now, reply }),
            None => Err(StoreError::new(ErrorKind::Bug, "commit")),
        });
    }

    /// Answers all of the batch under way, in order.
    fn answer_flying(&mut self, mut answer: impl FnMut(&Entry) -> Result<Answer, StoreError>) {
        for entry in &mut self.flying {
            let answer = answer(entry);
            entry.answer(answer);
        }
        self.flying.clear();
        self.forget_answered();
    }

    /// Nothing is known of any unit of the batch: those that can wait go back to the front, in order.
    fn failed(&mut self, error: StoreError, units: Vec<Unit>) {
        self.note_trouble(&error);
        let (kind, now, stops) = (error.kind(), self.now, self.stopped.is_some());
        let alone = self.flying.len() == 1;
        // One unit among several may be to blame: each goes alone then, and only the last try of each counts.
        let divides = is_doubtful(kind) && !alone;
        for (mut entry, unit) in std::mem::take(&mut self.flying).into_iter().zip(units).rev() {
            let unknown = !unit.repeatable() && !is_undone(kind);
            let gives_up = !divides && (stops || (is_grave(kind) && entry.deadline.is_some()));
            (entry.unit, entry.doubtful) = (unit, entry.doubtful || divides);
            if unknown {
                entry.answer(Ok(Answer { now, reply: UnitReply::Unknown }));
            } else if gives_up {
                entry.answer(Err(error.clone()));
            }
            self.waiting.push_front(entry);
        }
        // The store's own state, whatever the unit: who does not wait for ever need not be tried.
        let (all, pressed) = (stops && !is_doubtful(kind), is_grave(kind) && !is_doubtful(kind));
        for entry in self.waiting.iter_mut().filter(|entry| all || (pressed && entry.deadline.is_some())) {
            entry.answer(Err(error.clone()));
        }
        if is_doubtful(kind) && alone {
            self.set_aside();
        }
        self.forget_answered();
    }

    /// Sets the workflow of the first unit aside, so that what its units do to the store stops nobody else.
    fn set_aside(&mut self) {
        let Some(id) = self.waiting.front().filter(|entry| entry.is_open()).map(|entry| entry.id.clone()) else {
            return;
        };
        let (aside, others): (VecDeque<_>, _) = self.waiting.drain(..).partition(|entry| entry.id == id);
        self.waiting = others;
        self.aside.units.extend(aside);
        self.aside.ids.insert(id);
        self.aside.pause = self.aside.pause.saturating_mul(2).clamp(GRAVE.0, GRAVE.1);
        self.aside.due = self.env.monotonic() + self.rng.jitter(self.aside.pause, JITTER.0, JITTER.1);
    }

    /// Lets the units that were set aside go first, each alone.
    fn bring_back(&mut self) {
        for mut entry in self.aside.units.drain(..).rev() {
            entry.doubtful = true;
            self.waiting.push_front(entry);
        }
        self.aside.ids.clear();
    }

    fn note_trouble(&mut self, error: &StoreError) {
        let now = self.env.monotonic();
        let trouble = Trouble::after(self.trouble.take(), error.clone(), now, &self.rng);
        // A missing right is another thing to mend than the outage before it.
        if self.warned.get(&error.kind()).is_none_or(|at| now.since(*at) >= WARN_EVERY) {
            self.warned.insert(error.kind(), now);
            let (failures, units) = (trouble.failures, self.all().count());
            tracing::warn!(lane = self.number, %error, failures, units, "store does not commit, units wait");
        }
        self.trouble = Some(trouble);
    }
}

impl Drop for Lane {
    /// However the lane ends, nobody waits for it in vain.
    fn drop(&mut self) {
        let sent = {
            let mut mail = self.mailbox.lock();
            mail.ended = true;
            std::mem::take(&mut mail.inbox)
        };
        self.waiting.extend(sent);
        for entry in self.all() {
            entry.answer(Err(stopped()));
        }
        self.mailbox.lock().answered = u64::MAX;
        self.mailbox.answered.notify_waiters();
    }
}

fn store_panicked(panic: &(dyn Any + Send)) -> StoreError {
    StoreError::new(ErrorKind::Bug, "commit").with_source(format!("store panicked: {}", panic_text(panic)))
}

/// The text a panic was raised with.
fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a value that is not text")
}
