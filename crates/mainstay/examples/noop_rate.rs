//! How fast the engine runs workflows that do nothing: started, run and awaited, on a store of your choice.
//!
//! `cargo run --release -p mainstay --example noop_rate -- [COUNT] [STORE]`; 100,000 on `memory:` unless said otherwise.
//! Half of the time directly, half through a queue.

use std::time::Duration;

use futures_util::future::join_all;
use mainstay::prelude::*;

/// Starts that are under way at once.
const CALLERS: usize = 512;

#[tokio::main]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let count: usize = args.next().map_or(Ok(100_000), |text| text.parse())?;
    let url = args.next().unwrap_or_else(|| "memory:".to_owned());
    let store = mainstay::open(&url).await?;
    let clock = store.env().clone();
    let engine = Engine::builder(store)
        .app("rates")
        .queue(Queue::new("jobs"))
        .function("noop", |_: Ctx, n: usize| async move { Ok(n) })
        .launch()
        .await?;
    for queue in [None, Some("jobs")] {
        let began = clock.monotonic();
        let callers = (0..CALLERS).map(|caller| call(engine.clone(), queue, caller, count));
        join_all(callers).await.into_iter().collect::<Result<()>>()?;
        report(queue.unwrap_or("started directly"), count, clock.monotonic().since(began));
    }
    engine.shutdown(Duration::from_secs(10)).await
}

/// Starts every `CALLERS`th workflow and waits for its result, one after the other.
async fn call(engine: Engine, queue: Option<&'static str>, caller: usize, count: usize) -> Result<()> {
    for n in (caller..count).step_by(CALLERS) {
        let call = Invocation::named("noop").arg(n).returning::<usize>();
        let start = match queue {
            Some(queue) => engine.start(call).queue(queue),
            None => engine.start(call),
        };
        if start.await?.result().await? != n {
            return Err(Error::new("a wrong result"));
        }
    }
    Ok(())
}

#[allow(clippy::print_stdout, reason = "what a program run by hand is for")]
fn report(what: &str, count: usize, took: Duration) {
    println!("{what}: {count} in {:.2} s, {:.0} a second", took.as_secs_f64(), count as f64 / took.as_secs_f64());
}
