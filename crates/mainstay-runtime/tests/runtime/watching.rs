//! What watches over workflows: waits for their ends, and looks at what runs here for rows that have left it.

use std::time::Duration;

use mainstay_runtime::{Attempt, Error};

use crate::support::World;
use crate::tools::{body, call, secs};

#[test]
fn a_backoff_of_nothing_stays_nothing_however_many_attempts_fail() {
    let world = World::new(10);
    let stubborn = body!(
        [] | ctx | {
            let step = ctx.step("ask", |attempt: Attempt| async move {
                if attempt.number < 1_030 { Err(Error::new("line busy")) } else { Ok(attempt.number) }
            });
            step.retries(2_000).backoff(Duration::ZERO).await
        }
    );
    let engine = world.launch(world.builder("web").function("stubborn", stubborn));
    let handle = world.run(engine.start(call::<u32>("stubborn"))).expect("start");
    assert_eq!(world.run(handle.result()).expect("result"), 1_030);
    assert!(world.elapsed() < secs(1), "{:?}", world.elapsed());
}
