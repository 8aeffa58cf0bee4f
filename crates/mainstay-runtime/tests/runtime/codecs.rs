//! What rows of other programs, and codecs of one's own, are read and written as.

use mainstay_runtime::{Codec, CodecPart, Engine, Error, ErrorKind, Invocation, Queue, Result};
use mainstay_store::{
    EffectReply, Fence, Outcome, Place, Position, RecordedStep, Standing, StepOutput, StepResult, StepRow, Submit,
    Unit, UnitReply, WorkflowStore, WriteExt, WriteStore,
};
use serde_json::{Value, json};

use crate::support::{Log, World};
use crate::tools::{body, call, secs};

/// Turns the text around; what it was given is a part's own, so that a part mixed up is not readable.
struct Turned(&'static str);

impl Codec for Turned {
    fn name(&self) -> &str {
        self.0
    }

    fn encode(&self, part: CodecPart, json: &str) -> Result<String> {
        Ok(format!("{part:?}:{}", json.chars().rev().collect::<String>()))
    }

    fn decode(&self, part: CodecPart, text: &str) -> Result<String> {
        match text.strip_prefix(&format!("{part:?}:")) {
            Some(turned) => Ok(turned.chars().rev().collect()),
            None => Err(Error::new("not turned")),
        }
    }
}

/// Fails to encode, or gives back something else.
struct Broken(bool);

impl Codec for Broken {
    fn name(&self) -> &str {
        "broken"
    }

    fn encode(&self, part: CodecPart, json: &str) -> Result<String> {
        if self.0 && part == CodecPart::Value { Err(Error::new("no key")) } else { Ok(json.to_owned()) }
    }

    fn decode(&self, part: CodecPart, text: &str) -> Result<String> {
        Ok(if part == CodecPart::Value { "null".to_owned() } else { text.to_owned() })
    }
}

/// A row of this engine's executor, which nobody runs; units write to it by the fence.
fn begun(world: &World, engine: &Engine, mut submit: Submit) -> Fence {
    submit.place = Place::Run(engine.executor_id());
    let reply = world.run(world.memory.commit(&[Unit::new().effect(submit)])).expect("a reply");
    let Some(Ok(UnitReply::Done { effects })) = reply.units.into_iter().next() else { panic!("not started") };
    let Some(EffectReply::Created(created)) = effects.into_iter().next() else { panic!("not made") };
    created.fence.expect("a fence")
}

fn write(world: &World, unit: Unit) {
    let reply = world.run(world.memory.commit(&[unit])).expect("a reply");
    assert!(matches!(reply.units.first(), Some(Ok(UnitReply::Done { .. }))), "{reply:?}");
}

/// A row that another program has made and ended.
fn foreign(world: &World, engine: &Engine, id: &str, codec: &str, outcome: Outcome) {
    let fence = begun(world, engine, submit(id, "theirs", codec, None));
    write(world, Unit::by(&fence).outcome(outcome));
}

fn enqueue(world: &World, submit: Submit) {
    assert!(world.run(world.memory.submit(submit)).expect("a reply").is_done());
}

fn submit(id: &str, name: &str, codec: &str, input: Option<&str>) -> Submit {
    let mut submit = Submit::new(id, name, id, Place::queue("jobs")).app("shop").codec(codec);
    submit.input = input.map(Into::into);
    submit
}

#[test]
fn everything_of_a_workflow_is_written_and_read_in_the_codec_of_the_engine() {
    let world = World::new(1);
    let work = body!([] | ctx, number: u64 | {
        let doubled = ctx.step("double", || async { Ok(2 * number) }).await?;
        if doubled > 100 { Err(Error::named("TooMuch", "over a hundred").with_data(doubled)) } else { Ok(doubled) }
    });
    let parent = body!(
        [] | ctx | {
            let child = ctx.start(Invocation::named("work").arg(21).returning::<u64>()).await?;
            child.result().await
        }
    );
    let builder = world.builder("web").codec(Turned("turned")).write_with("turned");
    let engine = world.launch(builder.function("work", work).function("parent", parent));

    let good = world.run(engine.start(call::<u64>("work").arg(4)).id("good")).expect("start");
    assert_eq!(world.run(good.result()).expect("result"), 8);
    let input = world.run(world.memory.workflow_input(&"good".into())).expect("read").expect("an input");
    assert_eq!(input.as_str(), "Input:}}{:\"sgrAdeman\",]4[:\"sgrAlanoitisop\"{");
    assert_eq!(world.standing("good"), Standing::Ended(Outcome::Success("Value:8".into())));
    let RecordedStep { result, codec, .. } = world.steps("good").remove(0);
    assert_eq!((result, codec), (StepResult::Value("Value:8".into()), Some("turned".into())));

    let bad = world.run(engine.start(call::<u64>("work").arg(51)).id("bad")).expect("start");
    let error = world.run(bad.result()).expect_err("over a hundred");
    assert_eq!((error.name(), error.message(), error.data()), ("TooMuch", "over a hundred", Some(&json!(102))));
    let Standing::Ended(Outcome::Error(stored)) = world.standing("bad") else { panic!("not failed") };
    assert!(stored.as_str().starts_with("Error:}"), "{stored:?}");

    assert_eq!(
        world.run(engine.start(call::<u64>("parent")).id("p")).map(|p| world.run(p.result()).ok()).ok(),
        Some(Some(42))
    );
    let labels: Vec<_> = world.steps("p").into_iter().map(|step| (step.result, step.codec)).collect();
    assert_eq!(labels[1], (StepResult::Value("Value:24".into()), Some("turned".into())));
}

#[test]
fn a_replay_reads_steps_by_their_label() {
    let world = World::new(2);
    let log = Log::default();
    let work = body!(
        [log] | ctx | {
            let one = ctx.step("one", || async { Ok(log.note("one")) }).await;
            let two = ctx.step("two", || async { Ok(0_u8) }).await?;
            Ok((one.map_err(|error| error.message().to_owned()), two))
        }
    );
    let engine =
        world.launch(world.builder("web").codec(Turned("turned")).queue(Queue::new("jobs")).function("work", work));
    let fence = begun(&world, &engine, submit("w", "work", "portable_json", Some("{}")));
    let one = StepOutput::Failure(r#"Error:}"yademos":"egassem"{"#.into());
    let one = StepRow::new(Position(0), "one", one).codec("turned");
    let two = StepRow::new(Position(1), "two", StepOutput::Value("7".into())).codec("rust_serde");
    write(&world, Unit::by(&fence).step(one).step(two));
    // The audit finds that nobody runs it.
    let (one, two): (std::result::Result<(), String>, u8) =
        world.run(engine.handle_by_id("w").result()).expect("result");
    assert_eq!((one.unwrap_err().as_str(), two), ("someday", 7));
    assert!(log.all().is_empty());
}

#[test]
fn a_row_is_answered_in_its_own_codec() {
    let world = World::new(3);
    let work = body!([] | _ctx, number: u64 | { Ok(2 * number) });
    let builder = world.builder("web").codec(Turned("turned")).queue(Queue::new("jobs"));
    let engine = world.launch(builder.function("work", work));
    let turned = "Input:}]4[:\"sgrAlanoitisop\"{";
    for (id, codec, input, stored) in [
        ("portable", "portable_json", r#"{"positionalArgs" : [4], "namedArgs" : {}}"#, "8"),
        ("bare", "rust_serde", "4", "8"),
        ("turned", "turned", turned, "Value:8"),
    ] {
        enqueue(&world, submit(id, "work", codec, Some(input)));
        assert_eq!(world.run(engine.handle_by_id::<u64>(id).result()).expect(id), 8);
        assert_eq!(world.standing(id), Standing::Ended(Outcome::Success(stored.into())), "{id}");
    }
}

#[test]
fn an_input_of_a_codec_that_is_not_known_fails_before_the_body() {
    let world = World::new(4);
    let log = Log::default();
    let work = body!([log] | _ctx, _number: Option<u64> | { Ok(log.note("ran")) });
    let builder = world.builder("web").codec(Turned("turned")).queue(Queue::new("jobs"));
    let engine = world.launch(builder.function("work", work));
    for (codec, input, says) in [
        ("py_pickle", "gASVKAAA", r#"encoded as "py_pickle", which other languages keep"#),
        ("js_superjson", r#"{"json":[4]}"#, r#"encoded as "js_superjson""#),
        ("DBOS_JSON", "NA==", r#"encoded as "DBOS_JSON""#),
        ("java_jackson", "[4]", r#"encoded as "java_jackson""#),
        ("sealed", "4", r#"encoded as "sealed", which is not known here"#),
        ("turned", "Value:4", r#"codec "turned" cannot read the input: not turned"#),
    ] {
        enqueue(&world, submit(codec, "work", codec, Some(input)));
        let error = world.run(engine.handle_by_id::<()>(codec).result()).expect_err(codec);
        assert!(error.message().contains(says), "{codec}: {error:?}");
        assert_eq!(error.kind(), ErrorKind::BadInput, "{codec}");
    }
    assert!(log.all().is_empty());
}

#[test]
fn no_input_is_none_for_a_function_without_parameters_alone() {
    let world = World::new(5);
    let log = Log::default();
    let one = body!([log] | _ctx, _number: Option<u64> | { Ok(log.note("one")) });
    let none = body!([log] | _ctx | { Ok(log.note("none")) });
    let engine =
        world.launch(world.builder("web").queue(Queue::new("jobs")).function("one", one).function("none", none));
    enqueue(&world, submit("none", "none", "portable_json", None));
    world.run(engine.handle_by_id::<()>("none").result()).expect("result");
    for (id, codec, input) in
        [("null", "portable_json", None), ("empty", "portable_json", Some("{}")), ("bare", "rust_serde", None)]
    {
        enqueue(&world, submit(id, "one", codec, input));
        let error = world.run(engine.handle_by_id::<()>(id).result()).expect_err(id);
        assert_eq!((error.kind(), error.message()), (ErrorKind::BadInput, "parameter `0` is missing"), "{id}");
    }
    assert_eq!(log.all(), ["none"]);
}

#[test]
fn results_and_errors_of_other_programs_are_read_by_their_label() {
    let world = World::new(6);
    let engine = world.launch(world.builder("web"));
    let read = |id: &str, codec: &str, outcome: Outcome| {
        foreign(&world, &engine, id, codec, outcome);
        world.run(engine.handle_by_id::<Value>(id).result())
    };
    assert_eq!(read("v1", "portable_json", Outcome::Success("[1]".into())).ok(), Some(json!([1])));
    assert_eq!(read("v2", "rust_serde", Outcome::Success("[1]".into())).ok(), Some(json!([1])));
    for (codec, text) in [("py_pickle", "gAR9lC4="), ("js_superjson", r#"{"json":1}"#), ("DBOS_JSON", "MQ==")] {
        let error = read(&format!("v-{codec}"), codec, Outcome::Success(text.into())).expect_err(codec);
        assert_eq!(error.kind(), ErrorKind::Mismatch, "{codec}");
        assert!(error.message().contains(&format!("encoded as {codec:?}")), "{error:?}");
    }
    for (id, codec, text, name, message) in [
        ("e1", "portable_json", r#"{"name":"ValueError","message":"m","code":null}"#, "ValueError", "m"),
        ("e2", "js_superjson", r#"{"json":{"name":"TypeError","message":"m"}}"#, "TypeError", "m"),
        ("e3", "rust_serde", r#"{"Application":{"name":"Own","message":"m"}}"#, "Own", "m"),
        ("e4", "rust_serde", r#"{"Application":"declined"}"#, "Error", "declined"),
        ("e5", "rust_serde", r#"{"Application":{"Card":7}}"#, "Error", r#"{"Card":7}"#),
        ("e6", "rust_serde", r#"{"StepTimeout":{"step":"s"}}"#, "StepTimeout", r#"StepTimeout: {"step":"s"}"#),
        ("e7", "rust_serde", r#""Cancelled""#, "Cancelled", "Cancelled"),
        ("e8", "rust_serde", "failed: raw", "Error", "failed: raw"),
    ] {
        let error = read(id, codec, Outcome::Error(text.into())).expect_err(id);
        assert_eq!((error.name(), error.message()), (name, message), "{id}");
    }
    let pickled = read("e9", "py_pickle", Outcome::Error("gASVOQ==".into())).expect_err("failed");
    assert!(pickled.message().contains(r#"an error that is encoded as "py_pickle""#), "{pickled:?}");
}

#[test]
fn a_body_that_awaits_a_text_it_cannot_read_is_set_aside_until_it_can() {
    let world = World::new(7);
    let parent = body!([] | ctx | { ctx.start(call::<u64>("theirs")).id("child").queue("jobs").await?.result().await });
    let first = world.launch(world.builder("one").function("parent", parent).queue(Queue::new("jobs")));
    foreign(&world, &first, "child", "turned", Outcome::Success("Value:24".into()));
    let start = call::<u64>("parent");
    let waiting = world.run(first.start(start).id("p")).expect("start");
    let error = world.run(waiting.result()).expect_err("set aside");
    assert_eq!(error.kind(), ErrorKind::Parked);
    world.run(first.shutdown(secs(1))).expect("shutdown");

    let second = world.launch(world.builder("two").codec(Turned("turned")).function("parent", parent));
    world.run(second.resume("p")).expect("resume");
    assert_eq!(world.run(second.handle_by_id::<u64>("p").result()).expect("result"), 42);
}

#[test]
fn a_value_that_the_codec_cannot_give_back_is_refused_when_it_is_written() {
    for (fails, says) in [(true, r#"codec "broken": no key"#), (false, r#"codec "broken" does not give back"#)] {
        let world = World::new(8);
        let work = body!([] | ctx | { ctx.step("one", || async { Ok(1_u8) }).await });
        let builder = world.builder("web").codec(Broken(fails)).write_with("broken");
        let engine = world.launch(builder.function("work", work));
        let handle = world.run(engine.start(call::<u8>("work")).id("w")).expect("start");
        let error = world.run(handle.result()).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::BadOutput);
        assert!(error.message().contains(says), "{error:?}");
    }
}

#[test]
fn a_codec_has_a_name_of_its_own() {
    for name in ["", "portable_json", "rust_serde", "py_pickle", "js_superjson", "DBOS_JSON", "java_jackson"] {
        let world = World::new(9);
        let launch = world.run(world.builder("web").codec(Turned(name)).launch());
        assert_eq!(launch.expect_err(name).kind(), ErrorKind::Refused, "{name:?}");
    }
    let world = World::new(10);
    let twice = world.builder("web").codec(Turned("turned")).codec(Turned("turned"));
    assert!(world.run(twice.launch()).expect_err("twice").message().contains("registered twice"));
}

#[test]
fn arguments_go_out_by_position_and_by_name() {
    let world = World::new(11);
    let engine = world.launch(world.builder("web"));
    let input = |id: &str| world.run(world.memory.workflow_input(&id.into())).expect("read").expect("an input");
    let start = |id: &str, call: Invocation<mainstay_runtime::Named>| {
        world.run(engine.start(call).id(id).queue("theirs")).map(|_| input(id).as_str().to_owned())
    };
    let both = Invocation::named("f").arg("a\u{0}é").arg(u64::MAX).named_arg("note", Option::<u8>::None);
    let stored = r#"{"positionalArgs":["a\u0000é",18446744073709551615],"namedArgs":{"note":null}}"#;
    assert_eq!(start("both", both).expect("start"), stored);
    let none = start("none", Invocation::named("f").class("C").instance("i")).expect("start");
    assert_eq!(none, r#"{"positionalArgs":[],"namedArgs":{}}"#);
    let twice = Invocation::named("f").named_arg("a", 1).named_arg("a", 2);
    assert!(start("twice", twice).expect_err("twice").message().contains("argument `a` is given twice"));

    let bare = |id: &str, call: Invocation<mainstay_runtime::Named>| {
        world.run(engine.start(call).id(id).queue("theirs").codec("rust_serde")).map(|_| input(id).as_str().to_owned())
    };
    assert_eq!(bare("one", Invocation::named("f").arg(json!({ "a": 1 }))).expect("start"), r#"{"a":1}"#);
    assert_eq!(bare("zero", Invocation::named("f")).expect("start"), "null");
    let several = bare("two", Invocation::named("f").arg(1).arg(2)).expect_err("two");
    assert_eq!(several.kind(), ErrorKind::BadInput);
    assert_eq!(bare("named", Invocation::named("f").named_arg("a", 1)).expect_err("named").kind(), ErrorKind::BadInput);
}

#[test]
fn what_is_over_the_cap_is_refused_before_it_is_sent() {
    let world = World::new(12);
    let work = body!([] | ctx, bytes: usize | {
        let text = ctx.step("make", || async move { Ok("x".repeat(bytes)) }).await?;
        Ok(text.len())
    });
    let builder = world.builder("web").max_payload(200).codec(Turned("turned"));
    let engine = world.launch(builder.function("work", work));
    let length = |bytes: usize| {
        let handle = world.run(engine.start(call::<usize>("work").arg(bytes)))?;
        world.run(handle.result())
    };
    assert_eq!(length(190).expect("within"), 190);
    let over = length(210).expect_err("over");
    assert_eq!(over.kind(), ErrorKind::BadOutput);
    assert!(over.message().contains("has 212 bytes, at most 200 are allowed"), "{over:?}");
    let input = world.run(engine.start(call::<usize>("work").arg("x".repeat(200)))).expect_err("over");
    assert_eq!(input.kind(), ErrorKind::Refused);
    // The stored form counts.
    let turned = world.run(engine.start(call::<usize>("work").arg("x".repeat(157))).codec("turned")).expect_err("over");
    assert!(turned.message().contains("has 201 bytes"), "{turned:?}");
}
