//! One lane: takes what waits, commits it, tells of it, and tries again what the store did not answer.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use mainstay_env::{Env, Monotonic, Rng, yield_now};
use mainstay_store::{Committed, ErrorKind, Store, StoreError, Timestamp, Unit, UnitReply};

use super::batch::{self, Entry};
use super::{Answer, Mailbox, stopped};

/// Yields between an answer and the next batch, so that callers who have just been resumed can join it: measured, three bring
/// nearly all of them (group commit on Postgres), and they cost nothing when nobody is there.
const GATHER_YIELDS: usize = 3;

/// Pauses before the first and the longest repeat of what an outage or a conflict stopped. The retry wrapper has waited 2 s
/// before an outage is seen here.
const OUTAGE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// The same for what will hardly pass by itself: no space, no rights, unreadable data, a bug.
const GRAVE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Jitter of a pause, so that processes that lost one store do not come back in step.
const JITTER: (f64, f64) = (0.75, 1.25);

/// Time between two warnings of one lane.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// How long after a stop an answer of the store is waited for: the retry wrapper's 2 s and as much again.
pub(super) const STOP_LIMIT: Duration = Duration::from_secs(5);

/// The task that serves one mailbox.
pub(super) struct Lane {
    number: usize,
    store: Arc<dyn Store>,
    env: Env,
    rng: Rng,
    mailbox: Arc<Mailbox>,
    /// In order, those that failed first.
    waiting: VecDeque<Entry>,
    /// The batch under way.
    flying: Vec<Entry>,
    stopped: Option<Monotonic>,
    trouble: Option<Trouble>,
    /// The store's clock as last heard.
    now: Timestamp,
    warned: Option<Monotonic>,
}

