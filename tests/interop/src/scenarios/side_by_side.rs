//! Executors of both on one database, under different application names: neither touches the other's rows.

use std::time::Duration;

use mainstay::Status;
use mainstay::prelude::*;
use serde_json::{Value, json};

use super::{Place, THEIRS, expect_value, told};
use crate::ours::{self, APP, QUEUE, VICTIM, VICTIM_ID, VICTIMS, started};
use crate::peer::Peer;

/// Several times our lease's and the tick's length: long enough for anything that would take a row over.
const LONG_ENOUGH: Duration = Duration::from_secs(6);
const WORKFLOWS: usize = 20;

pub(crate) async fn side_by_side(place: &Place<'_>) -> Result<(), String> {
    let (engine, mut peer) = place.both().await?;
    both_work(place, &engine, &mut peer).await?;
    let stray = strays(&engine).await?;
    let (engine, peer) = the_killed_are_left_alone(place, engine, peer).await?;
    for id in stray {
        let row = engine.handle_by_id::<Value>(id).row().await.map_err(|error| error.to_string())?;
        if row.status != Status::Enqueued || row.attempts != 0 {
            return Err(format!("{id}: a row of one application on the other's queue is {}", row.status));
        }
    }
    peer.end().await?;
    ours::end(engine).await
}

/// Work of both goes on at once, each at its own executor.
async fn both_work(place: &Place<'_>, engine: &Engine, peer: &mut Peer) -> Result<(), String> {
    let mut ids = Vec::new();
    for number in 0..WORKFLOWS {
        let mine = engine.start(Invocation::named("echo").arg(number)).id(format!("mine-{number}")).queue(QUEUE);
        started(mine).await?;
        let theirs = json!({ "id": format!("theirs-{number}"), "workflow": "echo", "queue": THEIRS.queue, "args": [number],
            "app": THEIRS.app, "version": THEIRS.version });
        peer.enqueue(theirs).await?;
        ids.extend([(format!("mine-{number}"), number), (format!("theirs-{number}"), number)]);
    }
    for (id, number) in &ids {
        if id.starts_with("mine") || place.sdk.is_portable() {
            expect_value(id, told(ours::result(engine, id).await?), &json!(number))?;
        } else {
            expect_value(id, peer.result(id).await?, &json!(number))?;
        }
        let row = engine.handle_by_id::<Value>(id).row().await.map_err(|error| error.to_string())?;
        let app = if id.starts_with("mine") { APP } else { THEIRS.app };
        let here = row.executor == Some(engine.executor_id());
        if row.attempts != 1 || row.app != Some(app.into()) || here != id.starts_with("mine") {
            return Err(format!("{id}: {} attempts by {:?} for {:?}", row.attempts, row.executor, row.app));
        }
    }
    Ok(())
}

/// Rows of one application on the queue of the other: nobody's.
async fn strays(engine: &Engine) -> Result<[&'static str; 2], String> {
    let call = || Invocation::named("echo").arg(1);
    started(engine.start(call()).id("stray-theirs").queue(QUEUE).app(THEIRS.app)).await?;
    started(engine.start(call()).id("stray-mine").queue(THEIRS.queue).app(APP)).await?;
    Ok(["stray-theirs", "stray-mine"])
}

/// A workflow of each runs while their process is killed and comes back: ours goes on undisturbed, theirs waits for its own.
async fn the_killed_are_left_alone(
    place: &Place<'_>,
    engine: Engine,
    mut peer: Peer,
) -> Result<(Engine, Peer), String> {
    let asked = json!({ "id": "held-theirs", "workflow": "hold", "queue": THEIRS.queue, "args": [1], "app": THEIRS.app,
        "version": THEIRS.version });
    peer.enqueue(asked).await?;
    let theirs = engine.handle_by_id::<Value>("held-theirs");
    let row = pending(&theirs).await?;
    peer.kill().await?;
    let seconds = LONG_ENOUGH.as_secs();
    started(engine.start(Invocation::named("hold").arg(seconds)).id("held-mine").queue(QUEUE)).await?;
    let mine = engine.handle_by_id::<Value>("held-mine");
    let before = pending(&mine).await?;
    expect_value("held-mine", told(ours::result(&engine, "held-mine").await?), &json!("held"))?;
    let left = theirs.row().await.map_err(|error| error.to_string())?;
    if (left.status, left.executor, left.attempts, left.updated_at)
        != (row.status, row.executor, row.attempts, row.updated_at)
    {
        return Err(format!("a row of their killed executor was touched: it is {}", left.status));
    }
    let after = mine.row().await.map_err(|error| error.to_string())?;
    if (after.executor, after.attempts) != (before.executor, before.attempts) {
        return Err(format!("a row of ours was run {} times", after.attempts));
    }
    let dead = killed(place, &engine).await?;
    // Their next process takes up its own, and leaves what ours has left.
    let peer = place.theirs().await?;
    let result = ours::result(&engine, "held-theirs").await?;
    expect_value("held-theirs", told(result), &json!("held"))?;
    // Its recovery has been through all that it took for its own.
    let left = engine.handle_by_id::<Value>(VICTIM_ID).row().await.map_err(|error| error.to_string())?;
    if left != dead {
        return Err(format!("a row of our killed executor was touched: {left:?} was {dead:?}"));
    }
    Ok((engine, peer))
}

/// A process of ours, of an application that nobody else has, runs a workflow and is killed: the row that it leaves.
async fn killed(place: &Place<'_>, engine: &Engine) -> Result<mainstay::WorkflowRow, String> {
    let failed = |error: std::io::Error| format!("our second process: {error}");
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = tokio::process::Command::new(program);
    command.arg(VICTIM).arg(place.url).arg(place.tables.word()).kill_on_drop(true);
    let mut child = command.spawn().map_err(failed)?;
    let handle = engine.handle_by_id::<Value>(VICTIM_ID);
    pending(&handle).await?;
    // Its sleep is recorded by now or never, so that the row is as the dead have left it.
    child.kill().await.map_err(failed)?;
    let row = pending(&handle).await?;
    if row.app != Some(VICTIMS.into()) || row.executor == Some(engine.executor_id()) {
        return Err(format!("{VICTIM_ID} is of {:?} at {:?}", row.app, row.executor));
    }
    Ok(row)
}

/// The row of a workflow once it runs.
async fn pending(handle: &Handle<Value>) -> Result<mainstay::WorkflowRow, String> {
    for _ in 0..200 {
        match handle.row().await {
            Ok(row) if row.status == Status::Pending => return Ok(row),
            Ok(row) if row.status.is_ended() => return Err(format!("{}: it is {} already", row.id, row.status)),
            Ok(_) => {}
            // Not even begun.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.to_string()),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Err(format!("{}: nobody has begun it", handle.id()))
}
