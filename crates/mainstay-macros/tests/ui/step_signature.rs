//! Functions that cannot be steps, and arguments that a step cannot have.
#![allow(unused_imports, reason = "nothing of this expands")]

use mainstay::{Attempt, Ctx, Result, step};

#[step]
fn not_async(ctx: &Ctx) -> Result<()> {
    Ok(())
}

#[step]
async fn without_context() -> Result<()> {
    Ok(())
}

#[step]
async fn context_later(card: &str, ctx: &Ctx) -> Result<()> {
    Ok(())
}

#[step]
async fn owned_context(ctx: Ctx) -> Result<()> {
    Ok(())
}

#[step]
async fn mutable_context(ctx: &mut Ctx) -> Result<()> {
    Ok(())
}

#[step]
async fn without_return_type(ctx: &Ctx) {}

#[step]
async fn infallible(ctx: &Ctx) -> Option<u32> {
    None
}

#[step]
async fn borrowed_result(ctx: &Ctx, card: &str) -> Result<Option<&str>> {
    Ok(Some(card))
}

#[step]
async fn changes(ctx: &Ctx, total: &mut u64, all: Option<&mut String>) -> Result<()> {
    Ok(())
}

#[step]
async fn without_a_name(ctx: &Ctx, text: impl ToString, other: &impl ToString) -> Result<()> {
    Ok(())
}

#[step]
async fn in_pieces(ctx: &Ctx, (a, b): (u8, u8)) -> Result<()> {
    Ok(())
}

#[step]
async fn late_attempt(ctx: &Ctx, card: &str, attempt: Attempt) -> Result<()> {
    Ok(())
}

#[step]
async fn borrowed_attempt(ctx: &Ctx, attempt: &Attempt) -> Result<()> {
    Ok(())
}

struct Shop;

impl Shop {
    #[step]
    async fn charge(&self, ctx: &Ctx, card: &str, (cents, _): (u64, u8)) -> Result<()> {
        Ok(())
    }

    #[step]
    async fn associated(ctx: &Ctx, shop: &Self) -> Result<()> {
        Ok(())
    }
}

#[step]
const CENTS: u64 = 5;

fn main() {}
