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
    fn instance(&self) -> Option<String> {
        None
    }

    /// The body; run from the top by every execution.
    fn run(&self, ctx: Ctx, args: Self::Args) -> impl Future<Output = Result<Self::Output>> + Send;

    /// A call of it with these arguments, to be given to `start` or `run`.
    #[must_use]
    fn invoke(args: Self::Args) -> Invocation<Self>
    where
        Self: Sized,
    {
        Invocation::of(args)
    }
}
