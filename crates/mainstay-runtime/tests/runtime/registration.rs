//! What can be registered and called, and what arguments, values and errors become in the store.

use std::fmt;

use mainstay_runtime::{Ctx, Error, ErrorKind, Invocation, Queue, Registration, Result, Status, Workflow};
use mainstay_store::{Outcome, Place, Standing, Submit, WriteExt};
use serde::{Deserialize, Serialize};

use crate::support::{Log, World};
use crate::tools::{body, call, secs};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Receipt {
    item: String,
    cents: u64,
}

/// A workflow without macros: its dependencies are its fields.
struct Price {
    per_piece: u64,
}

impl Workflow for Price {
    type Args = (u64, String);
    type Output = Receipt;
    const NAME: &'static str = "price";
    const PARAMS: &'static [&'static str] = &["pieces", "item"];

    async fn run(&self, ctx: Ctx, (pieces, item): Self::Args) -> Result<Receipt> {
        let per_piece = self.per_piece;
        let cents = ctx.step("price", || async move { Ok(pieces * per_piece) }).await?;
        Ok(Receipt { item, cents })
    }
}

#[test]
fn types_of_arguments_and_results_are_inferred() {
    let world = World::new(1);
    let parent = |ctx: Ctx, pieces: Vec<u64>, item: Option<String>| async move {
        let mut cents = 0;
        for pieces in pieces {
            cents += ctx.run(Price::invoke((pieces, item.clone().unwrap_or_default()))).await?.cents;
        }
        Ok(cents)
    };
    let engine = world.launch(world.builder("web").register(Price { per_piece: 7 }).function("parent", parent));
    let handle = world.run(engine.start(Price::invoke((3, "tea".to_owned()))).id("w")).expect("start");
    let receipt = world.run(handle.result()).expect("result");
    assert_eq!(receipt, Receipt { item: "tea".to_owned(), cents: 21 });
    assert_eq!(world.run(engine.handle(Price { per_piece: 0 }, "w").result()).expect("result"), receipt);
    let parent = Invocation::named("parent").arg([1, 2]).arg("tea").returning::<u64>();
    let handle = world.run(engine.start(parent)).expect("start");
    assert_eq!(world.run(handle.result()).expect("result"), 21);
}

/// One class with an instance for each town.
struct Shop(&'static str);

impl Workflow for Shop {
    type Args = ();
    type Output = String;
    const NAME: &'static str = "open";
    const PARAMS: &'static [&'static str] = &[];
    const CLASS: Option<&'static str> = Some("Shop");

    fn instance(&self) -> Option<String> {
        Some(self.0.to_owned())
    }

    async fn run(&self, _: Ctx, (): Self::Args) -> Result<String> {
        Ok(format!("{} opens", self.0))
    }
}

#[test]
fn an_identity_is_registered_once_and_class_and_instance_are_parts_of_it() {
    let world = World::new(2);
    let open = || |_: Ctx| async { Ok("plain".to_owned()) };
    let build = || world.builder("web").register(Shop("north")).register(Shop("south")).function("open", open());
    let twice = [
        (build().function("open", open()), "open is registered twice"),
        (build().register(Shop("south")), "open of class Shop (south) is registered twice"),
        (build().register(Registration::new(Shop("north"))), "open of class Shop (north) is registered twice"),
    ];
    for (builder, text) in twice {
        let error = world.run(builder.launch()).expect_err("registered twice");
        assert!(error.kind() == ErrorKind::Refused && error.message().contains(text), "{error:?}");
    }
    let engine = world.launch(build().register(Registration::new(Shop("north")).name("open too")));
    for town in ["north", "south"] {
        let handle = world.run(engine.start(Shop::invoke(()).instance(town)).id(town)).expect("start");
        assert_eq!(world.run(handle.result()).expect("result"), format!("{town} opens"));
        let row = world.row(town);
        assert_eq!((row.class, row.config), (Some("Shop".into()), Some(town.into())));
    }
    let plain = world.run(engine.start(call::<String>("open"))).expect("start");
    assert_eq!(world.run(plain.result()).expect("result"), "plain");
    let east = world.run(engine.start(Shop::invoke(()).instance("east"))).expect_err("not registered");
    assert!(east.message().contains("open of class Shop (east)"), "{east:?}");
    let taken = world.run(engine.start(call::<String>("open")).id("north")).expect_err("another function's id");
    assert_eq!(taken.kind(), ErrorKind::Conflict);
}

