//! The supervisor: ticks, beats, publishes the set of queues, spawns workers, hands wakeups on, and replaces a lost lease.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use mainstay_env::{Monotonic, Timestamp};
use mainstay_store::{Beaten, RegistryStamp, StoreError, Subscription, Tick, Ticked, Wakeup};

use crate::config::Config;
use crate::lane::LaneInput;
use crate::mail::{Call, poll_call};
use crate::pulse::{Pulse, PulseEffect, PulseInput};
use crate::queue_set::{QueueSet, SetEffect, SetInput};
use crate::renewal;
use crate::shared::{Errand, Note, Shared};
use crate::watch::Watch;
use crate::worker;

/// A difference of clocks that is told of: more than any that are set by a network has.
const SKEW: Duration = Duration::from_secs(5);

/// What survives the death of a supervisor.
#[derive(Debug)]
pub(crate) struct Ward {
    pub(crate) set: QueueSet,
    watch: Watch,
    pulse: Pulse,
    seen: Option<RegistryStamp>,
    failing: bool,
    /// Whether a difference of the clocks has been told of.
    skewed: bool,
}

impl Ward {
    pub(crate) fn new(now: Monotonic, config: &Config) -> Self {
        Self {
            set: QueueSet::new(config.listen.as_deref()),
            watch: Watch::new(config.ttl, config.tick),
            pulse: Pulse::new(now, config.tick, config.beat),
            seen: None,
            failing: false,
            skewed: false,
        }
    }
}

enum Event {
    Ticked(Box<Result<Ticked, StoreError>>),
    Beaten(Result<Beaten, StoreError>),
    Renewed,
    Noted,
    Woken(Wakeup),
    Time,
}

/// Runs until the engine stops its tasks.
pub(crate) async fn run(shared: Arc<Shared>) {
    let hints = shared.store.wakeups().subscribe();
    let tick_sent = shared.env.now();
    let mut supervisor = Supervisor {
        shared,
        hints,
        tick: None,
        beat: None,
        renewal: None,
        tick_sent,
        tick_epoch: 0,
        beat_epoch: 0,
        until: None,
    };
    supervisor.resume();
    loop {
        match supervisor.event().await {
            Event::Ticked(answer) => supervisor.ticked(*answer),
            Event::Beaten(answer) => supervisor.beaten(answer),
            Event::Renewed => supervisor.renewed(),
            Event::Noted => supervisor.read_notes(),
            Event::Woken(wakeup) => supervisor.woken(&wakeup),
            Event::Time => supervisor.look(),
        }
    }
}

struct Supervisor {
    shared: Arc<Shared>,
    hints: Subscription,
    tick: Call<Result<Ticked, StoreError>>,
    beat: Call<Result<Beaten, StoreError>>,
    renewal: Call<()>,
    /// When the latest tick was sent, by this machine's clock.
    tick_sent: Timestamp,
    /// The leases that the beats which are out belong to.
    tick_epoch: u64,
    beat_epoch: u64,
    until: Option<Monotonic>,
}

