//! The wait for a result, and its limit.

use std::fmt;
use std::future::IntoFuture;
use std::time::Duration;

use mainstay_env::BoxFuture;
use mainstay_store::Position;
use serde::de::DeserializeOwned;

use super::Handle;
use crate::call::Call;
use crate::ctx::{InStep, Made};
use crate::error::Result;

/// A wait for a result; awaiting it gives the result.
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
/// let wait: mainstay::Wait<u64> = engine.start(double(4)).await?.result();
/// assert_eq!(wait.await?, 8);
/// # engine.shutdown(Duration::from_secs(5)).await
/// # }
/// ```
#[must_use = "a wait does nothing until it is awaited"]
pub struct Wait<T> {
    pub(super) handle: Handle<T>,
    pub(super) place: Made,
    pub(super) limit: Option<Limit>,
}

/// How long a wait lasts at most, and where a body records that.
pub(crate) struct Limit {
    pub(super) duration: Duration,
    pub(super) at: Option<Position>,
}

impl<T: DeserializeOwned + Send + 'static> Wait<T> {
    /// Waits this long at most, then gives an error of kind [`Timeout`](crate::ErrorKind::Timeout). The workflow goes on.
    ///
    /// In a body it takes a position of its own, and the limit counts on through restarts. To be said at once.
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
    /// let error = handle.result().timeout(Duration::from_millis(5)).await.unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Timeout);
    /// # handle.cancel().await?;
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn timeout(mut self, limit: Duration) -> Self {
        let at = match &self.place {
            Made::At(ctx, _) => match ctx.make("handle.result", 1, InStep::Refused) {
                Made::At(_, at) => Some(at),
                Made::Unrecorded => None,
                Made::Refused(error) => {
                    self.place = Made::Refused(error);
                    None
                }
            },
            _ => None,
        };
        self.limit = Some(Limit { duration: limit, at });
        self
    }
}

impl<T: DeserializeOwned + Send + 'static> From<Wait<T>> for Call<'static, T> {
    fn from(wait: Wait<T>) -> Self {
        let Wait { handle, place, limit } = wait;
        handle.awaited(place, limit)
    }
}

impl<T: DeserializeOwned + Send + 'static> IntoFuture for Wait<T> {
    type Output = Result<T>;
    type IntoFuture = BoxFuture<'static, Result<T>>;

    fn into_future(self) -> Self::IntoFuture {
        Call::from(self).into_future()
    }
}

impl<T> fmt::Debug for Wait<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait").field("workflow", &self.handle.id).finish_non_exhaustive()
    }
}
