//! Queues and versions: registration, change and removal.

use async_trait::async_trait;
use mainstay_store::{
    AppName, Bounds, ErrorKind, OnConflict, Queue, QueueName, QueueReply, RegisterQueue, Registry, Result, Revision,
    StoreError, Timestamp, UpdateQueue, Version, VersionName, VersionReply, Wakeup,
};
use tokio_postgres::Row;

use crate::fault::Fault;
use crate::queues::{self, Columns};
use crate::row;
use crate::session::{Ask, Session};
use crate::store::Postgres;
use crate::text::{Text, text};

static QUEUE_LIST: Text = text!("queue_list");
static QUEUE_INSERT: Text = text!("queue_insert");
static QUEUE_LOCK: Text = text!("queue_lock");
static QUEUE_WRITE: Text = text!("queue_write");
static QUEUE_DELETE: Text = text!("queue_delete");
static VERSION_TURN: Text = text!("version_turn");
static VERSION_INSERT: Text = text!("version_insert");
static VERSION_OWNER: Text = text!("version_owner");
static VERSION_PROMOTE: Text = text!("version_promote");
static VERSION_LIST: Text = text!("version_list");

/// The statements of this module.
#[cfg(test)]
pub(crate) const ALL: &[&Text] = &[
    &QUEUE_LIST,
    &QUEUE_INSERT,
    &QUEUE_LOCK,
    &QUEUE_WRITE,
    &QUEUE_DELETE,
    &VERSION_TURN,
    &VERSION_INSERT,
    &VERSION_OWNER,
    &VERSION_PROMOTE,
    &VERSION_LIST,
];

type Done<T> = std::result::Result<T, Fault>;

#[async_trait]
impl Registry for Postgres {
    async fn queue_register(&self, request: RegisterQueue) -> Result<QueueReply> {
        let op = "queue_register";
        let wanted = request.queue(Revision(0), Timestamp::EPOCH);
        let checked = request.check(&self.bounds()).and_then(|()| Columns::of(&wanted).map(drop));
        checked.map_err(|field| StoreError::field_error(op, field))?;
        if request.limits.partitioned() {
            return Err(StoreError::unsupported(op, "partitions"));
        }
        let now = self.now();
        let reply = self
            .call(op, move |session| {
                let (wanted, policy) = (wanted.clone(), request.on_conflict.clone());
                Box::pin(async move { register(session, now, &wanted, &policy).await })
            })
            .await?;
        self.tell(&reply);
        Ok(reply)
    }

    async fn queue_update(&self, request: UpdateQueue) -> Result<QueueReply> {
        let op = "queue_update";
        Bounds::default()
            .owned(&request.app, "name", request.name.as_str())
            .map_err(|field| StoreError::field_error(op, field))?;
        if request.change.sets_partition() {
            return Err(StoreError::unsupported(op, "partitions"));
        }
        let now = self.now();
        let reply = self
            .call(op, move |session| {
                let request = request.clone();
                Box::pin(async move { update(session, now, &request).await })
            })
            .await?;
        self.tell(&reply);
        Ok(reply)
    }

    async fn queue_delete(&self, app: &AppName, name: &QueueName) -> Result<bool> {
        let op = "queue_delete";
        Bounds::default().owned(app, "name", name.as_str()).map_err(|field| StoreError::field_error(op, field))?;
        let (app, name) = (app.clone(), name.clone());
        let gone = self
            .call(op, move |session| {
                let (app, name) = (app.clone(), name.clone());
                Box::pin(
                    async move { Ok(!session.one(&QUEUE_DELETE, &[&name.as_str(), &app.as_str()]).await?.is_empty()) },
                )
            })
            .await?;
        if gone {
            self.publish([Wakeup::Registry]);
        }
        Ok(gone)
    }

    async fn queue_list(&self, app: &AppName) -> Result<Vec<Queue>> {
        if row::storable(app).is_none() {
            return Ok(Vec::new());
        }
        let app = app.clone();
        self.call("queue_list", move |session| {
            let app = app.clone();
            Box::pin(async move {
                let rows = session.one(&QUEUE_LIST, &[&app.as_str()]).await?;
                let named = |found: &Row| Ok((row::text(found, "name")?, queues::queue(found)));
                Ok(queues::all(rows.iter().map(named).collect::<Done<_>>()?).0)
            })
        })
        .await
    }

