//! The worker of one queue: feeds its lane and does what the lane says.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use mainstay_env::Monotonic;
use mainstay_store::{Claimed, ErrorKind, StoreError};

use crate::lane::{LaneEffect, LaneInput, LaneOutput, Standing};
use crate::lanes::{Kept, LaneCell, Sent};
use crate::mail::{Call, poll_call};
use crate::shared::{Errand, Note, Shared};

/// A claim that is out longer gives the places that it keeps back, so that a hanging call costs other queues nothing.
const KEEP: Duration = Duration::from_secs(5);
/// An answer that takes longer is taken for lost, and the claim is sent again as such: over the deadline that the store's
/// wrappers put on one call, though not over two that fail late.
const PATIENCE: Duration = Duration::from_secs(45);

/// What a worker woke up for.
enum Event {
    Answer(Result<Claimed, StoreError>),
    Noted,
    Time,
}

/// Runs the lane until it ends.
pub(crate) async fn run(shared: Arc<Shared>, cell: Arc<LaneCell>) {
    let _end = EndNote { shared: shared.clone(), cell: cell.clone() };
    let mut worker = Worker::new(shared, cell);
    // A claim that an earlier worker left has an answer that nobody heard.
    worker.step(LaneInput::Failed(ErrorKind::Unavailable));
    while !worker.ended {
        match worker.event().await {
            Event::Answer(answer) => worker.answered(answer),
            Event::Noted => worker.read_mail(),
            Event::Time => worker.time(),
        }
    }
}

struct Worker {
    shared: Arc<Shared>,
    cell: Arc<LaneCell>,
    call: Call<Result<Claimed, StoreError>>,
    sent_at: Monotonic,
    kept_until: Option<Monotonic>,
    epoch: u64,
    until: Option<Monotonic>,
    ended: bool,
}

impl Worker {
    fn new(shared: Arc<Shared>, cell: Arc<LaneCell>) -> Self {
        let now = shared.env.monotonic();
        let kept_until = cell.lock().kept.is_some().then(|| now + KEEP);
        Self { shared, cell, call: None, sent_at: now, kept_until, epoch: 0, until: None, ended: false }
    }

