//! What the facade offers, once through: for stores that are reached in unusual ways.

use std::sync::Arc;
use std::time::Duration;

use mainstay::prelude::*;
use mainstay::{Settings, Store};
use mainstay_env::Env;

use super::support::launch;

/// Queue with a limit of the fleet.
const FLEET: &str = "fleet";

/// Queue with a rate.
const RATED: &str = "rated";

/// Workflows that run at once.
const CROWD: u64 = 60;

#[step(retries = 2, backoff = "1ms")]
async fn flaky(_ctx: &Ctx, attempt: Attempt, number: u64) -> Result<u64> {
    if attempt.number == 1 {
        return Err(Error::new("line busy"));
    }
    Ok(number)
}

#[workflow]
async fn double(ctx: Ctx, number: u64) -> Result<u64> {
    let number = flaky(&ctx, number).await?;
    ctx.sleep(Duration::from_millis(20)).await?;
    ctx.step("double", || async { Ok(2 * number) }).await
}

#[workflow]
async fn total(ctx: Ctx, text: String) -> Result<String> {
    let first = ctx.start(double(1)).await?;
    let second = ctx.start(double(2)).queue(FLEET).await?;
    let third = ctx.run(double(3)).await?;
    let sum = first.result().await? + second.result().await? + third;
    Ok(format!("{text}: {sum}"))
}

#[workflow]
async fn fails(ctx: Ctx) -> Result<u64> {
    ctx.call("parse", || async { "none".parse::<u64>() }).await
}

#[workflow]
async fn naps(ctx: Ctx) -> Result<()> {
    ctx.sleep(Duration::from_secs(3600)).await
}

/// Whether naps may end.
#[workflow]
async fn waits(ctx: Ctx, millis: u64) -> Result<u64> {
    ctx.step("before", || async { Ok(()) }).await?;
    ctx.sleep(Duration::from_millis(millis)).await?;
    ctx.step("after", || async { Ok(millis) }).await
}

async fn engine(store: &Arc<dyn Store>, app: &str, name: &str) -> Engine {
    let often = |settings: Settings| settings.tick(Duration::from_millis(200));
    let builder = Engine::builder(store.clone())
        .app(app)
        .executor(name)
        .settings(often)
        .queue(Queue::new(format!("{app}-{FLEET}")).concurrency(8))
        .queue(Queue::new(FLEET).concurrency(8).polling(Duration::from_millis(200)))
        .queue(Queue::new(RATED).rate(20, Duration::from_millis(200)).polling(Duration::from_millis(200)))
        .register(double)
        .register(total)
        .register(fails)
        .register(naps)
        .register(waits);
    launch(builder).await
}

/// Goes once through the facade on a store. Fails where anything is not as on any other store.
pub(crate) async fn run(store: &Arc<dyn Store>, app: &str) {
    let env = store.env().clone();
    let first = engine(store, app, "one").await;
    starts(&first).await;
    ends(&first, &env).await;
    crowds(&first).await;
    // What is left in the middle goes on in the next engine.
    let left = first.start(waits(700)).id("left").await.expect("a start");
    first.shutdown(Duration::from_millis(100)).await.expect("an end");
    drop(left);
    let second = engine(store, app, "two").await;
    let left = second.handle(waits, "left");
    assert_eq!(left.result().timeout(Duration::from_secs(20)).await.expect("it went on"), 700);
    second.shutdown(Duration::from_secs(5)).await.expect("an end");
}

async fn starts(engine: &Engine) {
    let odd = "it's \"odd\" \\ \u{1F980} \n\t$1 ; -- %s";
    let handle = engine.start(total(odd.to_owned())).id("total").await.expect("a start");
    assert_eq!(handle.result().await.expect("a result"), format!("{odd}: 12"));
    let again = engine.start(total("other".to_owned())).id("total").await.expect("the same");
    assert_eq!(again.result().await.expect("the first result"), format!("{odd}: 12"));
    let clash = engine.start(double(1)).id("total").await.expect_err("an id of another function");
    assert_eq!(clash.kind(), ErrorKind::Conflict);
    let delayed = engine.start(double(4)).queue(FLEET).delay(Duration::from_millis(300)).priority(3).await;
    let delayed = delayed.expect("a start");
    let held = engine.start(double(5)).queue(FLEET).delay(Duration::from_secs(600)).unique("key").await;
    let held = held.expect("a start");
    let second = engine.start(double(6)).queue(FLEET).unique("key").await.expect_err("the key is held");
    assert_eq!(second.kind(), ErrorKind::Conflict);
    held.cancel().await.expect("a cancellation");
    assert_eq!(delayed.result().await.expect("a result"), 8);
}

async fn ends(engine: &Engine, env: &Env) {
    let failed = engine.start(fails()).await.expect("a start").result().await.expect_err("it fails");
    assert_eq!((failed.kind(), failed.name()), (ErrorKind::App, "ParseIntError"));
    let handle = engine.start(naps()).id("nap").await.expect("a start");
    let late = handle.result().timeout(Duration::from_millis(50)).await.expect_err("it sleeps");
    assert_eq!(late.kind(), ErrorKind::Timeout);
    handle.cancel().await.expect("a cancellation");
    assert_eq!(handle.result().await.expect_err("cancelled").kind(), ErrorKind::Cancelled);
    engine.resume("nap").await.expect("a resume");
    while handle.status().await.expect("a status") != Status::Pending {
        env.sleep(Duration::from_millis(10)).await;
    }
    handle.cancel().await.expect("a cancellation");
    assert_eq!(handle.result().await.expect_err("cancelled").kind(), ErrorKind::Cancelled);
    let over = engine.start(naps()).timeout(Duration::from_millis(200)).await.expect("a start");
    assert_eq!(over.result().await.expect_err("its time is over").kind(), ErrorKind::Cancelled);
    let none = engine.handle_by_id::<u64>("none").result().await.expect_err("no such workflow");
    assert_eq!(none.kind(), ErrorKind::NotFound);
}

async fn crowds(engine: &Engine) {
    let start = |number: u64| {
        let queue = [FLEET, RATED][usize::from(number.is_multiple_of(2))];
        engine.start(double(number)).queue(queue).into_future()
    };
    let started = futures_util::future::join_all((0..CROWD).map(start)).await;
    let handles: Vec<Handle<u64>> = started.into_iter().map(|handle| handle.expect("a start")).collect();
    let results = futures_util::future::join_all(handles.iter().map(|handle| handle.result().into_future())).await;
    for (number, result) in (0..).zip(results) {
        assert_eq!(result.expect("a result"), 2 * number);
    }
}
