//! Starts in a body: asked of the journal first, recorded whatever comes of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mainstay_queue::Slot;
use mainstay_store::{
    EffectReply, Place, Position, RecordedStep, Refusal, StepName, StepOutput, StepResult, StepRow, StoreError, Submit,
    Token, Unit, UnitReply, When, WorkflowId, wire,
};

use super::{Request, Started, launch, refused, start_outside, submitted};
use crate::call::{Call, Ran, row};
use crate::ctx::{Ctx, Made};
use crate::error::{Error, Result};
use crate::execution::{Execution, Wrote, unacceptable};
use crate::guard;
use crate::handle::Handle;
use crate::journal::{CallKind, Expect};
use crate::recorder::{Answer, Patience};
use crate::registry::Key;
use crate::shared::Shared;

pub(super) async fn start_in_body<T: Send + 'static>(
    ctx: Ctx,
    made: Made,
    key: Key,
    request: Result<Request>,
) -> Result<Handle<T>> {
    let shared = ctx.shared().clone();
    match made {
        Made::Refused(error) => Err(error),
        Made::Unrecorded => {
            guard::no_body_awaits("ctx.start")?;
            let request = request?;
            if request.id.is_none() {
                return Err(Error::refused(
                    "ctx.start was called inside a step without an id: the step may run again, so give it `.id(..)`"
                        .to_owned(),
                ));
            }
            let request = judged(request, &ctx.exec)?;
            let started = start_outside(&shared, request).await?;
            Ok(started.handle(shared, None))
        }
        Made::At(ctx, position) => {
            // What no row can carry cannot be recorded, and is the same in every process.
            key.check()?;
            let serial = ctx.exec.serial;
            let started = Call::new(start_child(ctx, position, key, request)).complete().await?;
            Ok(started.handle(shared, Some(serial)))
        }
    }
}

/// A request that may be made in this execution.
fn judged(request: Request, exec: &Execution) -> Result<Request> {
    let request = request.judged(&exec.shared)?;
    if request.id.as_ref() == Some(&exec.id) {
        return Err(Error::refused(format!("start of workflow {}: {} cannot start itself", request.key, exec.id)));
    }
    Ok(request)
}

/// The id of a child that was given none.
fn derived(request: &Request, exec: &Execution, position: Position) -> Result<WorkflowId> {
    let (id, most) = (format!("{}-{position}", exec.id), exec.shared.bounds.name_bytes);
    if id.len() > most {
        return Err(Error::refused(format!(
            "start of workflow {}: its id, that of its parent and a number, would have {} bytes, and at most {most} are \
             allowed: give it a shorter one with `.id(..)`",
            request.key,
            id.len()
        )));
    }
    Ok(id.into())
}

