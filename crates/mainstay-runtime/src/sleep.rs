//! Sleeping through restarts.

use std::fmt;
use std::future::IntoFuture;
use std::time::Duration;

use futures_util::FutureExt;
use mainstay_env::{BoxFuture, Timestamp};
use mainstay_store::{Position, StepOutput, StepResult, Unit};

use crate::call::{Call, Ran, row};
use crate::ctx::{Ctx, InStep, Made};
use crate::error::{Error, Result};
use crate::journal::{CallKind, Expect};

/// Name of a sleep's row.
pub(crate) const SLEEP: &str = "DBOS.sleep";
/// The longest sleep; its end still fits into every store's milliseconds.
const LONGEST: Duration = Duration::from_secs(1_000 * 366 * 86_400);

/// A sleep that was made and is slept by awaiting it.
///
/// ```
/// # use mainstay::prelude::*;
/// # use std::time::Duration;
/// #[workflow]
/// async fn nap(ctx: Ctx) -> Result<String> {
///     let sleep = ctx.sleep(Duration::from_millis(5));
///     sleep.await?;
///     Ok("awake".to_owned())
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// # let engine = Engine::builder(mainstay::memory()).app("shop").register(nap).launch().await?;
/// assert_eq!(engine.start(nap()).await?.result().await?, "awake");
/// # engine.shutdown(Duration::from_secs(5)).await
/// # }
/// ```
#[must_use = "a sleep does nothing until it is awaited, but has spent its position"]
pub struct Sleep {
    ctx: Ctx,
    made: Made,
    duration: Duration,
}

impl Ctx {
    /// Sleeps, also through restarts: the moment of waking is recorded before the wait begins, by the store's clock.
    ///
    /// One that lasts longer than 1,000 years lasts for 1,000 years. While it sleeps, a workflow holds no place of
    /// `max_running`; limits of its queue keep counting it.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// #[workflow]
    /// async fn remind(ctx: Ctx) -> Result<String> {
    ///     ctx.sleep(Duration::from_millis(5)).await?;
    ///     ctx.step("mail", || async { Ok("reminded".to_owned()) }).await
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(remind).launch().await?;
    /// assert_eq!(engine.start(remind()).await?.result().await?, "reminded");
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn sleep(&self, duration: Duration) -> Sleep {
        let made = self.make("ctx.sleep", 1, InStep::Runs);
        Sleep { ctx: self.clone(), made, duration: duration.min(LONGEST) }
    }
}

impl Sleep {
    async fn run(self) -> Ran<()> {
        let Self { ctx, made, duration } = self;
        let env = &ctx.shared().env;
        match made {
            Made::Refused(error) => Ran::Now(Err(error)),
            Made::Unrecorded => Ran::unrecorded("ctx.sleep", env.sleep(duration).map(Ok)).await,
            Made::At(ctx, position) => {
                let wake = record_wake(&ctx, position, duration).await;
                let _waiting = ctx.exec.waiting();
                env.sleep(ctx.exec.until(wake)).await;
                Ran::Now(Ok(()))
            }
        }
    }
}

/// The recorded moment of waking; records it when there is none.
pub(crate) async fn record_wake(ctx: &Ctx, position: Position, duration: Duration) -> Timestamp {
    let exec = &ctx.exec;
    let name = SLEEP.into();
    let expect = || Expect { position, name: &name, kind: CallKind::Sleep };
    let recorded = match exec.ask(expect()).await {
        Some(recorded) => recorded,
        None => {
            let unit = Unit::by(&exec.fence).step(row(position, SLEEP, StepOutput::WakeIn(duration)));
            match exec.record(unit, expect()).await {
                Some(recorded) => recorded,
                None => return exec.store_now() + duration,
            }
        }
    };
    match wake_time(&recorded.result) {
        Some(wake) => wake,
        None => {
            let reason = format!("the sleep recorded at position {position} has no time that can be read");
            exec.park(Error::mismatch(reason)).await
        }
    }
}

/// Epoch milliseconds in decimal.
fn wake_time(result: &StepResult) -> Option<Timestamp> {
    result.payload()?.as_str().trim().parse().ok().map(Timestamp)
}

impl From<Sleep> for Call<'static, ()> {
    fn from(sleep: Sleep) -> Self {
        Call::new(sleep.run())
    }
}

impl IntoFuture for Sleep {
    type Output = Result<()>;
    type IntoFuture = BoxFuture<'static, Result<()>>;

    fn into_future(self) -> Self::IntoFuture {
        Call::from(self).into_future()
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").field("duration", &self.duration).finish_non_exhaustive()
    }
}
