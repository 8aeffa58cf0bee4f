//! The attribute macros of mainstay. Programs use them through the crate `mainstay`, which exports them.
//!
//! Both write code that could be written by hand: an implementation of `mainstay::Workflow`, and a call of
//! `mainstay::Ctx::step`.

mod duration;
mod faults;
mod function;
mod options;
mod step;
mod types;
mod workflow;

use proc_macro::TokenStream;

/// Makes a workflow of `async fn name(ctx: Ctx, a: A, b: B) -> Result<T>`.
///
/// The function that remains is `fn name(a: A, b: B) -> Invocation<..>`: a typed call, which `engine.start`, `ctx.start`
/// and `ctx.run` take, while `register` and `engine.handle` take the function itself. Up to eight arguments follow the
/// context; they and `T` are owned and implement serde's traits. In the body the name still means the invocation.
///
/// Options: `name = ".."`, the name that rows carry (the function's unless set); `class = ".."`, the class of rows of
/// other languages; `max_attempts = 5`, most executions between two resumes, a number or a constant (100 unless set);
/// `crate = path`, where `mainstay` is found.
///
/// ```
/// use mainstay::prelude::*;
///
/// #[workflow(name = "add-numbers", max_attempts = 5)]
/// async fn add(_ctx: Ctx, a: u64, b: u64) -> Result<u64> {
///     Ok(a + b)
/// }
///
/// #[workflow]
/// async fn sum(ctx: Ctx, numbers: Vec<u64>) -> Result<u64> {
///     let mut total = 0;
///     for number in numbers {
///         total = ctx.run(add(total, number)).await?;
///     }
///     Ok(total)
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let engine = Engine::builder(mainstay::memory()).app("shop").register(add).register(sum).launch().await?;
/// let handle = engine.start(sum(vec![1, 2, 3])).id("six").await?;
/// assert_eq!(handle.result().await?, 6);
/// assert_eq!(engine.handle(sum, "six").result().await?, 6);
/// # engine.shutdown(std::time::Duration::from_secs(5)).await
/// # }
/// ```
#[proc_macro_attribute]
pub fn workflow(options: TokenStream, item: TokenStream) -> TokenStream {
    finish(workflow::expand(options.into(), item.into()))
}

/// Makes a step of `async fn name(ctx: &Ctx, a: A, b: &B) -> Result<T>`.
///
/// The function that remains takes a position when it is called and returns a `StepCall`: awaited, it runs the body once
/// and records what it gave; its options may be set at the call too. Borrowed arguments live as long as the call, owned
/// ones are cloned for each attempt; one that is not `Clone` is moved into the first, so a step with `retries` refuses
/// it. An `attempt: Attempt` right after the context is passed the attempt. Type and lifetime parameters are allowed.
///
/// Options: `name = ".."` (the function's unless set); `retries = 3`, `backoff = "1s"`, `backoff_rate = 2.0`,
/// `max_backoff = "1h"`, `jitter = 0.1`, `retry_if = path`, `timeout = "30s"`, as the methods of `StepCall`;
/// `crate = path`, where `mainstay` is found. A duration is a whole number of ms, s, m, h or d; numbers and durations
/// may be constants.
///
/// ```
/// use mainstay::prelude::*;
///
/// #[step(retries = 3, backoff = "10ms", timeout = "5s", retry_if = worth_it)]
/// async fn charge(ctx: &Ctx, attempt: Attempt, card: &str, cents: u64) -> Result<String> {
///     if attempt.number < 3 {
///         return Err(Error::new("line busy"));
///     }
///     Ok(format!("{cents} from {card} by attempt {}", attempt.number))
/// }
///
/// fn worth_it(error: &Error) -> bool {
///     error.message() == "line busy"
/// }
///
/// #[workflow]
/// async fn checkout(ctx: Ctx, card: String) -> Result<Vec<String>> {
///     let first = charge(&ctx, &card, 5).await?;
///     let second = charge(&ctx, &card, 7).retries(9).await?;
///     Ok(vec![first, second])
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let engine = Engine::builder(mainstay::memory()).app("shop").register(checkout).launch().await?;
/// let paid = engine.start(checkout("4242".to_owned())).await?.result().await?;
/// assert_eq!(paid, ["5 from 4242 by attempt 3", "7 from 4242 by attempt 3"]);
/// # engine.shutdown(std::time::Duration::from_secs(5)).await
/// # }
/// ```
#[proc_macro_attribute]
pub fn step(options: TokenStream, item: TokenStream) -> TokenStream {
    finish(step::expand(options.into(), item.into()))
}

fn finish(expanded: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    expanded.unwrap_or_else(|error| error.to_compile_error()).into()
}
