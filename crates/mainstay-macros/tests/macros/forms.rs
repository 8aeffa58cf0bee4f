//! Forms that must compile, under every lint that a user may have switched on: the expansion adds no warning.
#![deny(warnings, unused, clippy::all, clippy::pedantic, clippy::nursery, clippy::allow_attributes_without_reason)]
#![allow(clippy::redundant_pub_crate, reason = "it asks for what unreachable_pub refuses")]
#![deny(missing_docs, unreachable_pub, refining_impl_trait, elided_lifetimes_in_paths, unused_lifetimes)]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use mainstay::{Attempt, Ctx, Error, Result, step, workflow};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// An argument without `Clone`.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    /// Which one.
    pub(super) id: String,
}

/// A workflow without arguments that does nothing.
#[workflow]
pub(super) async fn nothing(ctx: Ctx) -> Result<()> {
    Ok(())
}

/// Its argument is named like its type, and the type like the workflow.
#[workflow]
pub(super) async fn order(_: Ctx, order: Order) -> Result<Order> {
    Ok(order)
}

/// As many arguments as there may be.
#[workflow]
pub(super) async fn eight(
    _ctx: Ctx,
    a: u8,
    b: u16,
    c: u32,
    d: u64,
    e: i8,
    f: bool,
    g: char,
    h: String,
) -> Result<String> {
    Ok(format!("{a}{b}{c}{d}{e}{f}{g}{h}"))
}

/// Every option.
#[workflow(name = "other", max_attempts = 5, class = "Shop", crate = ::mainstay)]
#[allow(clippy::unused_async, reason = "an attribute of the user")]
#[must_use]
pub(super) async fn every_option(ctx: Ctx, mut count: u32) -> mainstay::Result<u32, mainstay::Error> {
    count += 1;
    if count > 100 {
        return Err(Error::new("too many"));
    }
    Ok(count)
}

const MOST: u32 = 7;

/// Names that the expansion might use itself, a constant, a keyword, a lifetime that never ends.
#[workflow(max_attempts = MOST)]
pub(super) async fn run(
    context: Ctx,
    args: (u8, [u8; 2]),
    arguments: BTreeMap<String, Vec<Option<u8>>>,
    ctx: String,
    r#type: Cow<'static, str>,
    invoke: f64,
) -> Result<(String, Cow<'static, str>)> {
    let _ = (context.workflow_id(), args, arguments, invoke);
    Ok((ctx, r#type))
}

/// Calls itself as a child.
#[workflow]
pub(super) async fn countdown(ctx: Ctx, from: u32) -> Result<u32> {
    if from == 0 { Ok(0) } else { ctx.run(countdown(from - 1)).await }
}

/// Calls steps in every form.
#[workflow]
pub(super) async fn steps(ctx: Ctx, order: Order, cents: u64) -> Result<String> {
    let card = String::from("4242");
    let receipt = charge(&ctx, &card, cents).await?;
    let (one, two) = (length(&ctx, &card, &order), length(&ctx, "x", &order));
    let sum = one.await? + two.await?;
    noop(&ctx).await?;
    let pair = generic::<u32, 2>(&ctx, 4, &[7, 8]).await?;
    let nested = borrowed(&ctx, Some(&card), &[&card, "b"], Cow::Borrowed(&card)).await?;
    let named = lifetimes(&ctx, &card, &order.id).await?;
    let moved = moved(&ctx, order, vec![1]).await?;
    let same = same_names(&ctx, "a", 1, 2).await?;
    let fetched: BTreeMap<String, u8> = fetch(&ctx, &card).await?;
    Ok(format!("{receipt} | {sum} | {pair:?} | {nested} | {named} | {moved} | {same} | {fetched:?}"))
}

fn worth_it(error: &Error) -> bool {
    error.message() != "no"
}

/// Every option.
#[step(
    name = "charge the card",
    retries = 3,
    backoff = "500ms",
    backoff_rate = 2,
    max_backoff = "1h",
    jitter = 0.1,
    timeout = "30s",
    retry_if = worth_it,
    crate = mainstay,
)]
pub(super) async fn charge(ctx: &Ctx, card: &str, cents: u64) -> Result<String> {
    let _ = ctx.workflow_id();
    Ok(format!("{card}{cents}"))
}

const RETRIES: u32 = 2;
const WAIT: Duration = Duration::from_secs(2);

/// Constants, and a closure.
#[step(retries = RETRIES, backoff = WAIT, jitter = f64::EPSILON, retry_if = |error| error.message() == "later")]
async fn length(ctx: &Ctx, text: &str, order: &Order) -> Result<usize> {
    Ok(text.len() + order.id.len())
}

#[step]
async fn noop(_: &Ctx) -> Result<()> {
    Ok(())
}

/// An attempt.
#[step(retries = 1)]
async fn generic<T, const N: usize>(ctx: &Ctx, attempt: Attempt, value: T, values: &[T; N]) -> Result<(u32, Vec<T>)>
where
    T: Serialize + DeserializeOwned + Clone + Send + Sync,
{
    let mut all = values.to_vec();
    all.push(value);
    Ok((attempt.number, all))
}

#[step]
async fn borrowed(_ctx: &Ctx, one: Option<&str>, many: &[&str], cow: Cow<'_, str>) -> Result<String> {
    Ok(format!("{one:?}{many:?}{cow}"))
}

#[step]
async fn lifetimes<'a, 'b: 'a>(ctx: &'a Ctx, one: &'a str, two: &'b str) -> Result<String> {
    let longest: &'a str = if one.is_empty() { two } else { one };
    Ok(longest.to_owned())
}

#[step]
async fn moved(ctx: &Ctx, order: Order, cloned: Vec<u8>) -> Result<String> {
    Ok(format!("{}{cloned:?}", order.id))
}

#[step]
async fn same_names(_: &Ctx, attempt: Attempt, ctx: &str, context: u8, step: u8) -> Result<String> {
    Ok(format!("{}{ctx}{context}{step}", attempt.number))
}

#[step]
async fn fetch<T>(ctx: &Ctx, key: &str) -> Result<T>
where
    T: Serialize + DeserializeOwned + Send + FromIterator<(String, u8)>,
{
    Ok(std::iter::once((key.to_owned(), 4)).collect())
}