#[test]
fn a_workflow_without_parameters_runs_without_an_input() {
    let world = World::new(3);
    let work = body!([] | _ctx | { Ok(7_u8) });
    let engine = world.launch(world.builder("web").queue(Queue::new("jobs")).function("work", work));
    let inputs =
        [("none", None), ("empty", Some("{}")), ("nulls", Some(r#"{"positionalArgs":null,"namedArgs":null}"#))];
    for (id, input) in inputs {
        let mut submit = Submit::new(id, "work", id, Place::queue("jobs")).app("shop").codec("portable_json");
        submit.input = input.map(Into::into);
        assert!(world.run(world.memory.submit(submit)).expect("a reply").is_done());
        assert_eq!(world.run(engine.handle_by_id::<u8>(id).result()).expect(id), 7);
    }
}

#[test]
fn the_unit_is_stored_as_a_value() {
    let world = World::new(4);
    let work = body!([] | ctx | { ctx.step("nothing", || async { Ok(()) }).await });
    let engine = world.launch(world.builder("web").function("work", work));
    let handle = world.run(engine.start(call::<()>("work")).id("w")).expect("start");
    world.run(handle.result()).expect("result");
    assert_eq!(world.steps("w")[0].result.payload().map(|payload| payload.as_str()), Some("null"));
    assert_eq!(world.standing("w"), Standing::Ended(Outcome::Success("null".into())));
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Declined {
    card: String,
    cents: u64,
}

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "card {} declined", self.card)
    }
}

impl std::error::Error for Declined {}

fn declined() -> Declined {
    Declined { card: "x-1".to_owned(), cents: u64::MAX }
}

#[test]
fn an_applications_error_keeps_its_fields_on_the_first_run_in_a_replay_and_in_the_outcome() {
    let world = World::new(5);
    let log = Log::default();
    let build = |process: &str| {
        let charge = body!(
            [log] | ctx | {
                let charged = ctx
                    .call("charge", || async {
                        log.note("charge");
                        Err::<(), _>(declined())
                    })
                    .await;
                let error = charged.expect_err("declined");
                log.note(format!("{} {}", error.name(), error.decode::<Declined>() == Some(declined())));
                ctx.sleep(secs(20)).await?;
                // Thrown by the body itself this time.
                Err::<(), _>(declined())?;
                Ok(())
            }
        );
        let typed = body!([] | _ctx | { Err::<(), _>(Error::typed(declined())) });
        world.builder(process).error::<Declined>().function("charge", charge).function("typed", typed)
    };
    let first = world.launch(build("first"));
    world.run(first.start(call::<()>("charge")).id("w")).expect("start");
    world.pass(secs(2));
    world.sim.kill("first");
    let second = world.launch(build("second"));
    let typed = world.run(second.start(call::<()>("typed"))).expect("start");
    for handle in [second.handle_by_id::<()>("w"), typed] {
        let error = world.run(handle.result()).expect_err("declined");
        assert_eq!((error.kind(), error.name(), error.message()), (ErrorKind::App, "Declined", "card x-1 declined"));
        assert_eq!(error.decode::<Declined>(), Some(declined()));
    }
    assert_eq!(log.all(), ["charge", "Declined true", "Declined true"]);
}

#[test]
fn an_error_of_any_library_becomes_the_workflows_by_the_question_mark() {
    let world = World::new(6);
    let work = body!([] |ctx, text: String| {
        let n: u8 = ctx.step("parse", || async { Ok(text.parse()?) }).await?;
        Ok(String::from_utf8(vec![n])?)
    });
    let engine = world.launch(world.builder("web").function("work", work));
    for (text, name) in [("seven", "ParseIntError"), ("200", "FromUtf8Error")] {
        let handle = world.run(engine.start(call::<String>("work").arg(text)).id(text)).expect("start");
        let error = world.run(handle.result()).expect_err("an error");
        assert_eq!((error.kind(), error.name(), world.status(text)), (ErrorKind::App, name, Status::Error));
    }
}
