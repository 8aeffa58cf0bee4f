//! An engine on a store of one's own, from a crate that knows the facade and the store's contract alone.

mod trailed;

use std::sync::Arc;
use std::time::Duration;

use mainstay::prelude::*;

pub use trailed::{Entry, Trailed};

#[workflow]
async fn checkout(ctx: Ctx, cents: u64) -> Result<String> {
    let payment = ctx.step("charge", || async move { Ok(format!("paid {cents} cents")) }).await?;
    ctx.step("mail", || async { Ok(format!("a mail says: {payment}")) }).await
}

/// Runs a workflow of two steps to its end on this store.
///
/// # Errors
/// Those of the engine.
pub async fn run(store: Arc<Trailed>) -> Result<String> {
    let engine = Engine::builder(store).app("shop").register(checkout).launch().await?;
    let result = engine.start(checkout(995)).id("order-42").await?.result().await;
    engine.shutdown(Duration::from_secs(5)).await?;
    result
}
