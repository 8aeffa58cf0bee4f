//! We enqueue for their executor, and read results and errors.

use mainstay::Named;
use mainstay::prelude::*;
use serde_json::{Value, json};

use super::{Place, THEIRS, declined, expect, expect_value, told};
use crate::ours::{self, started};
use crate::peer::Told;
use crate::values;

pub(crate) async fn our_client(place: &Place<'_>) -> Result<(), String> {
    let (engine, peer) = place.caller_and_theirs().await?;
    values_go_through(place, &engine).await?;
    errors_are_typed(place, &engine).await?;
    if place.sdk.is_portable() {
        arguments_are_matched(place, &engine).await?;
    }
    peer.end().await?;
    ours::end(engine).await
}

/// Starts for their executor: in the codec that it reads, with application and version chosen or left open.
async fn enqueue(place: &Place<'_>, engine: &Engine, call: Invocation<Named>, chosen: bool) -> Result<String, String> {
    let mut start = engine.start(call).queue(THEIRS.queue);
    if !place.sdk.is_portable() {
        start = start.codec("rust_serde");
    }
    if chosen {
        start = start.app(THEIRS.app).version(THEIRS.version);
    }
    started(start).await
}

async fn values_go_through(place: &Place<'_>, engine: &Engine) -> Result<(), String> {
    let mut sent = values::plain();
    if place.sdk.is_exact() {
        sent.extend(values::wide());
    }
    let mut ids = Vec::new();
    for value in &sent {
        ids.push(enqueue(place, engine, Invocation::named("echo").arg(value), true).await?);
    }
    for (id, value) in ids.iter().zip(&sent) {
        expect_value("echo", told(ours::result(engine, id).await?), value)?;
    }
    let id = enqueue(place, engine, Invocation::named("nothing"), false).await?;
    expect_value("nothing", told(ours::result(engine, &id).await?), &Value::Null)?;
    let row = engine.handle_by_id::<Value>(&id).row().await.map_err(|error| error.to_string())?;
    match row.app {
        Some(app) if app == THEIRS.app => Ok(()),
        other => Err(format!("a row without an application: {other:?} has it")),
    }
}

async fn errors_are_typed(place: &Place<'_>, engine: &Engine) -> Result<(), String> {
    let reason = "no \"credit\"\u{0}\n\u{1F980}";
    let id = enqueue(place, engine, Invocation::named("refuse").arg(reason), true).await?;
    let result = ours::result(engine, &id).await?;
    if place.sdk.is_portable() {
        let decoded = result.as_ref().err().and_then(|error| error.decode::<ours::Declined>());
        if decoded.map(|declined| declined.reason).as_deref() != Some(reason) {
            return Err(format!("refuse: the data is not read as its type: {result:?}"));
        }
        return expect("refuse", &told(result), &declined(reason));
    }
    let expected =
        Told::Error { name: "Declined".to_owned(), message: reason.to_owned(), code: Value::Null, data: Value::Null };
    expect("refuse", &told(result), &expected)
}

async fn arguments_are_matched(place: &Place<'_>, engine: &Engine) -> Result<(), String> {
    let join = || Invocation::named("join");
    let mut calls = vec![
        ("by position", join().arg("a").arg(7), json!("a7")),
        ("steps", Invocation::named("steps").arg(4), json!(16)),
        ("class", Invocation::named("open").class("Desk").instance("east").arg("x"), json!("east:x")),
    ];
    if place.sdk.takes_named() {
        calls.push(("by name", join().named_arg("number", 7).named_arg("text", "b"), json!("b7")));
        calls.push(("both", join().arg("c").named_arg("number", 7), json!("c7")));
    }
    for (what, call, expected) in calls {
        let id = enqueue(place, engine, call, true).await?;
        expect_value(what, told(ours::result(engine, &id).await?), &expected)?;
    }
    Ok(())
}
