//! A workflow that gives its work to a queue, part by part, and gathers the results.
//!
//! ```text
//! cargo run -p mainstay --example fan_out
//! ```

#![allow(clippy::print_stdout, reason = "a program talks to its user")]

use std::time::Duration;

use futures_util::future::join_all;
use mainstay::prelude::*;

/// Adds up the squares of a range; one part of the work.
#[workflow]
async fn squares(ctx: Ctx, from: u64, to: u64) -> Result<u64> {
    ctx.step("sum", || async move { Ok((from..to).map(|number| number * number).sum()) }).await
}

/// Cuts a range into parts, has the queue work on them, and adds up what comes back.
#[workflow]
async fn all_squares(ctx: Ctx, to: u64) -> Result<u64> {
    let mut parts = Vec::new();
    for from in (0..to).step_by(100) {
        let part = squares(from, to.min(from + 100));
        parts.push(ctx.start(part).queue("parts").await?);
    }
    let sums = join_all(parts.iter().map(|part| part.result().into_future())).await;
    sums.into_iter().sum()
}

#[tokio::main]
async fn main() -> Result<()> {
    let engine = Engine::builder(mainstay::memory())
        .app("fan-out")
        // At most four parts at once in this process.
        .queue(Queue::new("parts").worker_concurrency(4))
        .register(squares)
        .register(all_squares)
        .launch()
        .await?;
    let sum = engine.start(all_squares(1_000)).await?.result().await?;
    println!("the sum of all squares below 1000 is {sum}");
    engine.shutdown(Duration::from_secs(5)).await
}
