//! Submits and forks: the effects that make rows.

use std::time::Duration;

use mainstay_store::{
    Created, EffectReply, Fork, OnExisting, OnHeld, Place, Refusal, Status, Submit, When, WorkflowRow,
};

use crate::effects::Judged;
use crate::moves::internal;
use crate::operation::Operation;
use crate::state::Record;

impl Operation<'_> {
    /// A new workflow, or the answer that the first try had.
    pub(crate) fn submit(&mut self, submit: &Submit) -> Judged {
        if let Some(record) = self.state.rows.get(&submit.id) {
            return existing(record, submit);
        }
        match &submit.place {
            Place::Run(executor) if !self.state.is_leased(executor) => {
                return Err(Refusal::Unleased(executor.clone()));
            }
            Place::Queue { name, .. } => self.joins(name, submit)?,
            Place::Run(_) => {}
        }
        let record = self.submitted(submit);
        let reply = created(&record);
        self.insert(record);
        Ok(reply)
    }

    /// Refuses a submit whose deduplication key another open row of the queue carries.
    fn joins(&self, queue: &mainstay_store::QueueName, submit: &Submit) -> Result<(), Refusal> {
        let Some(dedup) = &submit.dedup else { return Ok(()) };
        let Some(holder) = self.state.index.dedup.get(&(queue.clone(), dedup.key.clone())) else { return Ok(()) };
        let holder = holder.clone();
        Err(match dedup.on_held {
            OnHeld::Reject => Refusal::Held { holder },
            OnHeld::Join => Refusal::Joined { holder },
        })
    }

    fn submitted(&mut self, submit: &Submit) -> Record {
        let now = self.now;
        let mut row = WorkflowRow::new(submit.id.clone(), submit.name.clone(), Status::Enqueued, now, now)
            .priority(submit.priority)
            .caller(submit.caller.clone());
        row.class = submit.class.clone();
        row.config = submit.config.clone();
        row.app = submit.app.clone();
        row.version = submit.version.clone();
        row.codec = submit.codec.clone();
        row.parent = submit.parent.clone();
        row.schedule = submit.schedule.clone();
        row.timeout = submit.timeout.map(whole_millis);
        row.attributes = submit.attributes.clone();
        row.dedup = submit.dedup.as_ref().map(|dedup| dedup.key.clone());
        row.deadline = submit.deadline.map(|deadline| deadline.resolve(now));
        let mut record = Record::new(row);
        record.input = submit.input.clone();
        record.creator = Some(submit.token.clone());
        self.put(&mut record, submit);
        record
    }

    /// Where a new row begins.
    fn put(&mut self, record: &mut Record, submit: &Submit) {
        let (now, row) = (self.now, &mut record.row);
        match &submit.place {
            Place::Run(executor) => {
                row.status = Status::Pending;
                row.attempts = 1;
                row.executor = Some(executor.clone());
                row.started_at = Some(now);
                row.deadline = row.deadline.or(row.timeout.map(|timeout| now + timeout));
                record.owner = Some(self.own(&submit.token, true));
            }
            Place::Queue { name, key, delay } => {
                row.queue = Some(name.clone());
                row.key = key.clone();
                row.delay_until = delay.map(|delay: When| delay.resolve(now));
                if row.delay_until.is_some() {
                    row.status = Status::Delayed;
                }
            }
        }
    }

    /// A copy of a workflow, or nothing when it was made before.
    pub(crate) fn fork(&mut self, fork: &Fork) -> Judged {
        let Some(source) = self.state.rows.get(&fork.source) else {
            return Err(Refusal::Missing(fork.source.clone()));
        };
        if let Some(record) = self.state.rows.get(&fork.id) {
            return match &record.row.forked_from {
                Some(from) if *from == fork.source => Ok(EffectReply::Written),
                _ => Err(conflict(&record.row)),
            };
        }
        let copy = copied(source, fork, self.now);
        self.insert(copy);
        self.change(&fork.source, |record, _| record.row.was_forked = true);
        Ok(EffectReply::Written)
    }
}

/// Answers a submit whose id is taken.
fn existing(record: &Record, submit: &Submit) -> Judged {
    let row = &record.row;
    if (&row.name, &row.class, &row.config) != (&submit.name, &submit.class, &submit.config) {
        return Err(conflict(row));
    }
    if record.creator.as_ref() == Some(&submit.token) {
        return Ok(created(record));
    }
    match submit.on_existing {
        OnExisting::Refuse => Err(Refusal::Exists(row.id.clone())),
        OnExisting::Return => Ok(EffectReply::Existing(record.standing())),
    }
}

/// The answer to the submit that made the row, with the fence while its start's own execution goes on.
fn created(record: &Record) -> EffectReply {
    let mut created = Created::new(record.row.created_at);
    created.deadline = record.row.deadline;
    created.fence = record.fence().filter(|_| record.owner.as_ref().is_some_and(|owner| owner.direct));
    EffectReply::Created(created)
}

/// As a database keeps a duration: without what is below a millisecond, and never too long for a signed number.
fn whole_millis(duration: Duration) -> Duration {
    const MOST: u64 = i64::MAX as u64;
    Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(MOST).min(MOST))
}

fn conflict(row: &WorkflowRow) -> Refusal {
    Refusal::Conflict {
        id: row.id.clone(),
        name: row.name.clone(),
        class: row.class.clone(),
        config: row.config.clone(),
    }
}

fn copied(source: &Record, fork: &Fork, now: mainstay_store::Timestamp) -> Record {
    let from = &source.row;
    let mut row = WorkflowRow::new(fork.id.clone(), from.name.clone(), Status::Enqueued, now, now)
        .queue(fork.queue.clone().unwrap_or_else(internal))
        .forked_from(fork.source.clone())
        .caller(from.caller.clone());
    row.key = fork.key.clone();
    row.class = from.class.clone();
    row.config = from.config.clone();
    row.version = fork.version.clone().or_else(|| from.version.clone());
    row.app = from.app.clone();
    row.codec = from.codec.clone();
    row.attributes = from.attributes.clone();
    let mut record = Record::new(row);
    record.input = source.input.clone();
    record.steps = source.steps.range(..fork.below).map(|(at, step)| (*at, step.clone())).collect();
    record
}
