//! Types that the compiler refuses after the expansion: its error stands at the user's type.

use mainstay::{Ctx, Result, step, workflow};

struct Body;

struct Declined;

#[step(retries = 1)]
async fn not_clone(ctx: &Ctx, body: Body) -> Result<()> {
    let _ = body;
    Ok(())
}

#[step]
async fn other_error(ctx: &Ctx) -> Result<u32, Declined> {
    Ok(1)
}

#[workflow]
async fn other_error_too(ctx: Ctx) -> Result<u32, Declined> {
    Ok(1)
}

fn main() {}
