//! Handles: what a program holds of a workflow.

mod wait;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use mainstay_store::{
    CodecName, Effect, Outcome, Position, Standing, Status, StepOutput, StepResult, Unit, UnitReply, WorkflowId,
    WorkflowRow,
};
use serde::de::DeserializeOwned;

use crate::call::{Call, Ran, Row, replayed, row};
use crate::codec::DecodeError;
use crate::ctx::{Ctx, InStep, Made};
use crate::driver;
use crate::error::{Error, Result};
use crate::execution::Execution;
use crate::guard::{self, Scope};
use crate::hub;
use crate::journal::{CallKind, Expect};
use crate::recorder::Patience;
use crate::shared::Shared;
use crate::sleep::record_wake;
use crate::start::PATIENCE;
use crate::step;

pub(crate) use wait::Limit;
pub use wait::Wait;

/// Name of the row of an awaited workflow.
const GET_RESULT: &str = "DBOS.getResult";
/// Name of the row of a status that was read.
const GET_STATUS: &str = "DBOS.getStatus";
/// Name of the row of a cancellation.
const CANCEL: &str = "DBOS.cancelWorkflow";
/// How long a wait outside of bodies looks once more when its limit has passed.
const LAST_LOOK: Duration = Duration::from_secs(1);
/// Longest pause before a row is read again from a store that does not answer.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// A workflow, by its id; `T` is what it returns. A cheap clone; dropping it changes nothing.
///
/// In a body, what a handle is asked is recorded, like every durable call; outside it is not.
///
/// ```
/// # use mainstay::prelude::*;
/// # use std::time::Duration;
/// # #[workflow]
/// # async fn double(_ctx: Ctx, number: u64) -> Result<u64> {
/// #     Ok(2 * number)
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// # let engine = Engine::builder(mainstay::memory()).app("shop").register(double).launch().await?;
/// let handle = engine.start(double(4)).id("order-42").await?;
/// let same: Handle<u64> = engine.handle(double, "order-42");
/// assert_eq!((handle.result().await?, same.result().await?), (8, 8));
/// # engine.shutdown(Duration::from_secs(5)).await
/// # }
/// ```
pub struct Handle<T> {
    shared: Arc<Shared>,
    id: WorkflowId,
    /// The execution that made it, whose body alone may use it.
    owner: Option<u64>,
    /// Codec of its row, where that is known without a look: from the start that made it.
    codec: Option<CodecName>,
    value: PhantomData<fn() -> T>,
}

impl<T> Handle<T> {
    pub(crate) fn new(shared: Arc<Shared>, id: WorkflowId, owner: Option<u64>) -> Self {
        Self { shared, id, owner, codec: None, value: PhantomData }
    }

    pub(crate) fn of_codec(mut self, codec: Option<CodecName>) -> Self {
        self.codec = codec;
        self
    }

    /// Id of the workflow.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[workflow]
    /// # async fn double(_ctx: Ctx, number: u64) -> Result<u64> {
    /// #     Ok(2 * number)
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(double).launch().await?;
    /// let handle = engine.start(double(4)).id("order-42").await?;
    /// assert_eq!(*handle.id(), "order-42");
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    #[must_use]
    pub fn id(&self) -> &WorkflowId {
        &self.id
    }

    /// The same workflow, with a result of another type.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[workflow]
    /// # async fn double(_ctx: Ctx, number: u64) -> Result<u64> {
    /// #     Ok(2 * number)
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(double).launch().await?;
    /// let handle = engine.start(double(4)).await?;
    /// let json = handle.typed::<serde_json::Value>();
    /// assert_eq!(json.result().await?, serde_json::json!(8));
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    #[must_use]
    pub fn typed<U>(&self) -> Handle<U> {
        Handle {
            shared: self.shared.clone(),
            id: self.id.clone(),
            owner: self.owner,
            codec: self.codec.clone(),
            value: PhantomData,
        }
    }

