//! Arguments that a workflow cannot have, and options that are wrong.
#![allow(unused_imports, reason = "nothing of this expands")]

use std::borrow::Cow;

use mainstay::{Ctx, Result, workflow};

struct Order {
    id: u64,
}

#[workflow]
async fn borrowed(ctx: Ctx, order: &str, all: Vec<&Order>) -> Result<()> {
    Ok(())
}

#[workflow]
async fn lifetime(ctx: Ctx, order: Cow<'_, str>) -> Result<()> {
    Ok(())
}

#[workflow]
async fn without_a_name(ctx: Ctx, order: impl Into<String>) -> Result<()> {
    Ok(())
}

#[workflow]
async fn in_pieces(ctx: Ctx, Order { id }: Order, _: u8, (a, b): (u8, u8)) -> Result<()> {
    Ok(())
}

#[workflow]
async fn attributes(ctx: Ctx, #[cfg(unix)] order: u8) -> Result<()> {
    Ok(())
}

#[workflow]
async fn nine(ctx: Ctx, a: u8, b: u8, c: u8, d: u8, e: u8, f: u8, g: u8, h: u8, i: u8) -> Result<()> {
    Ok(())
}

#[workflow(nam = "x", retries = 3)]
async fn unknown_option(ctx: Ctx) -> Result<()> {
    Ok(())
}

#[workflow(name = "a", name = "b")]
async fn option_given_twice(ctx: Ctx) -> Result<()> {
    Ok(())
}

#[workflow(name = "", class = 5, max_attempts = 0, crate = "mainstay")]
async fn wrong_values(ctx: Ctx) -> Result<()> {
    Ok(())
}

#[workflow(name)]
async fn without_a_value(ctx: Ctx) -> Result<()> {
    Ok(())
}

#[workflow(name = )]
async fn without_a_value_either(ctx: Ctx) -> Result<()> {
    Ok(())
}

#[workflow("checkout")]
async fn value_alone(ctx: Ctx) -> Result<()> {
    Ok(())
}

#[workflow(name = "a\0b", max_attempts = "5")]
async fn name_with_nul(ctx: Ctx) -> Result<()> {
    Ok(())
}

fn main() {}
