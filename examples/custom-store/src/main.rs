//! Runs a workflow on a store of one's own, and shows the trail that the store has kept.
//!
//! ```text
//! cargo run -p mainstay-custom-store-example
//! ```

#![allow(clippy::print_stdout, reason = "a program talks to its user")]

use std::sync::Arc;

use mainstay_custom_store_example::{Trailed, run};

#[tokio::main]
async fn main() -> mainstay::Result<()> {
    let store = Arc::new(Trailed::over(mainstay::memory()));
    println!("{}", run(store.clone()).await?);
    for entry in store.trail() {
        println!("{entry:?}");
    }
    Ok(())
}
