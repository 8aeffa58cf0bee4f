//! Functions that cannot be workflows.
#![allow(unused_imports, reason = "nothing of this expands")]

use mainstay::{Ctx, Result, workflow};

#[workflow]
fn not_async(ctx: Ctx) -> Result<()> {
    Ok(())
}

#[workflow]
async fn without_context() -> Result<()> {
    Ok(())
}

#[workflow]
async fn without_context_but_arguments(order: String, cents: u64) -> Result<()> {
    Ok(())
}

#[workflow]
async fn borrowed_context(ctx: &Ctx, order: String) -> Result<()> {
    Ok(())
}

#[workflow]
async fn context_in_pieces(Ctx { .. }: Ctx) -> Result<()> {
    Ok(())
}

#[workflow]
async fn without_return_type(ctx: Ctx) {}

#[workflow]
async fn infallible(ctx: Ctx) -> u32 {
    1
}

#[workflow]
async fn result_of_what(ctx: Ctx) -> std::fmt::Result {
    Ok(())
}

#[workflow]
async fn borrowed_result(ctx: Ctx) -> Result<&'static str> {
    Ok("")
}

#[workflow]
async fn result_without_a_name(ctx: Ctx) -> Result<Vec<impl Clone>> {
    Ok(vec![1])
}

#[workflow]
async fn generic<T>(ctx: Ctx, value: T) -> Result<()> {
    Ok(())
}

#[workflow]
async fn conditional(ctx: Ctx) -> Result<()>
where
    Ctx: Clone,
{
    Ok(())
}

#[workflow]
async unsafe extern "C" fn qualified(ctx: Ctx) -> Result<()> {
    Ok(())
}

#[workflow]
struct Shop;

impl Shop {
    #[workflow]
    async fn method(&self, ctx: Ctx) -> Result<()> {
        Ok(())
    }

    #[workflow]
    async fn associated(ctx: Ctx) -> Result<()> {
        Self::helper();
        Ok(())
    }
}

trait Sell {
    #[workflow]
    async fn declared(ctx: Ctx) -> Result<()>;
}

// Everything that is wrong is said at once.
#[workflow(nam = "x")]
fn all_at_once(ctx: &Ctx, order: &str, (a, b): (u8, u8)) -> u32 {
    1
}

fn main() {}
