//! The one workflow function: it does what its program says.

use std::future::{Future, IntoFuture, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::task::Poll;
use std::time::Duration;

use mainstay_env::{BoxFuture, Env, yield_now};
use mainstay_runtime::{
    Attempt, Call, Ctx, Error, ErrorKind, Handle, Invocation, Named, Result, Spawned, Start, StepCall,
};

use super::ledger::{Ledger, Tag, Who};
use super::program::{Child, Dropped, FOREVER, Op, Place, Program, Stopper, Wait, Wins, Work};

/// Name of the function.
pub(crate) const NAME: &str = "program";
/// A queue without limits.
pub(crate) const JOBS: &str = "jobs";
/// A queue that runs few at once.
pub(crate) const NARROW: &str = "narrow";

/// What each thing came to, in order.
pub(crate) type Lines = Vec<String>;

/// What a process lends to its bodies.
#[derive(Clone)]
pub(crate) struct Probe {
    pub(crate) env: Env,
    pub(crate) run: Arc<str>,
    pub(crate) ledger: Ledger,
}

/// A call of a program.
pub(crate) fn call(program: &Program) -> Invocation<Named<Lines>> {
    Invocation::named(NAME).arg(program).returning()
}

/// The workflow function.
pub(crate) async fn body(probe: Probe, ctx: Ctx, program: Program) -> Result<Lines> {
    let who = Who { run: probe.run.clone(), id: ctx.workflow_id().clone(), attempt: ctx.attempt() };
    let _alive = probe.ledger.begin(&who);
    let frame = Frame { probe, ctx, who: Arc::new(who), next: Arc::new(AtomicI32::new(0)) };
    let lines = frame.all(program.ops).await;
    match program.fails {
        false => Ok(lines),
        true => Err(Error::named("Ended", format!("badly after {} things", lines.len())).with_data(&lines)),
    }
}

/// The body or a branch of it: a context, and the position that its next call must take.
#[derive(Clone)]
struct Frame {
    probe: Probe,
    ctx: Ctx,
    who: Arc<Who>,
    next: Arc<AtomicI32>,
}

/// What is awaited at the end of a body.
enum Later {
    Child(Handle<Lines>),
    Branch(Spawned<Lines>),
}

impl Frame {
    fn all(self, ops: Vec<Op>) -> BoxFuture<'static, Lines> {
        Box::pin(async move {
            let (mut lines, mut later) = (Vec::new(), Vec::new());
            for op in ops {
                self.probe.ledger.runs(&self.who);
                if self.ctx.is_replaying() {
                    self.probe.ledger.note("call: replayed");
                }
                self.one(op, &mut lines, &mut later).await;
            }
            for later in later {
                lines.push(match later {
                    Later::Child(handle) => {
                        self.take(Tag::Exact);
                        self.show(&handle.result().await)
                    }
                    Later::Branch(branch) => self.show(&branch.await),
                });
            }
            lines
        })
    }

    async fn one(&self, op: Op, lines: &mut Lines, later: &mut Vec<Later>) {
        let ledger = &self.probe.ledger;
        match op {
            Op::Step(work) => {
                ledger.note(if work.fails { "call: failing step" } else { "call: step" });
                lines.push(self.show(&self.step(work).await));
            }
            Op::Retry { failures, retries, hangs, value } => {
                ledger.note("call: step with retries");
                lines.push(self.show(&self.retry(failures, retries, hangs, value).await));
            }
            Op::Big(bytes) => {
                ledger.note("call: step with a large value");
                lines.push(self.show(&self.big(bytes).await.map(|text| text.len())));
            }
            Op::Sleep(millis) => {
                ledger.note("call: sleep");
                self.take(Tag::Sleep);
                lines.push(self.show(&self.ctx.sleep(ms(millis)).await));
            }
            Op::Child(child) => self.child(child, lines, later).await,
            Op::Run(program) => {
                ledger.note("call: run");
                self.take(Tag::Exact);
                self.take(Tag::Exact);
                lines.push(self.show(&self.ctx.run(call(&program)).await));
            }
            Op::Branch { ops, now } => {
                ledger.note("call: branch");
                let branch = self.branch(ops);
                match now {
                    true => lines.push(self.show(&branch.await)),
                    false => later.push(Later::Branch(branch)),
                }
            }
            Op::Join(works) => {
                ledger.note("call: join");
                let calls = works.into_iter().map(|work| self.step(work)).collect();
                let results = join(calls, &self.probe.env).await;
                lines.extend(results.iter().map(|result| self.show(result)));
            }
            Op::Race(wins) => lines.push(self.race(wins).await),
            Op::Dropped(what) => self.dropped(what).await,
            Op::Nested { value, inner } => {
                ledger.note("call: step with calls inside");
                lines.push(self.show(&self.nested(value, inner).await));
            }
            Op::Stopped(how) => self.stopped(how, lines).await,
        }
    }

    /// Says what comes at the next position.
    fn take(&self, tag: Tag) -> i32 {
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        self.probe.ledger.tag(&self.who, at, tag);
        at
    }

    fn show<T: std::fmt::Debug>(&self, result: &Result<T>) -> String {
        self.probe.ledger.runs(&self.who);
        match result {
            Ok(value) => format!("{value:?}"),
            Err(error) => {
                self.probe.ledger.judge(&self.who, error);
                let (name, message) = (error.name(), error.message());
                format!("{:?} {name}: {message} {:?} {:?}", error.kind(), error.code(), error.data())
            }
        }
    }

    fn step(&self, work: Work) -> StepCall<'static, i64> {
        self.step_tagged(work, Tag::Exact)
    }

    fn step_tagged(&self, work: Work, tag: Tag) -> StepCall<'static, i64> {
        let at = self.take(tag);
        let frame = self.clone();
        self.ctx.step(format!("work {}", work.value), move |attempt: Attempt| frame.clone().work(work, at, attempt))
    }

    async fn work(self, work: Work, at: i32, attempt: Attempt) -> Result<i64> {
        let inside = self.enter(at, &attempt);
        for _ in 0..work.yields {
            yield_now().await;
        }
        if work.naps > 0 {
            self.probe.env.sleep(ms(work.naps)).await;
        }
        inside.finish();
        match work.fails {
            false => Ok(work.value),
            true => Err(Error::named("Oops", format!("no {}", work.value)).with_code(work.value).with_data([at])),
        }
    }

    /// The body of a step has begun: at the position that its call took.
    fn enter(&self, at: i32, attempt: &Attempt) -> super::ledger::Inside {
        let wanted = format!("{}-{at}", self.who.id);
        if attempt.key != wanted {
            self.probe.ledger.violation(format!("{} is the call {wanted} of its program", attempt.key));
        }
        self.probe.ledger.step(&self.who, at, attempt.number)
    }

    fn retry(&self, failures: u32, retries: u32, hangs: bool, value: i64) -> StepCall<'static, i64> {
        let at = self.take(Tag::Exact);
        let frame = self.clone();
        let body = move |attempt: Attempt| {
            let frame = frame.clone();
            async move {
                let inside = frame.enter(at, &attempt);
                if attempt.number <= failures {
                    if hangs {
                        std::future::pending::<()>().await;
                    }
                    return Err(Error::named("Again", format!("attempt {}", attempt.number)));
                }
                yield_now().await;
                inside.finish();
                Ok(value)
            }
        };
        let step = self.ctx.step(format!("retry {value}"), body).retries(retries).backoff(ms(20)).max_backoff(ms(100));
        step.timeout(ms(500))
    }

    fn big(&self, bytes: usize) -> StepCall<'static, String> {
        let at = self.take(Tag::Exact);
        let frame = self.clone();
        self.ctx.step("big", move |attempt: Attempt| {
            let inside = frame.enter(at, &attempt);
            async move {
                inside.finish();
                Ok("x".repeat(bytes))
            }
        })
    }

    async fn nested(&self, value: i64, inner: Option<Program>) -> Result<String> {
        let at = self.take(Tag::Exact);
        let frame = self.clone();
        let body = move |attempt: Attempt| {
            let (frame, inner) = (frame.clone(), inner.clone());
            async move {
                let inside = frame.enter(at, &attempt);
                let got: i64 = frame.ctx.step("inner", || async { Ok(value + 1) }).await?;
                frame.ctx.sleep(ms(5)).await?;
                let told = match inner {
                    Some(program) => frame.inner(at, program).await?,
                    None => String::new(),
                };
                inside.finish();
                Ok(format!("{got} {told}"))
            }
        };
        self.ctx.step(format!("nested {value}"), body).await
    }

    /// A workflow that a step starts and waits for; the step tries again while the store is away.
    async fn inner(&self, at: i32, program: Program) -> Result<String> {
        self.probe.ledger.note("call: start inside a step");
        let id = format!("{}-in-{at}", self.who.id);
        let handle = loop {
            match self.ctx.start(call(&program)).id(id.as_str()).await {
                Err(error) if error.kind() == ErrorKind::Unavailable => {}
                other => break other?,
            }
        };
        Ok(self.show(&handle.result().await))
    }

    fn branch(&self, ops: Vec<Op>) -> Spawned<Lines> {
        const BLOCK: u32 = 1024;
        let inner = ops.iter().filter(|op| matches!(op, Op::Branch { .. })).count();
        let positions = BLOCK * (1 + inner as u32);
        let from = self.next.fetch_add(positions as i32, Ordering::Relaxed);
        let (probe, who) = (self.probe.clone(), self.who.clone());
        let branch = self.ctx.spawn(move |ctx| async move {
            let frame = Frame { probe, ctx, who, next: Arc::new(AtomicI32::new(from)) };
            Ok(frame.all(ops).await)
        });
        if inner > 0 { branch.positions(positions) } else { branch }
    }

    async fn race(&self, wins: Wins) -> String {
        let (work, sleep, tags) = match wins {
            Wins::Step(work) => (Some(work), FOREVER, [Tag::Exact, Tag::Maybe, Tag::Exact]),
            Wins::Sleep(millis) => (None, ms(millis), [Tag::Absent, Tag::Sleep, Tag::Exact]),
            Wins::Either { naps, sleeps } => {
                let work = Work { value: 0, yields: 1, naps, fails: false };
                (Some(work), ms(sleeps), [Tag::Free; 3])
            }
        };
        let [step_at, _, race_at] = tags.map(|tag| self.take(tag));
        let frame = self.clone();
        let step = self.ctx.step(format!("racer {step_at}"), move |attempt: Attempt| {
            let frame = frame.clone();
            async move {
                match work {
                    Some(work) => frame.work(work, step_at, attempt).await.map(drop),
                    None => {
                        let _inside = frame.enter(step_at, &attempt);
                        std::future::pending().await
                    }
                }
            }
        });
        let sleep = self.ctx.sleep(sleep);
        let won = self.ctx.race([Call::from(step), Call::from(sleep)]).await;
        match (wins, won) {
            (Wins::Either { .. }, Ok((index, ()))) => {
                self.probe.ledger.won(&self.who, race_at, index);
                format!("free@{race_at} {index}")
            }
            (_, won) => {
                self.probe.ledger.note("race: fixed");
                self.show(&won)
            }
        }
    }

    async fn dropped(&self, what: Dropped) {
        let ledger = &self.probe.ledger;
        match what {
            Dropped::Step => {
                ledger.note("dropped: step");
                drop(self.step_tagged(Work { value: -1, yields: 0, naps: 0, fails: false }, Tag::Absent));
            }
            Dropped::Sleep => {
                ledger.note("dropped: sleep");
                self.take(Tag::Absent);
                drop(self.ctx.sleep(FOREVER));
            }
            Dropped::Start => {
                ledger.note("dropped: start");
                self.take(Tag::Absent);
                drop(self.ctx.start(call(&Program { ops: Vec::new(), fails: false })));
            }
            Dropped::StepInside => {
                ledger.note("dropped: step that has begun");
                let step = self.step_tagged(Work { value: -2, yields: 0, naps: 1_000_000, fails: false }, Tag::Absent);
                poll_once(step.into_future()).await;
            }
            Dropped::SleepInside => {
                ledger.note("dropped: sleep that has begun");
                self.take(Tag::Maybe);
                poll_once(self.ctx.sleep(FOREVER).into_future()).await;
            }
        }
    }

    fn start(&self, program: &Program, place: Place) -> Start<Named<Lines>> {
        let start = self.ctx.start(call(program));
        self.take(Tag::Exact);
        let (label, start) = match place {
            Place::Here => ("call: start here", start),
            Place::Jobs => ("call: start on a queue", start.queue(JOBS)),
            Place::Delayed(millis) => ("call: delayed start", start.queue(JOBS).delay(ms(millis))),
            Place::Narrow => ("call: start on a narrow queue", start.queue(NARROW)),
        };
        self.probe.ledger.note(label);
        start
    }

    async fn child(&self, child: Child, lines: &mut Lines, later: &mut Vec<Later>) {
        let handle = match self.start(&child.program, child.place).await {
            Ok(handle) => handle,
            Err(error) => return lines.push(self.show::<()>(&Err(error))),
        };
        if child.asks {
            self.probe.ledger.note("call: status");
            self.take(Tag::Status);
            if let Err(error) = handle.status().await {
                lines.push(self.show::<()>(&Err(error)));
            }
        }
        match child.wait {
            Wait::Now => {
                self.take(Tag::Exact);
                lines.push(self.show(&handle.result().await));
                if child.asks {
                    self.take(Tag::Exact);
                    lines.push(self.show(&handle.status().await));
                }
            }
            Wait::Later => later.push(Later::Child(handle)),
            Wait::Never => {}
        }
    }

    /// A child that would sleep for ever, and what ends it.
    async fn stopped(&self, how: Stopper, lines: &mut Lines) {
        let sleeper = Program { ops: vec![Op::Sleep(FOREVER.as_millis() as u64)], fails: false };
        let place = if let Stopper::Cancel(place) = how { place } else { Place::Here };
        let start = self.start(&sleeper, place);
        let start = if let Stopper::Deadline(millis) = how { start.timeout(ms(millis)) } else { start };
        let handle = match start.await {
            Ok(handle) => handle,
            Err(error) => return lines.push(self.show::<()>(&Err(error))),
        };
        if let Stopper::Impatience(millis) = how {
            self.probe.ledger.note("call: limited wait");
            let (_, _) = (self.take(Tag::Exact), self.take(Tag::Sleep));
            lines.push(self.show(&handle.result().timeout(ms(millis)).await));
        }
        if matches!(how, Stopper::Deadline(_)) {
            self.probe.ledger.note("call: start with a deadline");
        } else {
            self.probe.ledger.note("call: cancel");
            self.take(Tag::Exact);
            lines.push(self.show(&handle.cancel().await));
        }
        self.take(Tag::Exact);
        lines.push(self.show(&handle.result().await));
    }
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Polls a future once, and drops it.
async fn poll_once<T>(future: impl Future<Output = T>) {
    let mut future = pin!(future);
    poll_fn(|cx| {
        // Whether it is ready is the same to its dropper.
        let _ = future.as_mut().poll(cx);
        Poll::Ready(())
    })
    .await;
}

/// Runs steps side by side; each poll takes them in another order.
async fn join(calls: Vec<StepCall<'static, i64>>, env: &Env) -> Vec<Result<i64>> {
    let mut running: Vec<_> = calls.into_iter().map(|call| Some(call.into_future())).collect();
    let mut results: Vec<Option<Result<i64>>> = running.iter().map(|_| None).collect();
    let mut order: Vec<usize> = (0..running.len()).collect();
    poll_fn(|cx| {
        env.rng().shuffle(&mut order);
        for at in &order {
            let Some(future) = running[*at].as_mut() else { continue };
            if let Poll::Ready(result) = future.as_mut().poll(cx) {
                (running[*at], results[*at]) = (None, Some(result));
            }
        }
        if running.iter().all(Option::is_none) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    results.into_iter().flatten().collect()
}
