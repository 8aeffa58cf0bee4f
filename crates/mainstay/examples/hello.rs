//! The smallest program: one workflow of two steps, on a store in memory.
//!
//! ```text
//! cargo run -p mainstay --example hello
//! ```

#![allow(clippy::print_stdout, reason = "a program talks to its user")]

use std::time::Duration;

use mainstay::prelude::*;

#[step]
async fn greeting(_ctx: &Ctx, name: &str) -> Result<String> {
    Ok(format!("hello, {name}"))
}

#[workflow]
async fn hello(ctx: Ctx, name: String) -> Result<String> {
    let text = greeting(&ctx, &name).await?;
    let loud = ctx.step("loud", || async { Ok(text.to_uppercase()) }).await?;
    Ok(format!("{text}, {loud}!"))
}

#[tokio::main]
async fn main() -> Result<()> {
    let engine = Engine::builder(mainstay::memory()).app("hello").register(hello).launch().await?;
    let handle = engine.start(hello("world".to_owned())).id("hello-1").await?;
    println!("{}", handle.result().await?);
    // The same id is the same workflow: nothing runs again.
    let again = engine.start(hello("somebody else".to_owned())).id("hello-1").await?;
    println!("{}", again.result().await?);
    engine.shutdown(Duration::from_secs(5)).await
}
