//! What a workflow is: a name, its parameters, and a body.

use std::future::Future;

use mainstay_store::wire;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::args::Args;
use crate::ctx::Ctx;
use crate::error::Result;
use crate::invocation::Invocation;

/// A workflow function. `#[workflow]` writes this for a function; a struct implements it to carry its dependencies.
///
/// The body must take every decision from its arguments and from what durable calls gave it, so that it takes the same
/// way when it is run again from the top.
///
/// ```
/// # use mainstay::prelude::*;
/// # use std::time::Duration;
/// struct Mailer {
///     sender: String,
/// }
///
/// impl Workflow for Mailer {
///     type Args = (String,);
///     type Output = String;
///     const NAME: &'static str = "mail";
///     const PARAMS: &'static [&'static str] = &["to"];
///
///     async fn run(&self, ctx: Ctx, (to,): (String,)) -> Result<String> {
///         ctx.step("send", || async { Ok(format!("{} to {to}", self.sender)) }).await
///     }
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let engine = Engine::builder(mainstay::memory())
///     .app("shop")
///     .register(Mailer { sender: "shop".to_owned() })
///     .launch()
///     .await?;
/// let sent = engine.start(Mailer::invoke(("ada".to_owned(),))).await?;
/// assert_eq!(sent.result().await?, "shop to ada");
/// # engine.shutdown(Duration::from_secs(5)).await
/// # }
/// ```
pub trait Workflow: Send + Sync + 'static {
    /// Its arguments: a tuple of up to eight.
    type Args: Args;
    /// What it returns.
    type Output: Serialize + DeserializeOwned + Send + 'static;
    /// The name that its rows carry; a change of it strands what is stored under the old one.
    const NAME: &'static str;
    /// Names of its parameters, in order, by which named arguments of other programs are matched.
    const PARAMS: &'static [&'static str];
    /// The class that rows of other languages carry, where there is one.
    const CLASS: Option<&'static str> = None;
    /// Most executions of one row between two resumes, unless its registration says otherwise.
    const MAX_ATTEMPTS: u32 = wire::MAX_ATTEMPTS;

    /// The configured instance that this value is, where one class is registered several times.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// struct Reports(&'static str);
    ///
    /// impl Workflow for Reports {
    ///     type Args = ();
    ///     type Output = String;
    ///     const NAME: &'static str = "monthly";
    ///     const PARAMS: &'static [&'static str] = &[];
    ///     const CLASS: Option<&'static str> = Some("Reports");
    ///
    ///     fn instance(&self) -> Option<String> {
    ///         Some(self.0.to_owned())
    ///     }
    ///
    ///     async fn run(&self, _ctx: Ctx, (): ()) -> Result<String> {
    ///         Ok(format!("a report on {}", self.0))
    ///     }
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let builder = Engine::builder(mainstay::memory()).app("shop").register(Reports("eu")).register(Reports("us"));
    /// # let engine = builder.launch().await?;
    /// let us = engine.start(Reports::invoke(()).instance("us")).await?;
    /// assert_eq!(us.result().await?, "a report on us");
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    fn instance(&self) -> Option<String> {
        None
    }

    /// The body; run from the top by every execution.
    fn run(&self, ctx: Ctx, args: Self::Args) -> impl Future<Output = Result<Self::Output>> + Send;

    /// A call of it with these arguments, to be given to `start` or `run`.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # struct Double;
    /// # impl Workflow for Double {
    /// #     type Args = (u64,);
    /// #     type Output = u64;
    /// #     const NAME: &'static str = "double";
    /// #     const PARAMS: &'static [&'static str] = &["number"];
    /// #     async fn run(&self, _ctx: Ctx, (number,): (u64,)) -> Result<u64> {
    /// #         Ok(2 * number)
    /// #     }
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// # let engine = Engine::builder(mainstay::memory()).app("shop").register(Double).launch().await?;
    /// assert_eq!(engine.start(Double::invoke((4,))).await?.result().await?, 8);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    #[must_use]
    fn invoke(args: Self::Args) -> Invocation<Self>
    where
        Self: Sized,
    {
        Invocation::of(args)
    }
}