    /// Where the workflow stands now. Errors: `NotFound`; outside of bodies, which wait for the store, `Unavailable` when it
    /// does not answer and `Refused` when the role may not read.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[workflow]
    /// # async fn double(_ctx: Ctx, number: u64) -> Result<u64> {
    /// #     Ok(2 * number)
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(double).launch().await?;
    /// let handle = engine.start(double(4)).await?;
    /// handle.result().await?;
    /// assert_eq!(handle.status().await?, mainstay::Status::Success);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn status(&self) -> Call<'static, Status> {
        let (place, shared, id) = (self.place("handle.status"), self.shared.clone(), self.id.clone());
        Call::new(async move {
            match place {
                Made::Unrecorded => Ran::unrecorded("handle.status", status(&shared, &id)).await,
                Made::Refused(error) => Ran::Now(Err(error)),
                Made::At(ctx, position) => status_in_body(ctx, position, id).await,
            }
        })
    }

    /// The stored row of the workflow: its status, times, queue and more. Not recorded: in a body, read it in a step.
    ///
    /// Errors: `NotFound`; `Unavailable` when the store does not answer.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[workflow]
    /// # async fn double(_ctx: Ctx, number: u64) -> Result<u64> {
    /// #     Ok(2 * number)
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(double).launch().await?;
    /// let row = engine.start(double(4)).await?.row().await?;
    /// assert_eq!((row.name.as_str(), row.attempts), ("double", 1));
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub async fn row(&self) -> Result<WorkflowRow> {
        row_of(&self.shared, &self.id).await
    }

    /// Cancels the workflow unless it has ended: it is not run on after its next durable call.
    ///
    /// Cancelling what has ended, or does not exist, changes nothing. The workflows that it started go on.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[workflow]
    /// # async fn wait(ctx: Ctx) -> Result<()> {
    /// #     ctx.sleep(Duration::from_secs(3600)).await
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(wait).launch().await?;
    /// let handle = engine.start(wait()).await?;
    /// handle.cancel().await?;
    /// assert_eq!(handle.result().await.unwrap_err().kind(), ErrorKind::Cancelled);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn cancel(&self) -> Call<'static, ()> {
        let (place, shared, id) = (self.place("handle.cancel"), self.shared.clone(), self.id.clone());
        Call::new(async move {
            match place {
                Made::Unrecorded => Ran::unrecorded("handle.cancel", cancel_outside(&shared, &id)).await,
                Made::Refused(error) => Ran::Now(Err(error)),
                Made::At(ctx, position) => cancel_in_body(ctx, position, id).await,
            }
        })
    }

    /// Judges where a call on this handle is made, and takes its position.
    fn place(&self, call: &str) -> Made {
        // The same in every process, so that it need not be recorded.
        if let Err(error) = self.shared.check_id(&self.id) {
            return Made::Refused(error);
        }
        let Some(Scope { ctx, step }) = guard::current() else {
            return match self.owner {
                None => Made::Unrecorded,
                Some(_) => Made::Refused(Error::refused(format!(
                    "{call} was called outside the body that made the handle: a task or thread that it spawned cannot be \
                     replayed; use ctx.spawn"
                ))),
            };
        };
        if self.owner.is_some_and(|owner| owner != ctx.exec.serial) {
            return Made::Refused(Error::refused(format!("{call}: the handle belongs to another execution")));
        }
        // A step does as it likes; what a body records is about its own store.
        if step.is_none() && !Arc::ptr_eq(ctx.shared(), &self.shared) {
            return Made::Refused(Error::refused(format!("{call}: the handle belongs to another engine")));
        }
        ctx.make(call, 1, InStep::Runs)
    }
}

