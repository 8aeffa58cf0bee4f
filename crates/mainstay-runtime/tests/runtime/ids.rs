//! Ids that no row can have: refused at once, and by name.

use std::sync::{Arc, OnceLock};

use mainstay_runtime::{Call, Engine, ErrorKind, Result};

use crate::support::World;
use crate::tools::{body, call, secs};

/// Ids that no row can have, and how an error shows them.
fn impossible() -> [(String, String); 3] {
    let long = "x".repeat(513);
    [("".into(), "\"\"".into()), ("a\0b".into(), r#""a\0b""#.into()), (long, format!("\"{}…\"", "x".repeat(64)))]
}

fn refused<T: std::fmt::Debug>(what: &str, shown: &str, result: Result<T>) {
    let error = result.expect_err(what);
    assert_eq!(error.kind(), ErrorKind::Refused, "{what}: {error:?}");
    assert!(error.message().contains(shown) && error.message().len() < 200, "{what}: {error:?}");
}

#[test]
fn an_id_that_no_row_can_have_is_refused_at_once_by_name() {
    let world = World::new(1);
    let engine = world.launch(world.builder("web"));
    for (id, shown) in impossible() {
        let handle = engine.handle_by_id::<u64>(&id);
        refused("result", &shown, world.run(handle.result()));
        refused("result in time", &shown, world.run(handle.result().timeout(secs(5))));
        refused("status", &shown, world.run(handle.status()));
        refused("row", &shown, world.run(handle.row()));
        refused("cancel", &shown, world.run(handle.cancel()));
        refused("resume", &shown, world.run(engine.resume(&id)));
    }
    assert_eq!(world.seconds(), 0);
}

#[test]
fn an_id_that_no_row_can_have_is_refused_in_a_body_and_costs_no_row() {
    let world = World::new(2);
    let engine = Arc::new(OnceLock::<Engine>::new());
    let asks = body!([engine] |ctx, id: String| {
        let engine = engine.get().expect("launched");
        let handle = engine.handle_by_id::<u64>(&id);
        let mut told = vec![handle.result().await.map(drop), handle.status().await.map(drop), handle.cancel().await];
        told.push(handle.result().timeout(secs(5)).await.map(drop));
        let sound = engine.handle_by_id::<u64>("sound");
        let calls = [Call::from(sound.result()), Call::from(handle.result()), Call::from(sound.result())];
        told.push(ctx.race(calls).await.map(drop));
        Ok(told.into_iter().map(|told| told.expect_err("refused").message().to_owned()).collect::<Vec<_>>())
    });
    let nap = body!(
        [] | ctx | {
            ctx.sleep(secs(50)).await?;
            Ok(7_u64)
        }
    );
    let built = world.launch(world.builder("web").function("asks", asks).function("nap", nap));
    engine.set(built.clone()).expect("once");
    world.run(built.start(call::<u64>("nap")).id("sound")).expect("start");
    for (at, (id, shown)) in impossible().into_iter().enumerate() {
        let own = format!("w{at}");
        let handle = world.run(built.start(call::<Vec<String>>("asks").arg(&id)).id(own.as_str())).expect("start");
        let told = world.run(handle.result()).expect("result");
        assert_eq!(told.len(), 5);
        assert!(told.iter().all(|message| message.contains(&shown)), "{told:?}");
        let recorded = world.step_names(&own);
        assert!(!recorded.iter().any(|name| name == "DBOS.getResult" || name == "DBOS.getStatus"), "{recorded:?}");
    }
    assert_eq!(world.seconds(), 0);
    // Neither the race nor the refusals have cost the sound one its waiter.
    assert_eq!(world.run(built.handle_by_id::<u64>("sound").result()).expect("result"), 7);
}

#[test]
fn a_child_whose_derived_id_no_row_can_have_is_refused_where_it_is_started_and_may_be_given_one() {
    let world = World::new(3);
    let parent = body!(
        [] | ctx | {
            let error = ctx.start(call::<u64>("one")).await.expect_err("too long");
            let given = ctx.start(call::<u64>("one")).id("short").await?.result().await?;
            Ok((error.kind() == ErrorKind::Refused, error.message().to_owned(), given))
        }
    );
    let one = body!([] | _ctx | { Ok(1_u64) });
    let engine = world.launch(world.builder("web").function("parent", parent).function("one", one));
    let handle = engine.start(call::<(bool, String, u64)>("parent")).id("x".repeat(511));
    let (refused, message, given) = world.run(world.run(handle).expect("start").result()).expect("result");
    assert!(refused && message.contains("513 bytes") && message.contains(".id(..)"), "{message}");
    assert_eq!(given, 1);
}
