//! Steps: a body whose value or error is recorded, so that it does not run again.

use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use mainstay_env::{BoxFuture, Env};
use mainstay_store::{Position, StepName, StepOutput, StepResult};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::attempt::{Attempt, Body, CallBody, StepBody, Watching};
use crate::call::{Call, Ran, Row, replayed, row};
use crate::codec::{self, DecodeError};
use crate::ctx::{self, Ctx, Made};
use crate::error::{Earlier, Error, Result};
use crate::guard::{self, Guarded, Inside, Scope};
use crate::journal::{CallKind, Expect};
use crate::retry::Retry;

/// A step that was made and is run by awaiting it.
///
/// ```
/// # use mainstay::prelude::*;
/// # use std::time::Duration;
/// #[workflow]
/// async fn pay(ctx: Ctx) -> Result<String> {
///     let charge = ctx.step("charge", || async { Ok("paid".to_owned()) });
///     charge.retries(3).timeout(Duration::from_secs(30)).await
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// # let engine = Engine::builder(mainstay::memory()).app("shop").register(pay).launch().await?;
/// assert_eq!(engine.start(pay()).await?.result().await?, "paid");
/// # engine.shutdown(Duration::from_secs(5)).await
/// # }
/// ```
#[must_use = "a step does nothing until it is awaited, but has spent its position"]
pub struct StepCall<'a, T> {
    ctx: Ctx,
    made: Made,
    name: StepName,
    /// What it is in, where it was made in a step.
    nested: Option<Inside>,
    body: Body<'a, T>,
    retry: Retry,
}

impl Ctx {
    /// Runs `body` once and records what it gave, so that no later execution runs it again.
    ///
    /// The body may take an [`Attempt`]. It runs again only when the process dies before the value is stored, or when
    /// retries are asked for. The value is handed back as it was stored. Names that begin with `DBOS.` are refused.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// #[workflow]
    /// async fn checkout(ctx: Ctx, card: String) -> Result<String> {
    ///     ctx.step("charge", || async { Ok(format!("charged {card}")) }).await
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(checkout).launch().await?;
    /// assert_eq!(engine.start(checkout("4242".to_owned())).await?.result().await?, "charged 4242");
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn step<'a, T, M>(&self, name: impl Into<StepName>, mut body: impl StepBody<'a, T, M>) -> StepCall<'a, T>
    where
        T: Serialize + DeserializeOwned + Send + 'a,
    {
        self.make_step(name.into(), Box::new(move |attempt| body.attempt(attempt)))
    }

    /// As [`Ctx::step`], for a function with an error type of its own.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// #[workflow]
    /// async fn parse(ctx: Ctx, text: String) -> Result<u32> {
    ///     ctx.call("parse", || async { text.parse::<u32>() }).await
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(parse).launch().await?;
    /// assert_eq!(engine.start(parse("7".to_owned())).await?.result().await?, 7);
    /// let error = engine.start(parse("seven".to_owned())).await?.result().await.unwrap_err();
    /// assert_eq!(error.name(), "ParseIntError");
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn call<'a, T, M>(&self, name: impl Into<StepName>, mut body: impl CallBody<'a, T, M>) -> StepCall<'a, T>
    where
        T: Serialize + DeserializeOwned + Send + 'a,
    {
        self.make_step(name.into(), Box::new(move |attempt| body.attempt(attempt)))
    }

    fn make_step<'a, T>(&self, name: StepName, body: Body<'a, T>) -> StepCall<'a, T> {
        let made = match self.shared().check_step_name(&name) {
            Ok(()) => self.make(name.as_str(), 1, ctx::InStep::Runs),
            Err(error) => Made::Refused(error),
        };
        let enclosing = guard::current().and_then(|scope| scope.step).filter(|_| matches!(made, Made::Unrecorded));
        let nested = enclosing.map(|step| step.nested(name.clone()));
        StepCall { ctx: self.clone(), made, name, nested, body, retry: Retry::default() }
    }
}

