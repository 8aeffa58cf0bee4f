//! Submits: a new row, or what stands in its way.

use mainstay_store::{
    ClassName, ConfigName, Created, EffectReply, Fence, OnExisting, OnHeld, Payload, Place, QueueName, Refusal, Status,
    Submit, Timestamp, Wakeup, When, WorkflowId, WorkflowName,
};
use rusqlite::params;

use crate::effect::Applied;
use crate::executor;
use crate::row::{self, bound};
use crate::sql::{self, Cached};
use crate::transition;
use crate::tx::Tx;

/// The row that has an id already, as far as a submit or a fork compares it.
#[derive(Debug)]
pub(crate) struct Taken {
    name: WorkflowName,
    class: Option<ClassName>,
    config: Option<ConfigName>,
    creator: Option<String>,
    created_at: Timestamp,
    status: Status,
    owner: Option<String>,
    started_at: Option<Timestamp>,
    pub(crate) forked_from: Option<WorkflowId>,
    deadline: Option<Timestamp>,
}

impl Taken {
    /// Reads it.
    pub(crate) fn of(tx: &Tx<'_>, id: &WorkflowId) -> rusqlite::Result<Option<Self>> {
        tx.conn.maybe(sql::TAKEN, [id.as_str()], |found| {
            Ok(Self {
                name: row::text(found, 0)?,
                class: row::text_if(found, 1)?,
                config: row::text_if(found, 2)?,
                creator: found.get(3)?,
                created_at: Timestamp::from_millis(found.get(4)?),
                status: row::status(found, 5)?,
                owner: found.get(6)?,
                started_at: row::stamp_if(found, 7)?,
                forked_from: row::text_if(found, 8)?,
                deadline: row::stamp_if(found, 9)?,
            })
        })
    }

    /// The refusal that says whose the id is.
    pub(crate) fn conflict(self, id: &WorkflowId) -> Refusal {
        Refusal::Conflict { id: id.clone(), name: self.name, class: self.class, config: self.config }
    }

    /// The fence of the start that made the row, while it is still in that execution.
    fn first_fence(&self, new: &Submit) -> Option<Fence> {
        let direct = matches!(new.place, Place::Run(_)) && self.started_at == Some(self.created_at);
        let own = self.status == Status::Pending && self.owner.as_deref() == Some(new.token.as_str());
        (direct && own).then(|| row::fence(&new.id, self.created_at, new.token.as_str()))
    }
}

/// Makes the row, or says what is there.
pub(crate) fn apply(tx: &mut Tx<'_>, new: &Submit) -> rusqlite::Result<Applied> {
    if let Some(taken) = Taken::of(tx, &new.id)? {
        return existing(tx, new, taken);
    }
    match &new.place {
        Place::Run(executor) if !executor::is_leased(tx.conn, executor)? => {
            return Ok(Err(Refusal::Unleased(executor.clone())));
        }
        Place::Queue { name, .. } => {
            if let Some(refusal) = held(tx, new, name)? {
                return Ok(Err(refusal));
            }
        }
        Place::Run(_) => {}
    }
    insert(tx, new)?;
    let fence = matches!(new.place, Place::Run(_)).then(|| row::fence(&new.id, tx.now, new.token.as_str()));
    Ok(Ok(created(tx.now, fence, deadline(new, tx.now))))
}

fn existing(tx: &Tx<'_>, new: &Submit, taken: Taken) -> rusqlite::Result<Applied> {
    if taken.name != new.name || taken.class != new.class || taken.config != new.config {
        return Ok(Err(taken.conflict(&new.id)));
    }
    if taken.creator.as_deref() == Some(new.token.as_str()) {
        let fence = taken.first_fence(new);
        return Ok(Ok(created(taken.created_at, fence, taken.deadline)));
    }
    Ok(match new.on_existing {
        OnExisting::Refuse => Err(Refusal::Exists(new.id.clone())),
        OnExisting::Return => Ok(EffectReply::Existing(row::standing(tx.conn, &new.id)?)),
    })
}

fn held(tx: &Tx<'_>, new: &Submit, queue: &QueueName) -> rusqlite::Result<Option<Refusal>> {
    let Some(dedup) = &new.dedup else { return Ok(None) };
    let holder = tx.conn.maybe(sql::HOLDER, [queue.as_str(), dedup.key.as_str()], |found| row::text(found, 0))?;
    Ok(holder.map(|holder| match dedup.on_held {
        OnHeld::Reject => Refusal::Held { holder },
        OnHeld::Join => Refusal::Joined { holder },
    }))
}

fn created(at: Timestamp, fence: Option<Fence>, deadline: Option<Timestamp>) -> EffectReply {
    let mut created = Created::new(at);
    created.fence = fence;
    created.deadline = deadline;
    EffectReply::Created(created)
}

/// The deadline that a row made at `at` begins with.
fn deadline(new: &Submit, at: Timestamp) -> Option<Timestamp> {
    let given = new.deadline.map(|deadline| deadline.resolve(at));
    let runs = matches!(new.place, Place::Run(_));
    given.or_else(|| new.timeout.filter(|_| runs).map(|timeout| at + timeout))
}

fn insert(tx: &mut Tx<'_>, new: &Submit) -> rusqlite::Result<()> {
    let now = tx.now;
    let (status, executor, queue, key, delay) = match &new.place {
        Place::Run(executor) => (Status::Pending, Some(executor.as_str()), None, None, None),
        Place::Queue { name, key, delay } => {
            let status = if delay.is_some() { Status::Delayed } else { Status::Enqueued };
            (status, None, Some(name), bound(key.as_ref()), *delay)
        }
    };
    let runs = executor.is_some();
    tx.conn.run(
        sql::INSERT,
        params![
            new.id.as_str(),
            status.as_str(),
            new.name.as_str(),
            new.caller.user,
            new.caller.role,
            row::stored_roles(&new.caller),
            executor,
            now.0,
            bound(new.version.as_ref()),
            bound(new.class.as_ref()),
            bound(new.config.as_ref()),
            i64::from(runs),
            queue.map(QueueName::as_str),
            new.timeout.map(row::millis),
            deadline(new, now).map(|at| at.0),
            runs.then_some(now.0),
            new.dedup.as_ref().map(|dedup| dedup.key.as_str()),
            new.priority,
            key,
            runs.then(|| new.token.as_str()),
            bound(new.parent.as_ref()),
            bound(new.codec.as_ref()),
            delay.map(|delay: When| delay.resolve(now).0),
            new.attributes.as_ref().map(Payload::as_str),
            bound(new.schedule.as_ref()),
            bound(new.app.as_ref()),
            new.token.as_str(),
        ],
    )?;
    tx.stamped(now);
    if let Some(input) = &new.input {
        transition::set_input(tx, &new.id, input)?;
    }
    if let (Status::Enqueued, Some(queue)) = (status, queue) {
        tx.hint(Wakeup::Queue(queue.clone()));
    }
    Ok(())
}