impl<T: DeserializeOwned + Send + 'static> Handle<T> {
    /// Waits for the result; again and again, if wanted.
    ///
    /// The workflow's error is given as it was recorded. Errors of its own: `Cancelled`, `Parked` when it was set aside,
    /// `NotFound`, `Refused` for an id that no workflow can have, `Stopped` when this engine is shut down first.
    ///
    /// What it gives is awaited; where a future is asked for, as by a `join_all`, its `into_future` is one.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[workflow]
    /// # async fn double(_ctx: Ctx, number: u64) -> Result<u64> {
    /// #     Ok(2 * number)
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(double).launch().await?;
    /// let handle = engine.start(double(4)).await?;
    /// assert_eq!(handle.result().await?, 8);
    /// let (once, again) = tokio::join!(handle.result().into_future(), handle.result().into_future());
    /// assert_eq!((once?, again?), (8, 8));
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn result(&self) -> Wait<T> {
        let place = self.place("handle.result");
        Wait { handle: self.clone(), place, limit: None }
    }

    /// The await at a place that was taken before.
    pub(crate) fn awaited(&self, made: Made, limit: Option<Limit>) -> Call<'static, T> {
        let handle = self.clone();
        Call::new(async move {
            match made {
                Made::Refused(error) => Ran::Now(Err(error)),
                Made::Unrecorded => {
                    Ran::unrecorded("handle.result", handle.unrecorded(limit.map(|limit| limit.duration))).await
                }
                Made::At(ctx, _) if ctx.exec.id == handle.id => Ran::Now(Err(own_end())),
                Made::At(ctx, position) => handle.in_body(ctx, position, limit).await,
            }
        })
    }

    /// In a step or outside of bodies; a step that waits gives its place back meanwhile.
    async fn unrecorded(&self, limit: Option<Duration>) -> Result<T> {
        let Some(scope) = guard::current() else { return self.outside(limit).await };
        let exec = &scope.ctx.exec;
        if exec.id == self.id && Arc::ptr_eq(&exec.shared, &self.shared) {
            return Err(own_end());
        }
        let (_waiting, _lent) = (exec.waiting(), exec.lent());
        self.outside(limit).await
    }

    async fn outside(&self, limit: Option<Duration>) -> Result<T> {
        let ended = match limit {
            None => self.ended().await,
            Some(limit) => match self.shared.env.timeout(limit, self.ended()).await {
                Ok(ended) => ended,
                Err(_) => match self.shared.env.timeout(LAST_LOOK, self.ended_by_now()).await {
                    Ok(Some(ended)) => Some(ended),
                    _ => return Err(self.timed_out(limit)),
                },
            },
        };
        let (ended, codec) = ended.ok_or_else(Error::stopped)?;
        let (result, codec) = form(&self.shared, &self.id, &ended, codec);
        let read = self.shared.codecs.plain(&result, codec.as_ref()).and_then(|plain| step::read(&plain));
        read.unwrap_or_else(|error| {
            Err(Error::mismatch(format!("the result of workflow {} cannot be read: {error}", self.id)))
        })
    }

    /// The error of a limit that is over, which says so where the end could not be read.
    fn timed_out(&self, limit: Duration) -> Error {
        let error = timed_out(&self.id, limit);
        match self.shared.hub.outage() {
            None => error,
            Some(outage) => {
                let why = Error::store(outage);
                Error::timeout(format!("{}, as far as is known: {}", error.message(), why.message()))
            }
        }
    }

    /// The end and the codec of its payload; none when this engine stops first.
    async fn ended(&self) -> Option<(Standing, Option<CodecName>)> {
        let ended = self.shared.hub.ended(&self.shared, &self.id).await?;
        self.with_codec(ended).await
    }

    /// An end that has come unheard of.
    async fn ended_by_now(&self) -> Option<(Standing, Option<CodecName>)> {
        let ended = ended_by_now(&self.shared, &self.id).await?;
        self.with_codec(ended).await
    }

    /// Reads the codec where it is not known, until the store answers, as the wait for the end does.
    async fn with_codec(&self, ended: Standing) -> Option<(Standing, Option<CodecName>)> {
        if self.codec.is_some() || !has_payload(&ended) {
            return Some((ended, self.codec.clone()));
        }
        let (mut wait, mut told) = (Duration::from_millis(100), false);
        loop {
            match self.shared.store.workflow_rows(std::slice::from_ref(&self.id)).await {
                Ok(rows) => return Some((ended, rows.into_iter().next().flatten().and_then(|row| row.codec))),
                Err(error) if hub::is_unreadable(&error) => return Some((ended, None)),
                Err(error) if !std::mem::replace(&mut told, true) => {
                    tracing::warn!(workflow = %self.id, %error, "the row of an ended workflow cannot be read, tried again");
                }
                Err(error) => tracing::debug!(workflow = %self.id, %error, "reading a row failed, tried again"),
            }
            if *self.shared.stopped.borrow() {
                return None;
            }
            self.shared.env.sleep(wait).await;
            wait = (wait * 2).min(MAX_WAIT);
        }
    }

    /// As [`Handle::with_codec`], for a body; none where the row cannot be read.
    async fn codec_in_body(&self, exec: &Execution, ended: &Standing) -> Option<CodecName> {
        match &self.codec {
            None if has_payload(ended) => {
                let _busy = exec.busy();
                let rows = || exec.shared.store.workflow_rows(std::slice::from_ref(&self.id));
                driver::read(exec, rows).await.ok()?.into_iter().next().flatten()?.codec
            }
            known => known.clone(),
        }
    }

    async fn in_body(self, ctx: Ctx, position: Position, limit: Option<Limit>) -> Ran<T> {
        let exec = ctx.exec.clone();
        let name = GET_RESULT.into();
        let kind = CallKind::Await(&self.id);
        if let Some(recorded) = exec.ask(Expect { position, name: &name, kind }).await {
            if let Some(Limit { at: Some(at), .. }) = limit {
                // The limit's own row is asked for too, so that a replay asks for all that is recorded.
                let _ =
                    exec.ask(Expect { position: at, name: &crate::sleep::SLEEP.into(), kind: CallKind::Sleep }).await;
            }
            return replayed(&exec, &recorded, step::read).await;
        }
        let began = exec.shared.env.monotonic();
        let standing = match limit {
            Some(Limit { duration, at: Some(at) }) => {
                let wake = record_wake(&ctx, at, duration).await;
                let _waiting = exec.waiting();
                let ended = std::pin::pin!(exec.shared.hub.ended(&exec.shared, &self.id));
                match select(ended, exec.shared.env.sleep(exec.until(wake))).await {
                    Either::Left((ended, _)) => Ok(ended),
                    Either::Right(_) => match ended_patiently(&exec, &self.id).await {
                        Some(ended) => Ok(Some(ended)),
                        None => Err(timed_out(&self.id, duration)),
                    },
                }
            }
            _ => {
                let _waiting = exec.waiting();
                Ok(exec.shared.hub.ended(&exec.shared, &self.id).await)
            }
        };
        let (result, codec) = match standing {
            Ok(Some(standing)) => {
                let codec = self.codec_in_body(&exec, &standing).await;
                form(&exec.shared, &self.id, &standing, codec)
            }
            Err(error) => (StepResult::Failure(exec.shared.record(&error)), None),
            // The engine stops: the wait is not over.
            Ok(None) => std::future::pending().await,
        };
        let output = match result {
            StepResult::Value(payload) => StepOutput::Value(payload),
            StepResult::Failure(payload) => StepOutput::Failure(payload),
            StepResult::Nothing => StepOutput::Nothing,
        };
        // The text is the awaited workflow's own, and so is its label.
        let mut row = row(position, name, output).child(self.id.clone());
        row = row.took(exec.shared.env.monotonic().since(began));
        row.codec = codec.or(row.codec);
        Ran::Row(Row { exec, row, effects: Vec::new(), awaited: Some(self.id), value: None, read: step::read })
    }
}