/// A store that does not commit.
struct Trouble {
    error: StoreError,
    failures: u32,
    since: Monotonic,
    /// When the last try ended.
    failed: Monotonic,
    /// How long after that the next one is due, before its jitter.
    base: Duration,
    /// The same with it.
    pause: Duration,
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
            stopped: None,
            trouble: None,
            now,
            warned: None,
        }
    }

    /// Serves until the recorder is stopped. A panic of the lane itself costs the batch under way and nothing else.
    pub(super) async fn run(mut self) {
        while let Err(panic) = AssertUnwindSafe(self.serve()).catch_unwind().await {
            tracing::error!(lane = self.number, panic = %panic_text(&*panic), "recorder lane panicked");
            let error = StoreError::new(ErrorKind::Bug, "commit").with_source("the recorder panicked");
            self.answer_flying(|_| Err(error.clone()));
            // A panic at every pass must not keep the thread from its other tasks.
            self.env.sleep(GRAVE.0).await;
        }
    }

    async fn serve(&mut self) {
        loop {
            self.look_in();
            if self.waiting.is_empty() {
                if self.ends() {
                    return;
                }
                self.wait(None, pin!(std::future::pending::<()>())).await;
                continue;
            }
            if let Some(due) = self.next_try() {
                self.wait(Some(due), pin!(std::future::pending::<()>())).await;
                continue;
            }
            self.flying = batch::take(&mut self.waiting);
            self.fly().await;
            for _ in 0..GATHER_YIELDS {
                yield_now().await;
            }
        }
    }

    /// Takes over what was sent, and answers what cannot wait any longer.
    fn look_in(&mut self) {
        {
            let mut mail = self.mailbox.lock();
            mail.resting = false;
            self.stopped = mail.stopped;
            self.waiting.append(&mut mail.inbox);
        }
        let late = |entry: &Entry| entry.late;
        if self.stopped.is_some() && self.waiting.back().is_some_and(late) {
            for entry in self.waiting.iter_mut().filter(|entry| entry.late) {
                entry.answer(Err(stopped()));
            }
        }
        let now = self.env.monotonic();
        let error = self.last_error();
        for entry in self.flying.iter_mut().chain(&mut self.waiting).filter(|entry| entry.is_over(now)) {
            entry.answer(Err(error.clone()));
        }
        self.waiting.retain(Entry::is_open);
        self.note_answers();
    }

    /// What a unit hears whose sender has waited long enough.
    fn last_error(&self) -> StoreError {
        match &self.trouble {
            Some(trouble) => trouble.error.clone(),
            None => StoreError::new(ErrorKind::Timeout, "commit").with_source("no answer in time"),
        }
    }

    /// Tells those who wait for a flush how far the answers are.
    fn note_answers(&self) {
        let open = self.flying.iter().chain(&self.waiting).find(|entry| entry.is_open()).map(|entry| entry.number);
        {
            let mut mail = self.mailbox.lock();
            let open = open.or_else(|| mail.inbox.front().map(|entry| entry.number)).unwrap_or(mail.sent);
            if mail.answered == open {
                return;
            }
            mail.answered = open;
        }
        self.mailbox.answered.notify_waiters();
    }

    /// Whether the lane is over; otherwise the next unit rings.
    fn ends(&self) -> bool {
        let mut mail = self.mailbox.lock();
        if !mail.inbox.is_empty() {
            return false;
        }
        mail.resting = true;
        mail.ended = mail.stopped.is_some();
        mail.ended
    }

    /// When the store is asked again, unless that is now.
    fn next_try(&self) -> Option<Monotonic> {
        let trouble = self.trouble.as_ref()?;
        // Who cannot wait for ever is not to wait out a long pause, after which it is only told the error.
        let patient = self.waiting.iter().all(|entry| entry.deadline.is_none());
        let pause = if patient { trouble.pause } else { trouble.pause.min(GRAVE.0) };
        let due = trouble.failed + pause;
        (self.stopped.is_none() && due > self.env.monotonic()).then_some(due)
    }

    /// Waits for `ready`, the bell, a time, or the first deadline of a unit.
    async fn wait<T>(&mut self, until: Option<Monotonic>, mut ready: Pin<&mut impl Future<Output = T>>) -> Woken<T> {
        let units = self.flying.iter().chain(&self.waiting).filter(|entry| entry.is_open());
        let first = units.filter_map(|entry| entry.deadline).chain(until).min();
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
        let store = self.store.clone();
        let result = {
            let mut call = pin!(AssertUnwindSafe(store.commit(&units)).catch_unwind());
            loop {
                let limit = self.stopped.map(|at| at + STOP_LIMIT);
                match self.wait(limit, call.as_mut()).await {
                    Woken::Ready(result) => break result.unwrap_or_else(|panic| Err(store_panicked(&*panic))),
                    Woken::Time | Woken::Bell => self.look_in(),
                }
                if self.stopped.is_some_and(|at| at + STOP_LIMIT <= self.env.monotonic()) {
                    break Err(StoreError::new(ErrorKind::Timeout, "commit").with_source("stopped before the answer"));
                }
            }
        };
        self.look_in();
        match result {
            Ok(committed) if committed.units.len() == units.len() => self.committed(committed),
            Ok(_) => {
                self.failed(StoreError::new(ErrorKind::Bug, "commit").with_source("another number of answers"), units)
            }
            Err(error) => self.failed(error, units),
        }
    }

    fn committed(&mut self, committed: Committed) {
        self.now = committed.now;
        if let Some(trouble) = self.trouble.take() {
            let lasted = self.env.monotonic().since(trouble.since);
            if self.warned.is_some_and(|at| at >= trouble.since) {
                tracing::info!(lane = self.number, ?lasted, failures = trouble.failures, "store commits again");
            }
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
        self.note_answers();
    }

    /// Nothing is known of any unit of the batch: those that can wait go back to the front, in order.
    fn failed(&mut self, error: StoreError, units: Vec<Unit>) {
        self.note_trouble(&error);
        let (kind, now) = (error.kind(), self.now);
        let mut kept = Vec::with_capacity(units.len());
        for (mut entry, unit) in std::mem::take(&mut self.flying).into_iter().zip(units) {
            let lost = !unit.repeatable() && !is_undone(kind);
            entry.unit = unit;
            if lost {
                entry.answer(Ok(Answer { now, reply: UnitReply::Unknown }));
            } else if self.stopped.is_some() || (is_grave(kind) && entry.deadline.is_some()) {
                entry.answer(Err(error.clone()));
            }
            kept.push(entry);
        }
        for entry in kept.into_iter().rev().filter(Entry::is_open) {
            self.waiting.push_front(entry);
        }
        let all = self.stopped.is_some();
        // No space and no rights are the store's state, whatever the unit: who cannot wait for ever need not be tried.
        let some = matches!(kind, ErrorKind::Full | ErrorKind::Denied);
        for entry in self.waiting.iter_mut().filter(|entry| all || (some && entry.deadline.is_some())) {
            entry.answer(Err(error.clone()));
        }
        self.waiting.retain(Entry::is_open);
        self.note_answers();
    }

    fn note_trouble(&mut self, error: &StoreError) {
        let (first, longest) = if is_grave(error.kind()) { GRAVE } else { OUTAGE };
        let now = self.env.monotonic();
        let before = self.trouble.take();
        let same = before.as_ref().is_some_and(|before| is_grave(before.error.kind()) == is_grave(error.kind()));
        let (failures, since) = before.as_ref().map_or((1, now), |before| (before.failures + 1, before.since));
        let base = before.filter(|_| same).map_or(first, |before| before.base.saturating_mul(2).min(longest));
        let pause = self.rng.jitter(base, JITTER.0, JITTER.1);
        if self.warned.is_none_or(|at| now.since(at) >= WARN_EVERY) {
            self.warned = Some(now);
            let units = self.flying.len() + self.waiting.len();
            tracing::warn!(lane = self.number, %error, failures, units, "store does not commit, units wait");
        }
        self.trouble = Some(Trouble { error: error.clone(), failures, since, failed: now, base, pause });
    }
}

impl Drop for Lane {
    /// However the lane ends, nobody waits for it in vain.
    fn drop(&mut self) {
        let inbox = {
            let mut mail = self.mailbox.lock();
            mail.ended = true;
            std::mem::take(&mut mail.inbox)
        };
        for entry in self.flying.iter_mut() {
            entry.answer(Err(stopped()));
        }
        for mut entry in self.waiting.drain(..).chain(inbox) {
            entry.answer(Err(stopped()));
        }
        self.note_answers();
    }
}

/// Whether a failure proves that nothing was written.
const fn is_undone(kind: ErrorKind) -> bool {
    use ErrorKind::*;
    matches!(kind, Contended | Denied | Full | Unsupported | Invalid | NotFound)
}

/// Whether a failure will hardly pass by itself.
const fn is_grave(kind: ErrorKind) -> bool {
    !matches!(kind, ErrorKind::Unavailable | ErrorKind::Timeout | ErrorKind::Contended)
}

fn store_panicked(panic: &(dyn std::any::Any + Send)) -> StoreError {
    StoreError::new(ErrorKind::Bug, "commit").with_source(format!("store panicked: {}", panic_text(panic)))
}

/// The text a panic was raised with.
fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a value that is not text")
}
