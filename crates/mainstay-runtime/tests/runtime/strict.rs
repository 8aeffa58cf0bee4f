//! Integers that JavaScript would round: refused in every place where a strict engine writes, exact everywhere else.

use std::fmt;

use mainstay_runtime::{Builder, Ctx, Error, ErrorKind, Result};
use mainstay_store::{Outcome, Standing, StepResult, WorkflowStore};
use serde::Serialize;
use serde_json::json;

use crate::support::World;
use crate::tools::call;

/// The first integer that is not exact in JavaScript, and its digits.
const OVER: u64 = 1 << 53;
const DIGITS: &str = "9007199254740992";

/// Places of a workflow in which a body can write an integer, and what a refused one ends with.
const PLACES: &[(&str, ErrorKind)] = &[
    ("result", ErrorKind::BadOutput),
    ("data", ErrorKind::BadOutput),
    ("code", ErrorKind::BadOutput),
    ("field", ErrorKind::BadOutput),
    ("step result", ErrorKind::BadOutput),
    ("step data", ErrorKind::BadOutput),
    ("step code", ErrorKind::BadOutput),
    ("step field", ErrorKind::BadOutput),
    ("child input", ErrorKind::Refused),
    ("child attributes", ErrorKind::Refused),
];

/// An error whose fields are recorded because its type is registered.
#[derive(Debug, Serialize)]
struct Limit {
    most: u64,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("over the limit")
    }
}

impl std::error::Error for Limit {}

fn fails(place: &str, number: u64) -> Result<u64> {
    match place {
        "result" => Ok(number),
        "data" => Err(Error::named("Declined", "no").with_data([number])),
        "code" => Err(Error::named("Declined", "no").with_code(number)),
        _ => Err(Limit { most: number })?,
    }
}

async fn place(ctx: Ctx, place: String, over: bool) -> Result<u64> {
    let number = if over { OVER } else { OVER - 1 };
    let step = place.strip_prefix("step ");
    if let Some(place) = step {
        let seen = ctx.step("one", || async { fails(place, number) }).await;
        // What the body is told is what a replay will tell it.
        return seen.inspect_err(|error| assert!(error.source().is_none(), "{error:?}"));
    }
    match place.as_str() {
        "child input" => ctx.start(call::<u64>("echo").arg(number)).await?.result().await,
        "child attributes" => {
            let child = ctx.start(call::<u64>("echo").arg(number - u64::from(over)));
            child.attributes(&json!({ "n": number })).await?.result().await
        }
        place => fails(place, number),
    }
}

fn builder(world: &World, process: &str) -> Builder {
    let echo = |_: Ctx, number: u64| async move { Ok(number) };
    world.builder(process).error::<Limit>().function("place", place).function("echo", echo)
}

/// All that is stored of a workflow and its child, as text.
fn stored(world: &World, id: &str) -> String {
    let mut payloads = Vec::new();
    for step in world.steps(id) {
        let (StepResult::Value(payload) | StepResult::Failure(payload)) = step.result else { continue };
        payloads.push(payload);
    }
    let Standing::Ended(Outcome::Success(end) | Outcome::Error(end)) = world.standing(id) else { panic!("{id} runs") };
    payloads.push(end);
    let child = format!("{id}-0");
    if let Some(row) = world.find(&child) {
        payloads.extend(row.attributes);
        payloads.extend(world.run(world.memory.workflow_input(&child.as_str().into())).expect("read"));
    }
    payloads.iter().map(|payload| payload.as_str().to_owned() + " ").collect()
}