    async fn event(&mut self) -> Event {
        let timer_at = self.timer_at();
        let mut noted = pin!(self.cell.mail.wait());
        let mut timer = self.shared.env.sleep_until(timer_at);
        let call = &mut self.call;
        poll_fn(|cx| {
            if noted.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Event::Noted);
            }
            if let Poll::Ready(answer) = poll_call(call, cx) {
                return Poll::Ready(Event::Answer(answer));
            }
            timer.as_mut().poll(cx).map(|()| Event::Time)
        })
        .await
    }

    fn timer_at(&self) -> Monotonic {
        let lost = self.call.as_ref().map(|_| self.sent_at + PATIENCE);
        [self.until, self.kept_until, lost].into_iter().flatten().fold(Monotonic::NEVER, Monotonic::min)
    }

    fn time(&mut self) {
        let now = self.shared.env.monotonic();
        if self.kept_until.is_some_and(|until| until <= now) {
            self.release();
        }
        if self.call.is_some() && now >= self.sent_at + PATIENCE {
            return self.answered(Err(StoreError::new(ErrorKind::Timeout, "queue_claim")));
        }
        self.step(LaneInput::Look);
    }

    /// Gives back the places that the claim keeps.
    fn release(&mut self) {
        self.kept_until = None;
        let kept = self.cell.lock().kept.take();
        drop(kept);
    }

    fn read_mail(&mut self) {
        for input in self.cell.mail.take() {
            if input == LaneInput::Lost {
                self.abandon();
            }
            self.step(input);
        }
    }

    fn answered(&mut self, answer: Result<Claimed, StoreError>) {
        self.call = None;
        match answer {
            Ok(claimed) => {
                self.shared.answered("queue_claim", Some(&self.cell.queue));
                let stop = claimed.stop.clone();
                self.shared.dispatch(&self.cell, claimed);
                self.settle();
                self.step(LaneInput::Replied(stop));
            }
            Err(error) => {
                let kind = error.kind();
                self.shared.failed("queue_claim", Some(&self.cell.queue), &error);
                self.shared.counters.lock().failed_claims += 1;
                if !kind.outcome_unknown() {
                    self.settle();
                }
                self.step(LaneInput::Failed(kind));
            }
        }
        self.shared.lanes.settled.notify_waiters();
    }

    /// The claim is over: its token is no longer outstanding and its places are free.
    fn settle(&mut self) {
        self.release();
        self.cell.lock().sent = None;
    }

    /// Drops the claim: whatever it brings was claimed under the old lease.
    fn abandon(&mut self) {
        self.call = None;
        self.settle();
    }

    fn step(&mut self, input: LaneInput) {
        if self.shared.is_stopping() {
            self.step_lane(LaneInput::Stop);
        }
        if !self.shared.is_leased() {
            // A lane may be younger than the loss, and a word of a new lease older than it.
            self.abandon();
            self.step_lane(LaneInput::Lost);
            if input == LaneInput::Renewed {
                return;
            }
        }
        self.step_lane(input);
    }

    /// One step under the lock of the counts, so that the room that the lane sees is the room that its claim keeps.
    fn step_lane(&mut self, input: LaneInput) {
        let shared = self.shared.clone();
        let (output, wakes, _unkept) = {
            let mut state = self.cell.lock();
            let mut tally = shared.counts.lock();
            let room = tally.room(&self.cell.queue);
            let output = state.lane.step(shared.env.monotonic(), room, shared.draw(), input);
            let (mut wakes, mut unkept) = (None, None);
            match output.standing {
                Standing::Leave => wakes = Some(tally.leave(&self.cell.queue)),
                Standing::Wait => tally.wait(&self.cell.queue),
                Standing::Keep => {}
            }
            if let Some(budget) = new_claim(&output) {
                tally.reserve(&self.cell.queue, budget);
                let (mut request, epoch) = shared.new_claim(&self.cell.queue);
                request = request.budget(budget).local(tally.local(&self.cell.queue));
                request.revision = state.lane.plan().and_then(|plan| plan.revision);
                state.sent = Some(Sent { request, epoch });
                unkept = state.kept.replace(Kept::new(shared.counts.clone(), budget));
            }
            (output, wakes, unkept)
        };
        if let Some(wakes) = wakes {
            shared.counts.wake(&wakes);
        }
        self.perform(output);
    }

    fn perform(&mut self, output: LaneOutput) {
        self.until = output.until;
        for effect in output.effects {
            match effect {
                LaneEffect::Claim { repeat, .. } => self.send(repeat),
                LaneEffect::Probe => self.shared.lanes.wanted.notify_one(),
                LaneEffect::Renew => self.shared.notes.post(Note::Unleased(self.epoch)),
                LaneEffect::End => {
                    self.ended = true;
                    self.settle();
                }
            }
        }
    }

    fn send(&mut self, repeat: bool) {
        let Some(Sent { mut request, epoch }) = self.cell.lock().sent.clone() else { return };
        request.repeat = repeat;
        if repeat {
            // What ran when it was first sent may have ended since.
            request.local = self.shared.counts.lock().local(&self.cell.queue);
        }
        self.epoch = epoch;
        {
            let mut counters = self.shared.counters.lock();
            counters.claims += 1;
            counters.repeats += u64::from(repeat);
        }
        self.sent_at = self.shared.env.monotonic();
        if !repeat {
            self.kept_until = Some(self.sent_at + KEEP);
        }
        let store = self.shared.store.clone();
        self.call = Some(Box::pin(async move { store.queue_claim(request).await }));
    }
}

fn new_claim(output: &LaneOutput) -> Option<u32> {
    output.effects.iter().find_map(|effect| match effect {
        LaneEffect::Claim { budget, repeat: false } => Some(*budget),
        _ => None,
    })
}

/// Tells the supervisor of the worker's end, in whatever way it came.
struct EndNote {
    shared: Arc<Shared>,
    cell: Arc<LaneCell>,
}

impl Drop for EndNote {
    fn drop(&mut self) {
        self.cell.set_alive(false);
        let wakes = self.shared.counts.lock().leave(&self.cell.queue);
        self.shared.counts.wake(&wakes);
        self.shared.lanes.settled.notify_waiters();
        self.shared.notes.post(Note::Ended(self.cell.queue.clone()));
        // A claim that nobody hears of any more may hold rows.
        self.shared.errands.post(Errand::Suspect);
    }
}
