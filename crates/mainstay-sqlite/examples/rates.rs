//! What a file does in a second: `cargo run --release -p mainstay-sqlite --example rates`.

use std::error::Error;
use std::io::Write;
use std::time::Duration;

use mainstay_env::Monotonic;
use mainstay_sqlite::{Config, Sqlite};
use mainstay_store::{
    Beat, Claim, Created, EffectReply, Env, ErrorKind, ExecutorStore, Fence, Outcome, Place, QueueStore, Registered,
    StepOutput, StepRow, StoreClock, StoreError, Submit, Unit, UnitReply, WriteExt, WriteStore, wire,
};

type Done<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// How long a rate is measured.
const SPAN: Duration = Duration::from_secs(3);

/// Workflows that are enqueued and drained.
const ROWS: u32 = 20_000;

/// Units of one commit in the drain.
const BATCH: usize = 128;

fn main() -> Done<()> {
    let env = Env::system("rates")?;
    let folder = std::env::args().nth(1).unwrap_or_else(|| "target".to_owned());
    mainstay_env::block_on(env.tasks().spawn("rates", measure(env.clone(), folder)))?
}

async fn measure(env: Env, folder: String) -> Done<()> {
    for callers in [1, 16, 64, 256] {
        let (store, _folder) = fresh(&env, &folder).await?;
        let rate = steps(&env, &store, callers).await?;
        say(&format!("steps, {callers} callers of one unit: {rate:.0}/s"));
        store.close().await;
    }
    let (store, _folder) = fresh(&env, &folder).await?;
    let begun = env.monotonic();
    for chunk in 0..ROWS / 500 {
        let units: Vec<Unit> = (0..500).map(|n| enqueue(&env, &format!("{chunk}-{n}"))).collect();
        store.commit(&units).await?;
    }
    say(&format!("enqueued, 500 a commit: {:.0}/s", rate(&env, begun, ROWS)));
    let begun = env.monotonic();
    let fences = claim_all(&env, &store).await?;
    say(&format!("claimed, 64 a claim: {:.0}/s", rate(&env, begun, ROWS)));
    let begun = env.monotonic();
    for chunk in fences.chunks(BATCH) {
        let units: Vec<Unit> = chunk.iter().map(|fence| Unit::by(fence).outcome(success())).collect();
        store.commit(&units).await?;
    }
    say(&format!("settled, {BATCH} a commit: {:.0}/s", rate(&env, begun, ROWS)));
    store.close().await;
    Ok(())
}

fn say(line: &str) {
    // Nothing can be said on an output that is closed.
    let _ = writeln!(std::io::stdout(), "{line}");
}

fn rate(env: &Env, begun: Monotonic, count: u32) -> f64 {
    f64::from(count) / env.monotonic().since(begun).as_secs_f64()
}

fn success() -> Outcome {
    Outcome::Success("1".into())
}

async fn fresh(env: &Env, folder: &str) -> Done<(Sqlite, tempfile::TempDir)> {
    let folder = tempfile::tempdir_in(folder)?;
    let store = Sqlite::open(env, Config::new(folder.path().join("rates.db")), StoreClock::Server).await?;
    store.lease_beat(Beat::new("e~1", "app", 1_u64)).await?;
    Ok((store, folder))
}

async fn steps(env: &Env, store: &Sqlite, callers: u32) -> Done<f64> {
    let begun = env.monotonic();
    let end = begun + SPAN;
    let tasks: Vec<_> = (0..callers)
        .map(|caller| {
            let (env, store) = (env.clone(), store.clone());
            let body = async move { caller_steps(&env, &store, caller, end).await };
            (caller, body)
        })
        .map(|(caller, body)| env.tasks().spawn(format!("caller-{caller}"), body))
        .collect();
    let mut count = 0;
    for task in tasks {
        count += task.await??;
    }
    Ok(rate(env, begun, count))
}

async fn caller_steps(env: &Env, store: &Sqlite, caller: u32, end: Monotonic) -> Result<u32, StoreError> {
    let id = format!("{}-{caller}", env.ids().uuid());
    let submit = Submit::new(id, "job", env.nonce(), Place::Run("e~1".into())).app("app").input("{\"args\":[1]}");
    let fence = fence_of(store.submit(submit).await?)?;
    let mut position = 0;
    while env.monotonic() < end {
        let step = StepRow::new(position, "step", StepOutput::Value("{\"x\":1}".into()));
        match store.unit(Unit::by(&fence).step(step)).await? {
            reply if reply.is_done() => position += 1,
            _ => return Err(StoreError::new(ErrorKind::Bug, "commit")),
        }
    }
    Ok(u32::try_from(position).unwrap_or(0))
}

fn fence_of(reply: UnitReply) -> Result<Fence, StoreError> {
    let created = |effects: Vec<EffectReply>| effects.into_iter().next();
    match reply {
        UnitReply::Done { effects } => match created(effects) {
            Some(EffectReply::Created(Created { fence: Some(fence), .. })) => Ok(fence),
            _ => Err(StoreError::new(ErrorKind::Bug, "commit")),
        },
        _ => Err(StoreError::new(ErrorKind::Bug, "commit")),
    }
}

fn enqueue(env: &Env, name: &str) -> Unit {
    let place = Place::queue(wire::INTERNAL_QUEUE);
    let id = format!("{}-{name}", env.ids().uuid());
    Unit::new().effect(Submit::new(id, "job", env.nonce(), place).app("app").input("{\"args\":[1]}"))
}

async fn claim_all(env: &Env, store: &Sqlite) -> Done<Vec<Fence>> {
    let mut fences = Vec::new();
    loop {
        let claim = Claim::new(wire::INTERNAL_QUEUE, "e~1", "app", "v1", env.nonce())
            .names(vec![Registered::new("job")])
            .budget(64);
        let claimed = store.queue_claim(claim).await?;
        if claimed.rows.is_empty() {
            return Ok(fences);
        }
        fences.extend(claimed.rows.into_iter().map(|row| row.fence));
    }
}
