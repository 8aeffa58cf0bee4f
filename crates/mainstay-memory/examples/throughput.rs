//! How fast the store itself is: no-op workflows from enqueue over claim to outcome.
//!
//! `cargo run --release -p mainstay-memory --example throughput -- 100000`

use std::time::Duration;

use mainstay_env::{Env, block_on};
use mainstay_memory::Memory;
use mainstay_store::{
    Beat, Claim, ErrorKind, ExecutorStore, Outcome, Place, QueueStore, RegisterQueue, Registered, Registry, Result,
    StoreClock, StoreError, Submit, Unit, WriteStore,
};

const BATCH: usize = 64;

fn main() -> std::process::ExitCode {
    let count = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100_000);
    match run(count) {
        Ok(report) => {
            report_line(&report);
            std::process::ExitCode::SUCCESS
        }
        Err(error) => {
            report_line(&format!("failed: {error}"));
            std::process::ExitCode::FAILURE
        }
    }
}

#[allow(clippy::print_stdout, reason = "what a program run by hand is for")]
fn report_line(text: &str) {
    println!("{text}");
}

fn run(count: usize) -> Result<String> {
    let env = Env::system("throughput")
        .map_err(|error| StoreError::new(ErrorKind::Unavailable, "open").with_source(error))?;
    let memory = Memory::open(env.clone(), StoreClock::Server);
    let began = env.monotonic();
    block_on(enqueue(&memory, count))?;
    let enqueued = env.monotonic();
    let ran = block_on(drain(&memory))?;
    let done = env.monotonic();
    let line = |what: &str, count: usize, time: Duration| {
        format!("{what}: {count} in {:.3} s, {:.0} a second", time.as_secs_f64(), count as f64 / time.as_secs_f64())
    };
    Ok([
        line("enqueued", count, enqueued.since(began)),
        line("claimed and ended", ran, done.since(enqueued)),
        line("in all", ran, done.since(began)),
    ]
    .join("\n"))
}

async fn enqueue(memory: &Memory, count: usize) -> Result<()> {
    memory.lease_beat(Beat::new("bench~1", "bench", 1u64)).await?;
    memory.queue_register(RegisterQueue::new("jobs", "bench")).await?;
    let ids: Vec<usize> = (0..count).collect();
    for ids in ids.chunks(BATCH) {
        let submit = |id: &usize| {
            let text = format!("job-{id:09}");
            Submit::new(text.clone(), "noop", text, Place::queue("jobs")).app("bench").input("{}")
        };
        let units: Vec<Unit> = ids.iter().map(|id| Unit::new().effect(submit(id))).collect();
        all_done(memory, &units).await?;
    }
    Ok(())
}

async fn drain(memory: &Memory) -> Result<usize> {
    let mut ran = 0;
    loop {
        let claim = Claim::new("jobs", "bench~1", "bench", "v1", format!("claim-{ran}"))
            .names(vec![Registered::new("noop")])
            .budget(BATCH as u32);
        let claimed = memory.queue_claim(claim).await?;
        if claimed.rows.is_empty() {
            return Ok(ran);
        }
        let end = |fence| Unit::by(fence).outcome(Outcome::Success("null".into()));
        let units: Vec<Unit> = claimed.rows.iter().map(|row| end(&row.fence)).collect();
        all_done(memory, &units).await?;
        ran += units.len();
    }
}

async fn all_done(memory: &Memory, units: &[Unit]) -> Result<()> {
    for reply in memory.commit(units).await?.units {
        if !reply?.is_done() {
            return Err(StoreError::new(ErrorKind::Bug, "commit"));
        }
    }
    Ok(())
}