impl<'a, T> StepCall<'a, T> {
    /// How often a failed attempt is made again; not at all unless asked for. Retries are this process's: they begin
    /// anew when it dies.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// #[workflow]
    /// async fn work(ctx: Ctx) -> Result<u32> {
    ///     let third = |attempt: Attempt| async move {
    ///         if attempt.number == 3 { Ok(attempt.number) } else { Err(Error::new("line busy")) }
    ///     };
    ///     ctx.step("ask", third).retries(2).backoff(Duration::from_millis(1)).await
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(work).launch().await?;
    /// assert_eq!(engine.start(work()).await?.result().await?, 3);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn retries(mut self, retries: u32) -> Self {
        self.retry.retries = retries;
        self
    }

    /// Wait before the first retry; a second unless set.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// #[workflow]
    /// async fn work(ctx: Ctx) -> Result<u32> {
    ///     let third = |attempt: Attempt| async move {
    ///         if attempt.number == 3 { Ok(attempt.number) } else { Err(Error::new("line busy")) }
    ///     };
    ///     ctx.step("ask", third).retries(2).backoff(Duration::from_millis(1)).await
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(work).launch().await?;
    /// assert_eq!(engine.start(work()).await?.result().await?, 3);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn backoff(mut self, backoff: Duration) -> Self {
        self.retry.backoff = backoff;
        self
    }

    /// What each later wait is longer by; 2 unless set.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// #[workflow]
    /// async fn work(ctx: Ctx) -> Result<u32> {
    ///     let third = |attempt: Attempt| async move {
    ///         if attempt.number == 3 { Ok(attempt.number) } else { Err(Error::new("line busy")) }
    ///     };
    ///     ctx.step("ask", third).retries(2).backoff(Duration::from_millis(1)).backoff_rate(1.5).await
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(work).launch().await?;
    /// assert_eq!(engine.start(work()).await?.result().await?, 3);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn backoff_rate(mut self, rate: f64) -> Self {
        self.retry.rate = rate;
        self
    }

    /// The longest wait; an hour unless set.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// #[workflow]
    /// async fn work(ctx: Ctx) -> Result<u32> {
    ///     let third = |attempt: Attempt| async move {
    ///         if attempt.number == 3 { Ok(attempt.number) } else { Err(Error::new("line busy")) }
    ///     };
    ///     ctx.step("ask", third).retries(2).max_backoff(Duration::from_millis(1)).await
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(work).launch().await?;
    /// assert_eq!(engine.start(work()).await?.result().await?, 3);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn max_backoff(mut self, longest: Duration) -> Self {
        self.retry.max_backoff = longest;
        self
    }

    /// How far a wait is moved at random, as a fraction of itself; 0.1 unless set.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// #[workflow]
    /// async fn work(ctx: Ctx) -> Result<u32> {
    ///     let third = |attempt: Attempt| async move {
    ///         if attempt.number == 3 { Ok(attempt.number) } else { Err(Error::new("line busy")) }
    ///     };
    ///     ctx.step("ask", third).retries(2).backoff(Duration::from_millis(1)).jitter(0.5).await
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(work).launch().await?;
    /// assert_eq!(engine.start(work()).await?.result().await?, 3);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn jitter(mut self, fraction: f64) -> Self {
        self.retry.jitter = fraction;
        self
    }

    /// Which errors are tried again; all unless set. The error still has its source, for
    /// [`downcast_ref`](Error::downcast_ref).
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// #[workflow]
    /// async fn work(ctx: Ctx) -> Result<u32> {
    ///     let third = |attempt: Attempt| async move {
    ///         if attempt.number == 3 { Ok(attempt.number) } else { Err(Error::new("line busy")) }
    ///     };
    ///     ctx.step("ask", third).retries(9).retry_if(|error| error.is::<std::io::Error>()).await
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(work).launch().await?;
    /// let error = engine.start(work()).await?.result().await.unwrap_err();
    /// assert_eq!(error.message(), "line busy");
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn retry_if(mut self, worth_it: impl Fn(&Error) -> bool + Send + Sync + 'static) -> Self {
        self.retry.only = Some(Arc::new(worth_it));
        self
    }

    /// How long one attempt may take; then it is dropped, and has failed with a [`Timeout`](crate::ErrorKind::Timeout).
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// #[workflow]
    /// async fn work(ctx: Ctx) -> Result<()> {
    ///     ctx.step("hang", std::future::pending::<Result<()>>).timeout(Duration::from_millis(5)).await
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(work).launch().await?;
    /// let error = engine.start(work()).await?.result().await.unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Timeout);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.retry.timeout = Some(limit);
        self
    }
}

impl<'a, T: Serialize + DeserializeOwned + Send + 'a> StepCall<'a, T> {
    async fn run(self) -> Ran<T> {
        let Self { ctx, made, name, nested, body, retry } = self;
        match made {
            Made::Refused(error) => Ran::Now(Err(error)),
            Made::Unrecorded => {
                let scope = Scope { ctx: ctx.clone(), step: nested };
                let work = attempts(&ctx.shared().env, scope, &retry, body);
                Ran::unrecorded(&format!("the step {name:?}"), work).await
            }
            Made::At(ctx, position) => run_at(ctx, position, name, body, retry).await,
        }
    }
}

