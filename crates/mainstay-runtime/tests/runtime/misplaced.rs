//! Calls that are made in one place and awaited in another: what a body awaits without a record is refused.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mainstay_env::BoxFuture;
use mainstay_runtime::{Call, Ctx, ErrorKind, Invocation, Result};

use crate::support::World;

type Kept = Arc<Mutex<Option<BoxFuture<'static, Result<()>>>>>;

/// Makes a call inside a step, keeps it, and lets the body await it.
fn check(what: &'static str, make: fn(&Ctx) -> BoxFuture<'static, Result<()>>) {
    let world = World::new(7);
    let engine = world.launch(world.builder("web").function("other", |_: Ctx| async { Ok(()) }).function(
        "outer",
        move |ctx: Ctx| async move {
            let kept = Kept::default();
            let make = || {
                *kept.lock().expect("no panic under the lock") = Some(make(&ctx));
                async { Ok(()) }
            };
            ctx.step("make", make).await?;
            let call = kept.lock().expect("no panic under the lock").take().expect("made");
            let error = call.await.expect_err("refused");
            assert!(error.kind() == ErrorKind::Refused && error.message().contains("awaited by a body"), "{error:?}");
            Ok(())
        },
    ));
    let result = world.run(async { engine.start(Invocation::named("outer")).id("w").await?.result().await });
    result.unwrap_or_else(|error| panic!("{what}: {error:?}"));
    assert_eq!(world.step_names("w"), ["make"], "{what}");
}

#[test]
fn what_was_made_in_a_step_is_no_call_of_the_body() {
    check("step", |ctx| Box::pin(ctx.step("inner", || async { Ok(()) }).into_future()));
    check("sleep", |ctx| Box::pin(ctx.sleep(Duration::from_secs(1)).into_future()));
    check("race", |ctx| {
        let race = ctx.race([Call::from(ctx.sleep(Duration::from_secs(1)))]);
        Box::pin(async move { race.await.map(|_| ()) })
    });
    check("start", |ctx| {
        let start = ctx.start(Invocation::named("other")).id("other-1");
        Box::pin(async move { start.await.map(|_| ()) })
    });
}
