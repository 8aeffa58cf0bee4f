//! Races: the first of several durable calls to be ready, recorded together with what it did.

use std::future::{Future, IntoFuture, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use mainstay_env::BoxFuture;
use mainstay_store::{Position, StepName, StepOutput, Unit};

use crate::call::{Call, Ran, row};
use crate::codec;
use crate::ctx::{Ctx, InStep, Made};
use crate::error::{Error, Result};
use crate::guard;
use crate::journal::{CallKind, Expect};

/// Name of a race's row; its output is the index of the winner.
const RACE: &str = "DBOS.selectStep";

/// A race that was made and is run by awaiting it: the index of the winner, and its value.
///
/// ```
/// # use mainstay::prelude::*;
/// # use std::time::Duration;
/// #[workflow]
/// async fn fastest(ctx: Ctx) -> Result<String> {
///     let left = ctx.step("left", || async { Ok("left".to_owned()) });
///     let right = ctx.step("right", || async { Ok("right".to_owned()) });
///     let (index, side) = ctx.race([left, right]).await?;
///     assert_eq!(index, 0);
///     Ok(side)
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// # let engine = Engine::builder(mainstay::memory()).app("shop").register(fastest).launch().await?;
/// assert_eq!(engine.start(fastest()).await?.result().await?, "left");
/// # engine.shutdown(Duration::from_secs(5)).await
/// # }
/// ```
#[must_use = "a race does nothing until it is awaited, but has spent its position"]
pub struct Race<'a, T> {
    made: Made,
    calls: Vec<Call<'a, T>>,
}

impl Ctx {
    /// Runs durable calls at once and gives the first that is ready, with its index; the others are dropped.
    ///
    /// What the winner did and that it won commit together; a loser leaves nothing, except for a sleep's moment of waking.
    /// Calls that are ready at once win in their order. A replay runs the recorded winner only. Steps, sleeps and waits for
    /// results race; a start and a branch of [`Ctx::spawn`](crate::Ctx::spawn) do not.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// #[workflow]
    /// async fn patient(ctx: Ctx) -> Result<String> {
    ///     let answer = ctx.step("ask", std::future::pending::<Result<()>>);
    ///     let limit = ctx.sleep(Duration::from_millis(5));
    ///     let (winner, ()) = ctx.race([mainstay::Call::from(answer), limit.into()]).await?;
    ///     Ok(["answered", "nobody answered"][winner].to_owned())
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(patient).launch().await?;
    /// assert_eq!(engine.start(patient()).await?.result().await?, "nobody answered");
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn race<'a, T: Send + 'a>(&self, calls: impl IntoIterator<Item = impl Into<Call<'a, T>>>) -> Race<'a, T> {
        let calls: Vec<Call<'a, T>> = calls.into_iter().map(Into::into).collect();
        let made = if calls.is_empty() {
            Made::Refused(Error::refused("ctx.race was called without a call".to_owned()))
        } else {
            self.make("ctx.race", 1, InStep::Runs)
        };
        Race { made, calls }
    }
}

impl<'a, T: Send + 'a> Race<'a, T> {
    async fn complete(self) -> Result<(usize, T)> {
        let Self { made, mut calls } = self;
        match made {
            Made::Refused(error) => Err(error),
            Made::Unrecorded => {
                guard::no_body_awaits("ctx.race")?;
                let (index, ran) = first(&mut calls).await;
                drop(calls);
                ran.complete().await.map(|value| (index, value))
            }
            Made::At(ctx, position) => recorded(ctx, position, calls).await,
        }
    }
}

async fn recorded<T: Send>(ctx: Ctx, position: Position, mut calls: Vec<Call<'_, T>>) -> Result<(usize, T)> {
    let exec = ctx.exec.clone();
    let name: StepName = RACE.into();
    let expect = || Expect { position, name: &name, kind: CallKind::Effect };
    if let Some(recorded) = exec.ask(expect()).await {
        let index = recorded.result.payload().and_then(|payload| codec::decode::<usize>(payload).ok());
        let Some(index) = index.filter(|index| *index < calls.len()) else {
            let reason =
                format!("the race recorded at position {position} was won by a call that is not there any more");
            return exec.park(Error::mismatch(reason)).await;
        };
        let winner = calls.swap_remove(index);
        drop(calls);
        return winner.complete().await.map(|value| (index, value));
    }
    let (index, ran) = first(&mut calls).await;
    drop(calls);
    let won = row(position, name.clone(), StepOutput::Value(index.to_string().into()));
    let unit = Unit::by(&exec.fence).step(won);
    match ran {
        Ran::Row(row) => row.commit(unit).await.map(|value| (index, value)),
        Ran::Now(result) => {
            exec.record(unit, expect()).await;
            result.map(|value| (index, value))
        }
    }
}

/// The first half of the first call to be ready; those ready at once in their order.
async fn first<T>(calls: &mut [Call<'_, T>]) -> (usize, Ran<T>) {
    poll_fn(|cx| {
        for (index, call) in calls.iter_mut().enumerate() {
            if let Poll::Ready(ran) = Pin::new(&mut call.run).poll(cx) {
                return Poll::Ready((index, ran));
            }
        }
        Poll::Pending
    })
    .await
}

impl<'a, T: Send + 'a> IntoFuture for Race<'a, T> {
    type Output = Result<(usize, T)>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.complete())
    }
}

impl<T> std::fmt::Debug for Race<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Race").field("calls", &self.calls.len()).finish_non_exhaustive()
    }
}