async fn run_at<T>(ctx: Ctx, position: Position, name: StepName, body: Body<'_, T>, retry: Retry) -> Ran<T>
where
    T: Serialize + DeserializeOwned + Send,
{
    let exec = ctx.exec.clone();
    let _busy = exec.busy();
    if let Some(recorded) = exec.ask(Expect { position, name: &name, kind: CallKind::Step }).await {
        return replayed(&exec, &recorded, read).await;
    }
    let env = &exec.shared.env;
    let began = env.monotonic();
    let step = Inside::new(name.clone(), format!("{}-{position}", exec.id));
    let scope = Scope { ctx: ctx.clone(), step: Some(step) };
    let result = attempts(env, scope, &retry, body).await;
    let what = || format!("the value of step {name:?}");
    let (output, value) = match result.and_then(|value| exec.shared.step_value(what, &value)) {
        Ok((payload, value)) => (StepOutput::Value(payload), Ok(value)),
        Err(error) => {
            let payload = exec.shared.record(&error);
            let recorded = Error::recorded(&payload);
            (StepOutput::Failure(exec.shared.step_error(payload)), Err(recorded))
        }
    };
    let row = row(position, name, output).codec(exec.shared.codecs.own()).took(env.monotonic().since(began));
    Ran::Row(Row { exec: exec.clone(), row, effects: Vec::new(), awaited: None, value: Some(value), read })
}

/// A step's recorded form.
pub(crate) fn read<T: DeserializeOwned>(result: &StepResult) -> Result<Result<T>, DecodeError> {
    match result {
        StepResult::Value(payload) => codec::decode(payload).map(Ok),
        StepResult::Failure(payload) => Ok(Err(Error::recorded(payload))),
        StepResult::Nothing => codec::decode(&"null".into()).map(Ok),
    }
}

/// Runs attempts until one succeeds or no more is allowed.
async fn attempts<T>(env: &Env, scope: Scope, retry: &Retry, mut body: Body<'_, T>) -> Result<T> {
    let mut earlier = Earlier::default();
    for number in 1.. {
        let error = match attempt(env, &scope, retry, number, &mut body).await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if !retry.again(number, &error) {
            return Err(error.after(earlier));
        }
        let wait = retry.jittered(number, env.rng());
        let step = scope.step.as_ref().map(|step| &step.name);
        tracing::debug!(?step, attempt = number, ?wait, error = %error, "step failed, tried again");
        earlier.push(&error);
        env.sleep(wait).await;
    }
    Err(Error::bug("no attempt is left".to_owned()))
}

async fn attempt<T>(env: &Env, scope: &Scope, retry: &Retry, number: u32, body: &mut Body<'_, T>) -> Result<T> {
    let step = scope.step.as_ref().map(Inside::again);
    let key = step.as_ref().map(|step| step.key.to_string()).unwrap_or_default();
    let scope = Scope { ctx: scope.ctx.clone(), step };
    let (attempt, watched) = Attempt::new(number, retry.most(), key);
    // The body itself runs as code of the step, so that what it makes belongs there.
    let future = guard::within(scope.clone(), || body(attempt));
    let running = Watching::new(watched, Guarded::new(scope, future));
    let Some(limit) = retry.timeout else { return running.await };
    match select(running, env.sleep(limit)).await {
        Either::Left((result, _)) => result,
        Either::Right(((), running)) => {
            drop(running);
            Err(Error::timeout(format!("an attempt took longer than {limit:?}")))
        }
    }
}

impl<'a, T: Serialize + DeserializeOwned + Send + 'a> From<StepCall<'a, T>> for Call<'a, T> {
    fn from(step: StepCall<'a, T>) -> Self {
        Call::new(step.run())
    }
}

impl<'a, T: Serialize + DeserializeOwned + Send + 'a> IntoFuture for StepCall<'a, T> {
    type Output = Result<T>;
    type IntoFuture = BoxFuture<'a, Result<T>>;

    fn into_future(self) -> Self::IntoFuture {
        Call::from(self).into_future()
    }
}

impl<T> fmt::Debug for StepCall<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepCall").field("name", &self.name).field("retry", &self.retry).finish_non_exhaustive()
    }
}