    async fn version_register(&self, app: &AppName, version: &VersionName) -> Result<VersionReply> {
        let op = "version_register";
        Bounds::default()
            .owned(app, "version", version.as_str())
            .map_err(|field| StoreError::field_error(op, field))?;
        let (now, system, app, version) = (self.now(), self.system().to_owned(), app.clone(), version.clone());
        let reply = self
            .call(op, move |session| {
                let (system, app, version) = (system.clone(), app.clone(), version.clone());
                Box::pin(async move { register_version(session, now, &system, (&app, &version)).await })
            })
            .await?;
        if reply == VersionReply::Created {
            self.publish([Wakeup::Registry]);
        }
        Ok(reply)
    }

    async fn version_promote(&self, app: &AppName, version: &VersionName) -> Result<VersionReply> {
        let op = "version_promote";
        Bounds::default()
            .owned(app, "version", version.as_str())
            .map_err(|field| StoreError::field_error(op, field))?;
        let (now, system, app, version) = (self.now(), self.system().to_owned(), app.clone(), version.clone());
        let (reply, moved) = self
            .call(op, move |session| {
                let (system, app, version) = (system.clone(), app.clone(), version.clone());
                Box::pin(async move { promote_version(session, now, &system, (&app, &version)).await })
            })
            .await?;
        if moved {
            self.publish([Wakeup::Registry]);
        }
        Ok(reply)
    }

    async fn version_list(&self, app: &AppName) -> Result<Vec<Version>> {
        if row::storable(app).is_none() {
            return Ok(Vec::new());
        }
        let app = app.clone();
        self.call("version_list", move |session| {
            let app = app.clone();
            Box::pin(async move {
                let rows = session.one(&VERSION_LIST, &[&app.as_str()]).await?;
                rows.iter().map(version).collect::<Done<Vec<Version>>>()
            })
        })
        .await
    }
}

impl Postgres {
    /// Hints at a change of the queues.
    fn tell(&self, reply: &QueueReply) {
        if matches!(reply, QueueReply::Created(_) | QueueReply::Updated(_)) {
            self.publish([Wakeup::Registry]);
        }
    }
}

/// What a look at a held row decides.
enum Judged {
    Write(Columns),
    Answer(QueueReply),
}

/// Makes the queue, or holds the row that is there and judges it.
async fn register(session: &mut Session, now: Option<i64>, wanted: &Queue, policy: &OnConflict) -> Done<QueueReply> {
    let columns = Columns::of(wanted)?;
    let (name, app) = (wanted.name.as_str(), wanted.app.as_ref().map(AppName::as_str));
    let asks = [columns.ask(&QUEUE_INSERT, &now), Ask::new(&QUEUE_LOCK, &[&name, &app])];
    let answers = session.begin(&asks).await?;
    let [made, held] = answers.as_slice() else { unreachable!("two statements have two answers") };
    if let Some(made) = made.first() {
        session.finish(&[]).await?;
        return Ok(QueueReply::Created(queues::queue(made)?));
    }
    let judged = match held.first() {
        Some(held) => registered(held, wanted, policy),
        None => Err(Fault::Store(ErrorKind::Contended, "the queue was deleted meanwhile".into())),
    };
    end(session, now, judged).await
}

fn registered(held: &Row, wanted: &Queue, policy: &OnConflict) -> Done<Judged> {
    let stored = queues::queue(held)?;
    if let Some(owner) = stored.app.as_ref().filter(|owner| Some(*owner) != wanted.app.as_ref()) {
        return Ok(Judged::Answer(QueueReply::Owned(owner.clone())));
    }
    let replaces = match policy {
        OnConflict::Keep => false,
        OnConflict::Update => true,
        OnConflict::UpdateIfLatest(version) => {
            row::text_if::<VersionName>(held, "latest")?.is_none_or(|latest| latest == *version)
        }
    };
    let mut queue = stored.clone();
    queue.app.clone_from(&wanted.app);
    if replaces {
        queue.stored = wanted.stored;
        queue.partition_flag = wanted.partition_flag;
        queue.polling = wanted.polling;
    }
    replace(stored, &queue)
}