fn timed_out(id: &WorkflowId, limit: Duration) -> Error {
    Error::timeout(format!("workflow {id} did not end within {limit:?}"))
}

fn own_end() -> Error {
    Error::refused("a body cannot wait for the end of its own workflow".to_owned())
}

fn has_ended(standing: &Standing) -> bool {
    !matches!(standing, Standing::Open(_))
}

/// The end of a workflow that has come unheard of, as when the limit is over before the first look.
async fn ended_by_now(shared: &Shared, id: &WorkflowId) -> Option<Standing> {
    let read = shared.store.workflow_standing(std::slice::from_ref(id));
    let standings = shared.env.timeout(LAST_LOOK, read).await.ok()?.ok()?;
    standings.into_iter().next().filter(has_ended)
}

/// As [`ended_by_now`], once the store answers: what a body is told is recorded.
async fn ended_patiently(exec: &Execution, id: &WorkflowId) -> Option<Standing> {
    let standings = driver::read(exec, || exec.shared.store.workflow_standing(std::slice::from_ref(id))).await;
    standings.ok()?.into_iter().next().filter(has_ended)
}

/// Whether it ended with something that its own codec wrote.
fn has_payload(ended: &Standing) -> bool {
    matches!(ended, Standing::Ended(Outcome::Success(_) | Outcome::Error(_)))
}

