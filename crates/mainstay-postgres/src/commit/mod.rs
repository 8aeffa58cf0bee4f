//! Units: judged, written and answered, many of them in one transaction.

mod absent;
mod alone;
mod batch;
mod columns;
mod groups;
mod moves;
#[cfg(test)]
mod plans;
mod submits;
mod texts;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use mainstay_store::{
    Committed, ErrorKind, QueueName, Result, Store, StoreError, Timestamp, Unit, UnitReply, Wakeup, WriteStore,
};
use tokio_postgres::error::SqlState;

use crate::error::Failure;
use crate::fault::Fault;
use crate::session::Session;
use crate::store::Postgres;
use groups::Group;

const OP: &str = "commit";

/// Most times that a transaction is begun anew because a row that it lost to has vanished, a constraint met one that another
/// wrote, a family has grown, or the server has undone it for another: each time another process has moved in between.
const MOST_TRIES: u32 = 8;

/// What became of a unit, before it is known to be of which method.
type Reply = std::result::Result<UnitReply, Fault>;

/// A transaction that has committed.
struct Done {
    now: Timestamp,
    /// Answers, by the place of the unit in the batch.
    replies: Vec<(usize, Reply)>,
    told: Told,
    /// Whether an answer tells of an end without its payload, read by statements that look for it in the row alone.
    lacking: bool,
}

/// What there is to tell of a transaction.
#[derive(Default)]
struct Told {
    hints: Vec<Wakeup>,
    /// Queues that rows of before came back to.
    returned: Vec<QueueName>,
}

/// A batch on its way.
struct Work {
    units: Vec<Unit>,
    /// The parameters of every statement.
    now: Option<i64>,
    system: String,
    /// About what time it is.
    about: Timestamp,
    progress: Mutex<Progress>,
}

/// What is done of a batch. It is kept outside the call, which runs again from here when the schema has changed under it.
struct Progress {
    waiting: VecDeque<Group>,
    tries: u32,
    now: Option<Timestamp>,
    replies: Vec<Option<Result<UnitReply>>>,
    told: Told,
    lacking: bool,
    /// Whether a unit is written that must not be sent again.
    unrepeatable: bool,
}

#[async_trait]
impl WriteStore for Postgres {
    async fn commit(&self, units: &[Unit]) -> Result<Committed> {
        let work = Arc::new(Work::new(self, units));
        let shared = work.clone();
        let done = self
            .call(OP, move |session| {
                let work = shared.clone();
                Box::pin(async move { work.run(session).await })
            })
            .await;
        // What has committed is told, whatever became of the rest.
        let told = std::mem::take(&mut work.progress().told);
        self.fronts().returned(&told.returned);
        self.publish(told.hints);
        // Such a failure says that nothing of the batch is written, and so that all may be sent again.
        done.map_err(|error| if work.progress().unrepeatable { unknown(error) } else { error })?;
        let now = work.progress().now.ok_or_else(|| StoreError::new(ErrorKind::Bug, OP))?;
        let mut replies = std::mem::take(&mut work.progress().replies);
        if work.progress().lacking {
            absent::complete(self, units, &mut replies).await;
        }
        let missing = || Err(StoreError::new(ErrorKind::Bug, OP).with_source("a unit was not answered"));
        Ok(Committed::new(now, replies.into_iter().map(|reply| reply.unwrap_or_else(missing)).collect()))
    }
}

impl Work {
    fn new(store: &Postgres, units: &[Unit]) -> Self {
        let bounds = store.bounds();
        let check = |unit: &Unit| unit.check(&bounds).err().map(|field| Err(StoreError::field_error(OP, field)));
        let replies: Vec<Option<Result<UnitReply>>> = units.iter().map(check).collect();
        let waiting = groups::groups(units, |at| replies.get(at).is_some_and(Option::is_none)).into();
        let now = store.now();
        let about = now.map_or_else(|| store.env().now(), Timestamp::from_millis);
        let told = Told::default();
        let progress = Progress { waiting, tries: 0, now: None, replies, told, lacking: false, unrepeatable: false };
        let system = store.system().to_owned();
        Self { units: units.to_vec(), now, system, about, progress: Mutex::new(progress) }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn run(&self, session: &mut Session) -> std::result::Result<(), Fault> {
        loop {
            let next = self.progress().waiting.front().cloned();
            let done = match &next {
                None => break,
                Some(Group::Together(places)) => batch::commit(session, self, places).await,
                Some(Group::Alone(place)) => alone::commit(session, self, *place).await,
            };
            match done {
                Ok(done) => self.progress().commit(done, &self.units),
                Err(fault) => self.progress().fail(fault)?,
            }
        }
        if self.progress().now.is_none() {
            let clock = batch::commit(session, self, &[]).await?;
            self.progress().now = Some(clock.now);
        }
        Ok(())
    }
}

impl Progress {
    /// The first transaction has committed.
    fn commit(&mut self, done: Done, units: &[Unit]) {
        self.waiting.pop_front();
        let written = |(place, _): &(usize, Reply)| units.get(*place).is_some_and(|unit| !unit.repeatable());
        self.unrepeatable |= done.replies.iter().any(written);
        self.tries = 0;
        self.now = Some(done.now);
        self.lacking |= done.lacking;
        self.told.hints.extend(done.told.hints);
        self.told.returned.extend(done.told.returned);
        for (place, reply) in done.replies {
            self.answer(place, reply);
        }
    }

