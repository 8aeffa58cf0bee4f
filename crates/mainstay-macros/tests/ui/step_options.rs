//! Options of a step that are wrong.
#![allow(unused_imports, reason = "nothing of this expands")]

use mainstay::{Ctx, Result, step};

#[step(max_retries = 3)]
async fn unknown(ctx: &Ctx) -> Result<()> {
    Ok(())
}

#[step(retries = 3, timeout = "1s", retries = 4)]
async fn given_twice(ctx: &Ctx) -> Result<()> {
    Ok(())
}

#[step(retries = -1)]
async fn negative(ctx: &Ctx) -> Result<()> {
    Ok(())
}

#[step(retries = "3", retry_if = "worth_it", name = charge)]
async fn wrong_kinds(ctx: &Ctx) -> Result<()> {
    Ok(())
}

#[step(backoff = "500", max_backoff = "1.5h", timeout = 30)]
async fn durations(ctx: &Ctx) -> Result<()> {
    Ok(())
}

#[step(timeout = "0s", backoff = "99999999999999d")]
async fn durations_out_of_range(ctx: &Ctx) -> Result<()> {
    Ok(())
}

#[step(backoff_rate = 0.5, jitter = 1.5)]
async fn numbers_out_of_range(ctx: &Ctx) -> Result<()> {
    Ok(())
}

#[step(name = "DBOS.sleep")]
async fn reserved(ctx: &Ctx) -> Result<()> {
    Ok(())
}

#[step(retries 3)]
async fn without_a_sign(ctx: &Ctx) -> Result<()> {
    Ok(())
}

fn main() {}