/// Writes a child and the record of its start, and starts its body where it is to run here.
async fn start_child(ctx: Ctx, position: Position, key: Key, request: Result<Request>) -> Ran<Started> {
    let exec = ctx.exec.clone();
    let _busy = exec.busy();
    let name: StepName = key.name.as_str().into();
    let expect = || Expect { position, name: &name, kind: CallKind::Start };
    if let Some(recorded) = exec.ask(expect()).await {
        return Ran::Now(child_of(recorded));
    }
    let shared = &exec.shared;
    // Judged after the journal: what this process knows is not what the one knew that recorded the start.
    let request = match request.and_then(|request| judged(request, &exec)) {
        Ok(request) => request,
        Err(error) => return failed_start(&exec, position, &name, &error).await,
    };
    let id = match request.id.clone().map_or_else(|| derived(&request, &exec, position), Ok) {
        Ok(id) => id,
        Err(error) => return failed_start(&exec, position, &name, &error).await,
    };
    let token = Token::new(shared.env.ids().uuid());
    let (mut place, mut slot) = request.place(shared, &id);
    loop {
        let mut submit = request.submit(shared, &id, &token, place);
        submit.parent = Some(exec.id.clone());
        if request.timeout.is_none() && !request.detached {
            submit.deadline = exec.deadline.map(When::At);
        }
        let started = row(position, name.clone(), StepOutput::Nothing).child(id.clone());
        let again = submit.clone();
        let unit = Unit::by(&exec.fence).effect(submit).step(started);
        let (for_launch, for_request, for_id) = (shared.clone(), request.clone(), id.clone());
        // A row that was there before carries a codec of its own.
        let created = Arc::new(AtomicBool::new(false));
        let note = created.clone();
        // The launch hangs on the write and not on the body, which may drop the start meanwhile.
        let begin = move |answer: &Answer| match &answer.reply {
            UnitReply::Done { effects } => {
                if let Some(EffectReply::Created(created)) = effects.first() {
                    note.store(true, Ordering::Relaxed);
                    launch(&for_launch, &for_request, &for_id, created.clone(), slot, answer.now);
                }
            }
            UnitReply::Recorded { rows } if rows.iter().any(|row| row.child.as_ref() == Some(&for_id)) => {
                if let Some(slot) = slot {
                    ask_again(for_launch, for_request, for_id, again, slot);
                }
            }
            _ => {}
        };
        match exec.commit_and(unit, begin).await {
            Wrote::Done => {
                let codec = request.codec.filter(|_| created.load(Ordering::Relaxed));
                return Ran::Now(Ok(Started { id, codec }));
            }
            Wrote::Recorded(rows) => {
                let recorded = exec.reread(expect(), rows).await;
                return Ran::Now(child_of(recorded));
            }
            Wrote::Refused(Refusal::Unleased(_)) => (place, slot) = (Place::queue(wire::INTERNAL_QUEUE), None),
            Wrote::Refused(Refusal::Joined { holder }) => {
                let joined = row(position, name.clone(), StepOutput::Nothing).child(holder.clone());
                return record_start(&exec, joined, expect(), Ok(holder.into())).await;
            }
            Wrote::Refused(why) => {
                let error = refused(&request.key, &why);
                return failed_start(&exec, position, &name, &error).await;
            }
            Wrote::Invalid(error) => return failed_start(&exec, position, &name, &unacceptable(&error)).await,
        }
    }
}

/// Begins a child that was written by a unit whose answer was lost: a submit by its token is answered as the first time.
fn ask_again(shared: Arc<Shared>, request: Request, id: WorkflowId, submit: Submit, slot: Slot) {
    let (recorder, for_id) = (shared.recorder.clone(), id.clone());
    let done = Box::new(move |answer: Result<Answer, StoreError>| {
        // Where this fails too, the audit finds the row once the slot is gone.
        drop(submitted(&shared, &request, &id, Some(slot), answer));
    });
    recorder.send(&for_id, Unit::new().effect(submit), Patience::Forever, done);
}

async fn failed_start(exec: &Execution, position: Position, name: &StepName, error: &Error) -> Ran<Started> {
    let payload = exec.shared.record(error);
    let failed = row(position, name.clone(), StepOutput::Failure(payload.clone()));
    let expect = Expect { position, name, kind: CallKind::Start };
    record_start(exec, failed, expect, Err(Error::recorded(&payload))).await
}

/// Records a start that made no child of its own.
async fn record_start(exec: &Execution, row: StepRow, expect: Expect<'_>, result: Result<Started>) -> Ran<Started> {
    Ran::Now(exec.record(Unit::by(&exec.fence).step(row), expect).await.map_or(result, child_of))
}

/// The child that a recorded start gave, or its error.
fn child_of(recorded: RecordedStep) -> Result<Started> {
    match (recorded.child, recorded.result) {
        (Some(child), _) => Ok(child.into()),
        (None, StepResult::Failure(payload)) => Err(Error::recorded(&payload)),
        (None, _) => Err(Error::bug("a recorded start names no workflow".to_owned())),
    }
}
