//! Their client enqueues for our executor, and reads results and errors.

use serde_json::{Value, json};

use super::{Place, declined, expect, expect_value};
use crate::ours::{self, APP, QUEUE, VERSION};
use crate::peer::{Peer, Told};
use crate::values;

pub(crate) async fn their_client(place: &Place<'_>) -> Result<(), String> {
    let (engine, mut peer) = place.client().await?;
    values_go_through(place, &mut peer).await?;
    errors_are_typed(place, &mut peer).await?;
    if place.sdk.is_portable() {
        arguments_are_matched(&mut peer).await?;
        their_own_codec_is_refused(&engine, &mut peer).await?;
    }
    peer.end().await?;
    ours::end(engine).await
}

async fn values_go_through(place: &Place<'_>, peer: &mut Peer) -> Result<(), String> {
    let mut sent = values::plain();
    if place.sdk.is_exact() {
        sent.extend(values::wide());
    }
    let mut ids = Vec::new();
    for value in &sent {
        ids.push(peer.enqueue(json!({ "workflow": "echo", "queue": QUEUE, "args": [value] })).await?);
    }
    for (id, value) in ids.iter().zip(&sent) {
        expect_value("echo", peer.result(id).await?, value)?;
    }
    // An exact integer of ours is what their language makes of it.
    let id = peer.enqueue(json!({ "workflow": "largest", "queue": QUEUE })).await;
    let largest = match id {
        Ok(id) if place.sdk.is_portable() => peer.result(&id).await?,
        Ok(_) => return Ok(()),
        Err(error) => return Err(error),
    };
    let expected = if place.sdk.is_exact() { json!(u64::MAX) } else { json!(18_446_744_073_709_551_616.0) };
    expect_value("largest", largest, &expected)
}

async fn errors_are_typed(place: &Place<'_>, peer: &mut Peer) -> Result<(), String> {
    let reason = "no \"credit\"\u{0}\n\u{1F980}";
    let id = peer.enqueue(json!({ "workflow": "refuse", "queue": QUEUE, "args": [reason] })).await?;
    let told = peer.result(&id).await?;
    if place.sdk.is_portable() {
        return expect("refuse", &told, &declined(reason));
    }
    // That crate knows no error but its own; the text of ours is in its message.
    match told {
        Told::Error { message, .. } if message.contains("credit") && message.contains("Declined") => Ok(()),
        other => Err(format!("refuse: {other:?}")),
    }
}

async fn arguments_are_matched(peer: &mut Peer) -> Result<(), String> {
    let pinned = json!({ "app": APP, "version": VERSION });
    for (what, asked, expected) in [
        ("by position", json!({ "workflow": "join", "args": ["a", 7] }), json!("a7")),
        ("by name", json!({ "workflow": "join", "args": [], "named": { "number": 7, "text": "b" } }), json!("b7")),
        ("both", json!({ "workflow": "join", "args": ["c"], "named": { "number": 7 } }), json!("c7")),
        ("none", json!({ "workflow": "nothing", "args": [] }), Value::Null),
        ("steps", json!({ "workflow": "steps", "args": [4] }), json!(16)),
        ("class", json!({ "workflow": "open", "class": "Desk", "instance": "east", "args": ["x"] }), json!("east:x")),
    ] {
        for chosen in [&json!({}), &pinned] {
            let mut asked = asked.clone();
            asked["queue"] = json!(QUEUE);
            for (key, value) in chosen.as_object().into_iter().flatten() {
                asked[key] = value.clone();
            }
            let id = peer.enqueue(asked).await?;
            expect_value(what, peer.result(&id).await?, &expected)?;
        }
    }
    let id = peer.enqueue(json!({ "workflow": "join", "queue": QUEUE, "args": ["a"] })).await?;
    match peer.result(&id).await? {
        Told::Error { name, message, .. } if name == "BadInput" && message.contains("`number` is missing") => Ok(()),
        other => Err(format!("a missing argument: {other:?}")),
    }
}

/// What only their language reads fails before the body, and says why to us.
async fn their_own_codec_is_refused(engine: &mainstay::Engine, peer: &mut Peer) -> Result<(), String> {
    let id = peer.enqueue(json!({ "workflow": "echo", "queue": QUEUE, "args": [1], "native": true })).await?;
    let error = ours::result(engine, &id).await?.err().ok_or("their own codec was read")?;
    let row = engine.handle_by_id::<Value>(&id).row().await.map_err(|error| error.to_string())?;
    let codec = row.codec.map(|codec| codec.to_string()).unwrap_or_default();
    if error.kind() != mainstay::ErrorKind::BadInput || !error.message().contains(&codec) {
        return Err(format!("their own codec {codec}: {error:?}"));
    }
    let status = peer.ask(&json!({ "do": "status", "id": id })).await?;
    if status["status"] == "ERROR" { Ok(()) } else { Err(format!("their own codec: {status}")) }
}