#[test]
fn a_strict_engine_writes_no_integer_that_javascript_rounds_in_any_place_of_a_body() {
    let world = World::new(1);
    let engine = world.launch(builder(&world, "web").strict_portable());
    for &(place, kind) in PLACES {
        let start = engine.start(call::<u64>("place").arg(place).arg(true)).id(place);
        let error = world.run(world.run(start).expect("start").result()).expect_err(place);
        assert_eq!((error.kind(), world.find(&format!("{place}-0"))), (kind, None), "{place}: {error:?}");
        assert!(error.message().contains("2^53 - 1"), "{place}: {error:?}");
        assert!(!stored(&world, place).contains(DIGITS), "{place}: {}", stored(&world, place));
        let names_it = if place.ends_with("field") { "Limit: over the limit" } else { "Declined: no" };
        let of_an_error = ["data", "code", "field"].iter().any(|part| place.ends_with(part));
        assert_eq!(error.message().contains(names_it), of_an_error, "{place}: {error:?}");
        // The largest exact one passes.
        let id = format!("{place}: exact");
        let start = engine.start(call::<u64>("place").arg(place).arg(false)).id(id.as_str());
        match world.run(world.run(start).expect("start").result()) {
            Ok(number) => assert_eq!((number, of_an_error), (OVER - 1, false), "{place}"),
            Err(error) => assert!(of_an_error && error.kind() == ErrorKind::App, "{place}: {error:?}"),
        }
        assert!(stored(&world, &id).contains("9007199254740991"), "{place}: {}", stored(&world, &id));
    }
}

#[test]
fn a_strict_start_refuses_such_an_integer_in_arguments_and_attributes() {
    let world = World::new(2);
    let engine = world.launch(builder(&world, "web").strict_portable());
    let starts = [
        ("arguments", engine.start(call::<u64>("echo").arg(OVER)).id("w")),
        ("attributes", engine.start(call::<u64>("echo").arg(1)).attributes(&json!({ "n": [OVER] })).id("w")),
    ];
    for (what, start) in starts {
        let error = world.run(start).expect_err(what);
        assert!(error.kind() == ErrorKind::Refused && error.message().contains(what), "{error:?}");
        assert_eq!(world.find("w"), None);
    }
    let exact = engine.start(call::<u64>("echo").arg(OVER - 1)).attributes(&json!({ "n": OVER - 1 }));
    assert_eq!(world.run(world.run(exact).expect("start").result()).expect("exact"), OVER - 1);
}

#[test]
fn without_the_rule_an_integer_is_exact_in_every_place() {
    let world = World::new(3);
    let engine = world.launch(builder(&world, "web"));
    for &(place, _) in PLACES {
        let start = engine.start(call::<u64>("place").arg(place).arg(true)).id(place);
        match world.run(world.run(start).expect("start").result()) {
            Ok(number) => assert!(number >= OVER - 1, "{place}: {number}"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::App, "{place}: {error:?}"),
        }
        assert!(stored(&world, place).contains(DIGITS), "{place}: {}", stored(&world, place));
    }
}

#[test]
fn what_another_program_has_written_is_told_to_a_strict_body_as_it_is() {
    let world = World::new(4);
    let lax = world.launch(builder(&world, "lax"));
    world
        .run(world.run(lax.start(call::<u64>("place").arg("data").arg(true)).id("theirs")).expect("start").result())
        .expect_err("it fails");
    let engine = std::sync::Arc::new(std::sync::OnceLock::<mainstay_runtime::Engine>::new());
    let waits = crate::tools::body!(
        [engine] | _ctx | {
            let theirs = engine.get().expect("launched").handle_by_id::<u64>("theirs");
            let error = theirs.result().await.expect_err("it has failed");
            Ok(error.data().map(ToString::to_string))
        }
    );
    let strict = world.launch(builder(&world, "strict").strict_portable().function("waits", waits));
    engine.set(strict.clone()).expect("once");
    let handle = world.run(strict.start(call::<Option<String>>("waits")).id("ours")).expect("start");
    assert_eq!(world.run(handle.result()).expect("text").as_deref(), Some("[9007199254740992]"));
    assert!(matches!(world.standing("theirs"), Standing::Ended(Outcome::Error(_))));
}