    fn answer(&mut self, place: usize, reply: Reply) {
        if let Some(slot) = self.replies.get_mut(place) {
            *slot = Some(reply.map_err(|fault| fault.of(OP)));
        }
    }

    /// The first transaction has failed, and nothing of it is written: it is begun anew, or in halves until the unit is
    /// found that no server takes, or the failure is that of the whole call.
    fn fail(&mut self, fault: Fault) -> std::result::Result<(), Fault> {
        if is_overtaken(&fault) && self.tries < MOST_TRIES {
            self.tries += 1;
            return Ok(());
        }
        // A trigger may swallow a row as well, or a constraint of others refuse it, and then no try helps.
        let is_lost = is_overtaken(&fault) && !is_undone_for_another(&fault);
        let fault = if is_lost { lasting(&fault) } else { fault };
        // What cannot be read of a batch is found after its commit, and is then told of its unit alone.
        let alone = matches!(self.waiting.front(), Some(Group::Alone(_)));
        if !(is_lost || is_of_a_unit(&fault) || alone && matches!(fault, Fault::Unreadable(_))) {
            return Err(fault);
        }
        self.tries = 0;
        match self.waiting.pop_front() {
            Some(Group::Together(mut places)) if places.len() > 1 => {
                let second = places.split_off(places.len() / 2);
                self.waiting.push_front(Group::Together(second));
                self.waiting.push_front(Group::Together(places));
            }
            Some(Group::Together(places)) => {
                if let Some(place) = places.first() {
                    self.answer(*place, Err(fault));
                }
            }
            Some(Group::Alone(place)) => self.answer(place, Err(fault)),
            None => return Err(fault),
        }
        Ok(())
    }
}

/// Whether another process has moved between two looks, and another try may see what it did.
fn is_overtaken(fault: &Fault) -> bool {
    code(fault).is_some_and(|code| code == OVERTAKEN || is_clash(code))
        || is_undone_for_another(fault)
        || matches!(fault, Fault::Store(ErrorKind::Contended, _))
}

/// Whether the server has undone the transaction so that another one can end: a deadlock, or a serialisation failure.
fn is_undone_for_another(fault: &Fault) -> bool {
    matches!(code(fault), Some("40P01" | "40001"))
}

/// The server's code of a failure that is the server's.
fn code(fault: &Fault) -> Option<&str> {
    fault.postgres()?.code().map(SqlState::code)
}

/// The failure of a call of which a part is written: that of a call of which nothing is known.
fn unknown(error: StoreError) -> StoreError {
    match error.kind() {
        ErrorKind::Unavailable | ErrorKind::Timeout => error,
        _ => StoreError::new(ErrorKind::Unavailable, OP).with_source(error),
    }
}

/// Whether a row went, or came, that a constraint asks for: by another process, or for as long as the unit is what it is.
fn is_clash(code: &str) -> bool {
    matches!(code, "23503" | "23505")
}

/// The failure of a unit that each try met again. A constraint that lasts is one that was added to the shared tables: what it
/// refuses is the unit's to change, as a value that no column takes.
fn lasting(fault: &Fault) -> Fault {
    match fault.postgres().filter(|_| code(fault).is_some_and(is_clash)) {
        Some(error) => {
            Fault::Store(ErrorKind::Invalid, format!("a constraint of the database refuses it: {}", Failure::of(error)))
        }
        None => Fault::Store(ErrorKind::Contended, "rows kept coming and going".into()),
    }
}

/// Division by zero: how the judge of submits says so.
const OVERTAKEN: &str = "22012";

/// Whether a failure is that of a value that some unit holds, and would come back with it: class 22 (data), 54 (a limit of
/// the server) or 23 (a constraint).
fn is_of_a_unit(fault: &Fault) -> bool {
    matches!(code(fault).and_then(|code| code.get(..2)), Some("22" | "23" | "54"))
}

/// A place as it is sent.
fn ordinal(place: usize) -> i32 {
    i32::try_from(place).unwrap_or(i32::MAX)
}