impl Supervisor {
    async fn event(&mut self) -> Event {
        let mut noted = pin!(self.shared.notes.wait());
        let mut woken = pin!(self.hints.next());
        let mut timer = self.shared.env.sleep_until(self.until.unwrap_or(Monotonic::NEVER));
        let (tick, beat, renewal) = (&mut self.tick, &mut self.beat, &mut self.renewal);
        poll_fn(|cx| {
            if let Poll::Ready(answer) = poll_call(beat, cx) {
                return Poll::Ready(Event::Beaten(answer));
            }
            if let Poll::Ready(answer) = poll_call(tick, cx) {
                return Poll::Ready(Event::Ticked(Box::new(answer)));
            }
            if poll_call(renewal, cx).is_ready() {
                return Poll::Ready(Event::Renewed);
            }
            if noted.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Event::Noted);
            }
            // The timer before the hints: a flood of them must not hold up a beat.
            if timer.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Event::Time);
            }
            woken.as_mut().poll(cx).map(Event::Woken)
        })
        .await
    }

    fn ward(&self) -> MutexGuard<'_, Ward> {
        self.shared.ward.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes up what an earlier supervisor left: calls that nobody awaits, workers that ended unheard, hints that were missed.
    fn resume(&mut self) {
        let unheard: Vec<_> = {
            let ward = self.ward();
            let dead = |name: &_| !self.shared.lanes.get(name).is_some_and(|cell| cell.is_alive());
            ward.set.workers().filter(|name| dead(name)).cloned().collect()
        };
        for queue in unheard {
            self.set(SetInput::Ended(queue));
        }
        if !self.shared.identity(|identity| identity.leased) {
            self.renewal = Some(Box::pin(renewal::open(self.shared.clone())));
        }
        self.shared.lanes.post_all(&LaneInput::Wakeup);
        self.set(SetInput::Unread);
        self.pulse(PulseInput::Restarted);
    }

    fn look(&mut self) {
        self.set(SetInput::Unread);
        self.pulse(PulseInput::Look);
    }

    fn ticked(&mut self, answer: Result<Ticked, StoreError>) {
        let ticked = match answer {
            Ok(ticked) => ticked,
            Err(error) => {
                self.shared.failed("tick", None, &error);
                self.shared.counters.lock().failed_ticks += 1;
                self.ward().failing = true;
                return self.pulse(PulseInput::TickFailed);
            }
        };
        self.shared.answered("tick", None);
        self.compare_clocks(ticked.now);
        if ticked.beat == Some(Beaten::Gone) {
            self.lose(self.tick_epoch);
        }
        let (recovered, dead) = {
            let own = self.shared.identity(|identity| identity.executor.clone());
            let now = self.shared.env.monotonic();
            let mut ward = self.ward();
            ward.seen = Some(ticked.stamp);
            (std::mem::take(&mut ward.failing), ward.watch.read(now, &own, &ticked.leases))
        };
        for dead in dead {
            self.shared.errands.post(Errand::TakeOver(dead));
        }
        if let Some(queues) = ticked.queues {
            self.set(SetInput::Read { queues, malformed: ticked.malformed });
        }
        if recovered {
            self.shared.lanes.post_all(&LaneInput::Recovered);
        }
        // Known without a hint from the store, which may publish none.
        for queue in &ticked.released {
            self.shared.lanes.post(queue, LaneInput::Wakeup);
        }
        self.pulse(PulseInput::Ticked(ticked.next_due));
    }

    /// Tells once of a clock that is far from the store's, by which everything goes; logs and traces do not agree then.
    fn compare_clocks(&self, store: Timestamp) {
        let (sent, heard) = (self.tick_sent, self.shared.env.now());
        let off = store.since(heard).max(sent.since(store));
        if off > SKEW && !std::mem::replace(&mut self.ward().skewed, true) {
            let executor = self.shared.identity(|identity| identity.executor.clone());
            tracing::warn!(%executor, ?off, own = %heard, %store, "clock differs from that of the store, which counts");
        }
    }

    fn beaten(&mut self, answer: Result<Beaten, StoreError>) {
        match answer {
            Ok(beaten) => {
                self.shared.answered("lease_beat", None);
                if beaten == Beaten::Gone {
                    self.lose(self.beat_epoch);
                }
                self.pulse(PulseInput::Beaten);
            }
            Err(error) => {
                self.shared.failed("lease_beat", None, &error);
                self.pulse(PulseInput::BeatFailed);
            }
        }
    }

    fn woken(&mut self, wakeup: &Wakeup) {
        match wakeup {
            Wakeup::Queue(queue) => self.shared.lanes.post(queue, LaneInput::Wakeup),
            Wakeup::Registry => self.pulse(PulseInput::Hint),
            Wakeup::All => {
                self.shared.lanes.post_all(&LaneInput::Wakeup);
                self.pulse(PulseInput::Hint);
            }
            _ => {}
        }
    }

    fn read_notes(&mut self) {
        for note in self.shared.notes.take() {
            match note {
                Note::Ended(queue) => {
                    self.set(SetInput::Ended(queue.clone()));
                    self.shared.lanes.close(&queue);
                }
                Note::Unleased(epoch) => self.unleased(epoch),
                Note::Stop => self.set(SetInput::Stop),
            }
        }
        self.pulse(PulseInput::Look);
    }

    fn unleased(&mut self, epoch: u64) {
        self.lose(epoch);
        if self.shared.is_leased() {
            // An older lease was meant: the lane that said so waits for a new one, which is there.
            self.shared.lanes.post_all(&LaneInput::Renewed);
        }
    }

    /// Drops all that runs under the lost lease and begins to open a new one.
    fn lose(&mut self, epoch: u64) {
        if renewal::lose(&self.shared, epoch) {
            self.beat = None;
            self.pulse(PulseInput::Lost);
            self.renewal = Some(Box::pin(renewal::open(self.shared.clone())));
        }
    }

    fn renewed(&mut self) {
        self.shared.lanes.post_all(&LaneInput::Renewed);
        self.shared.errands.post(Errand::Renewed);
        self.pulse(PulseInput::Renewed);
    }

    fn set(&mut self, input: SetInput) {
        let now = self.shared.env.monotonic();
        let effects = self.ward().set.step(now, input);
        for effect in effects {
            match effect {
                SetEffect::Publish(queue, plan) => self.shared.lanes.post(&queue, LaneInput::Published(plan)),
                SetEffect::WarnReserved => tracing::warn!("a stored queue has the reserved name and is left alone"),
                SetEffect::Spawn { queue, plan, again } => {
                    self.shared.counters.lock().worker_restarts += u64::from(again);
                    let cell = self.shared.lanes.open(&queue, self.shared.pace(), plan);
                    cell.set_alive(true);
                    let task = worker::run(self.shared.clone(), cell);
                    // Its group owns it, and its end comes as a note.
                    drop(self.shared.tasks.spawn(format!("worker/{queue}"), task));
                }
            }
        }
    }

    fn pulse(&mut self, input: PulseInput) {
        let (now, draw) = (self.shared.env.monotonic(), self.shared.draw());
        let (effects, pulse_until, set_until) = {
            let mut ward = self.ward();
            let (effects, until) = ward.pulse.step(now, draw, input);
            (effects, until, ward.set.until())
        };
        self.until = Some(set_until.map_or(pulse_until, |until| until.min(pulse_until)));
        for effect in effects {
            match effect {
                PulseEffect::Tick { beat } => self.send_tick(beat),
                PulseEffect::Beat => self.send_beat(),
                PulseEffect::DropTick => {
                    self.tick = None;
                    self.shared.timed_out("tick");
                    self.shared.counters.lock().failed_ticks += 1;
                    self.ward().failing = true;
                }
                PulseEffect::DropBeat => {
                    self.beat = None;
                    self.shared.timed_out("lease_beat");
                }
            }
        }
    }

    fn send_tick(&mut self, beat: bool) {
        let mut request = Tick::new(self.shared.config.app.clone());
        request.seen = self.ward().seen;
        if beat {
            let (beat, epoch) = self.shared.next_beat();
            self.tick_epoch = epoch;
            request = request.beat(beat);
        }
        self.shared.counters.lock().ticks += 1;
        let store = self.shared.store.clone();
        self.tick_sent = self.shared.env.now();
        self.tick = Some(Box::pin(async move { store.tick(request).await }));
    }

    fn send_beat(&mut self) {
        let (beat, epoch) = self.shared.next_beat();
        self.beat_epoch = epoch;
        let store = self.shared.store.clone();
        self.beat = Some(Box::pin(async move { store.lease_beat(beat).await }));
    }
}