/// How a workflow ended, as a step's recorded form, with the codec of that.
fn form(
    shared: &Shared,
    id: &WorkflowId,
    standing: &Standing,
    codec: Option<CodecName>,
) -> (StepResult, Option<CodecName>) {
    let error = match standing {
        Standing::Ended(Outcome::Success(payload)) => return (StepResult::Value(payload.clone()), codec),
        Standing::Ended(Outcome::Error(payload)) => return (StepResult::Failure(payload.clone()), codec),
        Standing::Ended(Outcome::Cancelled) => Error::cancelled(id),
        Standing::Ended(Outcome::Parked(reason)) => Error::parked(id, Error::recorded(reason).message()),
        Standing::Gone => Error::not_found(id),
        Standing::Open(status) => Error::bug(format!("workflow {id} was told to have ended and is {status}")),
    };
    (StepResult::Failure(shared.record(&error)), None)
}

async fn row_of(shared: &Shared, id: &WorkflowId) -> Result<WorkflowRow> {
    shared.check_id(id)?;
    let rows = shared.store.workflow_rows(std::slice::from_ref(id)).await.map_err(Error::store)?;
    rows.into_iter().next().flatten().ok_or_else(|| Error::not_found(id))
}

async fn status(shared: &Shared, id: &WorkflowId) -> Result<Status> {
    row_of(shared, id).await.map(|row| row.status)
}

async fn status_in_body(ctx: Ctx, position: Position, id: WorkflowId) -> Ran<Status> {
    let exec = ctx.exec.clone();
    let _busy = ctx.exec.busy();
    let name = GET_STATUS.into();
    if let Some(recorded) = exec.ask(Expect { position, name: &name, kind: CallKind::Effect }).await {
        return replayed(&exec, &recorded, read_status).await;
    }
    let output = match status_patiently(&exec, &id).await {
        Ok(status) => exec.shared.encode(status.as_str()).map(StepOutput::Value),
        Err(error) => Err(error),
    };
    let output = output.unwrap_or_else(|error| StepOutput::Failure(exec.shared.record(&error)));
    let row = row(position, name, output);
    Ran::Row(Row { exec, row, effects: Vec::new(), awaited: None, value: None, read: read_status })
}

/// The status, read until the store answers: an outage is nothing to be recorded, but a row that cannot be read is.
async fn status_patiently(exec: &Execution, id: &WorkflowId) -> Result<Status> {
    let rows = driver::read(exec, || exec.shared.store.workflow_rows(std::slice::from_ref(id))).await;
    rows.map_err(Error::store)?.into_iter().next().flatten().map(|row| row.status).ok_or_else(|| Error::not_found(id))
}

fn read_status(result: &StepResult) -> Result<Result<Status>, DecodeError> {
    let text: Result<String> = step::read(result)?;
    Ok(text.and_then(|text| {
        Status::parse(&text).ok_or_else(|| Error::bug(format!("recorded status {text:?} is not known")))
    }))
}

fn cancel(id: &WorkflowId) -> Effect {
    Effect::Cancel { ids: vec![id.clone()], children: false }
}

async fn cancel_outside(shared: &Shared, id: &WorkflowId) -> Result<()> {
    let unit = Unit::new().effect(cancel(id));
    unit.check(&shared.bounds).map_err(|error| Error::refused(error.to_string()))?;
    match shared.recorder.commit(id, unit, Patience::For(PATIENCE)).await.map_err(Error::store)?.reply {
        UnitReply::Done { .. } => Ok(()),
        other => Err(Error::bug(format!("the store answered a cancel with {other:?}"))),
    }
}

async fn cancel_in_body(ctx: Ctx, position: Position, id: WorkflowId) -> Ran<()> {
    let exec = ctx.exec.clone();
    if id == exec.id {
        let text = "a body cannot cancel its own workflow: return an error";
        return Ran::Now(Err(Error::refused(text.to_owned())));
    }
    let name = CANCEL.into();
    if let Some(recorded) = exec.ask(Expect { position, name: &name, kind: CallKind::Effect }).await {
        return replayed(&exec, &recorded, read_cancel).await;
    }
    let row = row(position, name, StepOutput::Answer(0));
    Ran::Row(Row { exec, row, effects: vec![cancel(&id)], awaited: None, value: None, read: read_cancel })
}

fn read_cancel(result: &StepResult) -> Result<Result<()>, DecodeError> {
    match result {
        StepResult::Failure(payload) => Ok(Err(Error::recorded(payload))),
        StepResult::Value(_) | StepResult::Nothing => Ok(Ok(())),
    }
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        self.typed()
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("workflow", &self.id).finish_non_exhaustive()
    }
}