/// Holds the row and changes it, if what it becomes may be.
async fn update(session: &mut Session, now: Option<i64>, request: &UpdateQueue) -> Done<QueueReply> {
    let (name, app) = (request.name.as_str(), request.app.as_str());
    let held = session.begin(&[Ask::new(&QUEUE_LOCK, &[&name, &app])]).await?;
    let judged = match held.first().and_then(|rows| rows.first()) {
        Some(held) => updated(held, request),
        None => Ok(Judged::Answer(QueueReply::Missing)),
    };
    end(session, now, judged).await
}

fn updated(held: &Row, request: &UpdateQueue) -> Done<Judged> {
    let stored = queues::queue(held)?;
    if let Some(owner) = stored.app.as_ref().filter(|owner| **owner != request.app) {
        return Ok(Judged::Answer(QueueReply::Owned(owner.clone())));
    }
    if request.change.is_empty() {
        return Ok(Judged::Answer(QueueReply::Kept(stored)));
    }
    let queue = request.change.merge(&stored)?;
    replace(stored, &queue)
}

/// A queue is written only where it differs from what is stored.
fn replace(stored: Queue, queue: &Queue) -> Done<Judged> {
    if *queue == stored {
        return Ok(Judged::Answer(QueueReply::Kept(stored)));
    }
    Ok(Judged::Write(Columns::of(queue)?))
}

/// Ends the transaction that holds the row.
async fn end(session: &mut Session, now: Option<i64>, judged: Done<Judged>) -> Done<QueueReply> {
    match judged {
        Ok(Judged::Write(columns)) => {
            let written = session.finish(&[columns.ask(&QUEUE_WRITE, &now)]).await?;
            let written = written.first().and_then(|rows| rows.first());
            let written = written.ok_or_else(|| Fault::unreadable("queues", "a held row was not written"))?;
            Ok(QueueReply::Updated(queues::queue(written)?))
        }
        Ok(Judged::Answer(reply)) => {
            session.cancel().await?;
            Ok(reply)
        }
        Err(fault) => {
            session.cancel().await?;
            Err(fault)
        }
    }
}

async fn register_version(
    session: &mut Session,
    now: Option<i64>,
    system: &str,
    (app, version): (&AppName, &VersionName),
) -> Done<VersionReply> {
    let (app_name, name) = (app.as_str(), version.as_str());
    // Who has the name is asked after the insert, whose snapshot would not show a registration that won meanwhile.
    let asks = [
        Ask::new(&VERSION_TURN, &[&system]),
        Ask::new(&VERSION_INSERT, &[&now, &name, &app_name]),
        Ask::new(&VERSION_OWNER, &[&name, &app_name]),
    ];
    let answers = session.transaction(&asks).await?;
    let [_, made, owner] = answers.as_slice() else { unreachable!("three statements have three answers") };
    if !made.is_empty() {
        return Ok(VersionReply::Created);
    }
    match owner.first() {
        Some(found) => known(found, app),
        None => Err(Fault::Store(ErrorKind::Contended, "the version was deleted meanwhile".into())),
    }
}

/// The answer, and whether another version was the latest before.
async fn promote_version(
    session: &mut Session,
    now: Option<i64>,
    system: &str,
    (app, version): (&AppName, &VersionName),
) -> Done<(VersionReply, bool)> {
    let (app_name, name) = (app.as_str(), version.as_str());
    let asks = [Ask::new(&VERSION_TURN, &[&system]), Ask::new(&VERSION_PROMOTE, &[&now, &name, &app_name])];
    let answers = session.transaction(&asks).await?;
    let Some(found) = answers.last().and_then(|rows| rows.first()) else { return Ok((VersionReply::Missing, false)) };
    Ok((known(found, app)?, row::get(found, "moved")?))
}

/// Whose a version is that is there.
fn known(found: &Row, app: &AppName) -> Done<VersionReply> {
    let owner = row::text_if::<AppName>(found, "application_name")?.filter(|owner| owner != app);
    Ok(owner.map_or(VersionReply::Known, VersionReply::Owned))
}

fn version(found: &Row) -> Done<Version> {
    let mut version =
        Version::new(row::text::<VersionName>(found, "version_name")?, row::stamp(found, "version_timestamp")?);
    version.app = row::text_if(found, "application_name")?;
    Ok(version)
}
