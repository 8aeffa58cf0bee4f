//! Durable workflows for Rust: async functions whose finished steps are never run again.
//!
//! A workflow is an async function of a [`Ctx`] and its arguments. What it does to the world it does in steps; each step's
//! result is stored, so that a process that dies is continued from the last finished step, by its next launch or by another
//! process. Workflows are started directly or put on a [`Queue`]; everything lives in one [`Store`].
//!
//! ```
//! use mainstay::prelude::*;
//!
//! #[step]
//! async fn greeting(ctx: &Ctx, name: &str) -> Result<String> {
//!     Ok(format!("hello, {name}"))
//! }
//!
//! #[workflow]
//! async fn greet(ctx: Ctx, name: String) -> Result<String> {
//!     let text = greeting(&ctx, &name).await?;
//!     ctx.sleep(std::time::Duration::from_millis(5)).await?;
//!     Ok(text)
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<()> {
//! let engine = Engine::builder(mainstay::memory()).app("shop").register(greet).launch().await?;
//! let hello = engine.start(greet("ada".to_owned())).await?;
//! assert_eq!(hello.result().await?, "hello, ada");
//! engine.shutdown(std::time::Duration::from_secs(5)).await
//! # }
//! ```

mod open;

pub use mainstay_runtime::{
    Args, Attempt, Builder, Call, CallBody, Ctx, Engine, Error, ErrorKind, Finished, Handle, IntoRegistration,
    IntoStore, Invocation, Named, Queue, Race, Registration, Result, Run, Settings, Sleep, Spawned, Start, Stats,
    Status, StepBody, StepCall, Store, Target, Value, Wait, Workflow, WorkflowClosure, WorkflowId,
};
pub use open::{memory, open};

#[cfg(feature = "macros")]
pub use mainstay_macros::{step, workflow};

/// What most programs need: `use mainstay::prelude::*`.
///
/// ```
/// use mainstay::prelude::*;
/// fn total(prices: &[u64]) -> Result<u64> {
///     prices.iter().copied().reduce(|a, b| a + b).ok_or_else(|| Error::new("no prices"))
/// }
/// assert_eq!(total(&[2, 3]).unwrap(), 5);
/// ```
pub mod prelude {
    pub use crate::{Attempt, Ctx, Engine, Error, ErrorKind, Handle, Invocation, Queue, Result, Workflow};

    #[cfg(feature = "macros")]
    pub use crate::{step, workflow};
}

/// What the macros write refers to.
#[doc(hidden)]
pub mod __private {
    pub use mainstay_runtime::private::Fallible;
}
