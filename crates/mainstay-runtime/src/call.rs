//! Durable calls in two halves: run yields a value and what is to be written, commit writes it.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::sync::Arc;

use mainstay_env::BoxFuture;
use mainstay_store::{
    CodecName, Effect, Position, RecordedStep, StepName, StepOutput, StepResult, StepRow, Unit, WorkflowId, wire,
};

use crate::codec::DecodeError;
use crate::error::{Error, Result};
use crate::execution::{Execution, Wrote, unacceptable};
use crate::guard;
use crate::journal::{CallKind, Expect};

/// Reads a recorded form in portable JSON; the outer error says that it cannot be read.
pub(crate) type Read<T> = fn(&StepResult) -> Result<Result<T>, DecodeError>;

/// What the first half of a call came to.
pub(crate) enum Ran<T> {
    /// Nothing is to be written: it was recorded before, or is not recorded at all.
    Now(Result<T>),
    /// The row is to be written, and its recorded form is the value.
    Row(Row<T>),
}

impl<T> Ran<T> {
    /// What a call gives that nothing records; refused where a body awaits it.
    pub(crate) async fn unrecorded(call: &str, work: impl Future<Output = Result<T>>) -> Self {
        match guard::no_body_awaits(call) {
            Ok(()) => Self::Now(work.await),
            Err(error) => Self::Now(Err(error)),
        }
    }

    /// The second half.
    pub(crate) async fn complete(self) -> Result<T> {
        match self {
            Self::Now(result) => result,
            Self::Row(row) => {
                let unit = Unit::by(&row.exec.fence);
                row.commit(unit).await
            }
        }
    }
}

/// A checkpoint that is not written yet.
pub(crate) struct Row<T> {
    pub(crate) exec: Arc<Execution>,
    pub(crate) row: StepRow,
    /// What it does to the store, in the same unit; an answer in the row is the first one's.
    pub(crate) effects: Vec<Effect>,
    /// The workflow that the call awaited.
    pub(crate) awaited: Option<WorkflowId>,
    /// The recorded form, where it is known already.
    pub(crate) value: Option<Result<T>>,
    pub(crate) read: Read<T>,
}

impl<T> Row<T> {
    /// Writes the row, with what else is in `unit`. A row that no store takes is replaced by a failure that says so.
    pub(crate) async fn commit(self, unit: Unit) -> Result<T> {
        let Self { exec, mut row, mut effects, awaited, mut value, read } = self;
        let mut replaced = false;
        let (stored, codec) = loop {
            let whole = std::mem::take(&mut effects).into_iter().fold(unit.clone(), Unit::effect).step(row.clone());
            match exec.commit(whole).await {
                Wrote::Done => match value {
                    Some(value) => return value,
                    None => break (form(&row.output), row.codec.clone()),
                },
                Wrote::Recorded(rows) => {
                    let recorded = exec.reread(expect(&row, awaited.as_ref()), rows).await;
                    break (recorded.result, recorded.codec);
                }
                Wrote::Invalid(error) if !replaced => {
                    row.output = StepOutput::Failure(exec.shared.record(&unacceptable(&error)));
                    row.codec = Some(wire::PORTABLE_JSON.into());
                    (value, replaced) = (None, true);
                }
                Wrote::Refused(why) => {
                    return exec.park(Error::bug(format!("the row of {:?} was refused: {why:?}", row.name))).await;
                }
                Wrote::Invalid(_) => {
                    return exec.park(Error::bug(format!("the row of {:?} cannot be written", row.name))).await;
                }
            }
        };
        recorded_form(&exec, (&row.name, row.position), (&stored, codec.as_ref()), read).await
    }
}

/// What the journal is to find at a row's position: a user's step never has a reserved name.
fn expect<'a>(row: &'a StepRow, awaited: Option<&'a WorkflowId>) -> Expect<'a> {
    let kind = match awaited {
        Some(id) => CallKind::Await(id),
        None if row.name.as_str().starts_with(wire::RESERVED_PREFIX) => CallKind::Effect,
        None => CallKind::Step,
    };
    Expect { position: row.position, name: &row.name, kind }
}

/// A row's output as it will be read.
fn form(output: &StepOutput) -> StepResult {
    match output {
        StepOutput::Value(payload) => StepResult::Value(payload.clone()),
        StepOutput::Failure(payload) => StepResult::Failure(payload.clone()),
        StepOutput::Nothing | StepOutput::WakeIn(_) | StepOutput::Answer(_) => StepResult::Nothing,
    }
}

/// Reads a recorded form; one that cannot be read sets the workflow aside.
pub(crate) async fn recorded_form<T>(
    exec: &Execution,
    (name, position): (&StepName, Position),
    (stored, codec): (&StepResult, Option<&CodecName>),
    read: Read<T>,
) -> Result<T> {
    match exec.shared.codecs.plain(stored, codec).and_then(|plain| read(&plain)) {
        Ok(value) => value,
        Err(error) => {
            let reason = format!("what {name:?} recorded at position {position} cannot be read: {error}");
            exec.park(Error::mismatch(reason)).await
        }
    }
}

/// Replays a recorded call.
pub(crate) async fn replayed<T>(exec: &Execution, row: &RecordedStep, read: Read<T>) -> Ran<T> {
    Ran::Now(recorded_form(exec, (&row.name, row.position), (&row.result, row.codec.as_ref()), read).await)
}

/// A checkpoint's row in our codec.
pub(crate) fn row(position: Position, name: impl Into<StepName>, output: StepOutput) -> StepRow {
    let row = StepRow::new(position, name, output);
    match row.output {
        StepOutput::Nothing => row,
        _ => row.codec(wire::PORTABLE_JSON),
    }
}

/// A durable call that was made and not run yet. Awaiting it runs it and commits; a race commits for it.
///
/// Dropped before it has committed, it leaves nothing.
///
/// ```
/// # use mainstay::prelude::*;
/// # use std::time::Duration;
/// # use mainstay::Call;
/// #[workflow]
/// async fn hurry(ctx: Ctx) -> Result<String> {
///     let ask = ctx.step("ask", || async { Ok(()) });
///     let calls: [Call<'_, ()>; 2] = [ctx.sleep(Duration::from_secs(60)).into(), ask.into()];
///     let (winner, ()) = ctx.race(calls).await?;
///     Ok(["too late", "answered"][winner].to_owned())
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// # let engine = Engine::builder(mainstay::memory()).app("shop").register(hurry).launch().await?;
/// assert_eq!(engine.start(hurry()).await?.result().await?, "answered");
/// # engine.shutdown(Duration::from_secs(5)).await
/// # }
/// ```
#[must_use = "a durable call does nothing until it is awaited, but has spent its position"]
pub struct Call<'a, T> {
    pub(crate) run: BoxFuture<'a, Ran<T>>,
}

impl<'a, T: Send + 'a> Call<'a, T> {
    pub(crate) fn new(run: impl Future<Output = Ran<T>> + Send + 'a) -> Self {
        Self { run: Box::pin(run) }
    }

    /// Both halves.
    pub(crate) async fn complete(self) -> Result<T> {
        self.run.await.complete().await
    }
}

impl<'a, T: Send + 'a> IntoFuture for Call<'a, T> {
    type Output = Result<T>;
    type IntoFuture = BoxFuture<'a, Result<T>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.complete())
    }
}

impl<T> fmt::Debug for Call<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").finish_non_exhaustive()
    }
}
