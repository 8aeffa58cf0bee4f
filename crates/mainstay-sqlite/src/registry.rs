//! Queues and versions: registration, change and removal.

use async_trait::async_trait;
use mainstay_store::{
    AppName, Bounds, FieldError, OnConflict, Queue, QueueName, QueueReply, RegisterQueue, Registry, Result, Revision,
    StoreError, UpdateQueue, Version, VersionName, VersionReply,
};

use crate::queues;
use crate::sql::{self, Cached};
use crate::store::Sqlite;
use crate::tx::Tx;
use crate::versions;

#[async_trait]
impl Registry for Sqlite {
    async fn queue_register(&self, request: RegisterQueue) -> Result<QueueReply> {
        let op = "queue_register";
        request.check(&Bounds::default()).map_err(|field| StoreError::field_error(op, field))?;
        if request.limits.partitioned() {
            return Err(StoreError::unsupported(op, "partitions"));
        }
        self.write(op, move |tx| register(tx, &request)).await
    }

    async fn queue_update(&self, request: UpdateQueue) -> Result<QueueReply> {
        let op = "queue_update";
        Bounds::default()
            .owned(&request.app, "name", request.name.as_str())
            .map_err(|field| StoreError::field_error(op, field))?;
        if request.change.sets_partition() {
            return Err(StoreError::unsupported(op, "partitions"));
        }
        let reply = self.write(op, move |tx| update(tx, &request)).await?;
        reply.map_err(|field| StoreError::field_error(op, field))
    }

    async fn queue_delete(&self, app: &AppName, name: &QueueName) -> Result<bool> {
        let op = "queue_delete";
        Bounds::default().owned(app, "name", name.as_str()).map_err(|field| StoreError::field_error(op, field))?;
        let (app, name) = (app.clone(), name.clone());
        self.write(op, move |tx| {
            let gone = tx.conn.run(sql::QUEUE_DELETE, [name.as_str(), app.as_str()])? > 0;
            if gone {
                tx.queues_changed();
            }
            Ok(gone)
        })
        .await
    }

    async fn queue_list(&self, app: &AppName) -> Result<Vec<Queue>> {
        let app = app.clone();
        self.read("queue_list", move |snapshot| Ok(queues::all(snapshot.conn, &app)?.0)).await
    }

    async fn version_register(&self, app: &AppName, version: &VersionName) -> Result<VersionReply> {
        let op = "version_register";
        Bounds::default()
            .owned(app, "version", version.as_str())
            .map_err(|field| StoreError::field_error(op, field))?;
        let (app, version) = (app.clone(), version.clone());
        self.write(op, move |tx| versions::register(tx, &app, &version)).await
    }

    async fn version_promote(&self, app: &AppName, version: &VersionName) -> Result<VersionReply> {
        let op = "version_promote";
        Bounds::default()
            .owned(app, "version", version.as_str())
            .map_err(|field| StoreError::field_error(op, field))?;
        let (app, version) = (app.clone(), version.clone());
        self.write(op, move |tx| versions::promote(tx, &app, &version)).await
    }

    async fn version_list(&self, app: &AppName) -> Result<Vec<Version>> {
        let app = app.clone();
        self.read("version_list", move |snapshot| versions::all(snapshot.conn, &app)).await
    }
}

fn register(tx: &mut Tx<'_>, request: &RegisterQueue) -> rusqlite::Result<QueueReply> {
    let Some(stored) = queues::read(tx.conn, &request.name)? else {
        let queue = request.queue(revision(tx)?, tx.now);
        save(tx, sql::QUEUE_INSERT, &queue)?;
        return Ok(QueueReply::Created(queue));
    };
    if let Some(owner) = stored.app.as_ref().filter(|owner| **owner != request.app) {
        return Ok(QueueReply::Owned(owner.clone()));
    }
    let replaces = match &request.on_conflict {
        OnConflict::Keep => false,
        OnConflict::Update => true,
        OnConflict::UpdateIfLatest(version) => {
            versions::latest(tx.conn, &request.app)?.is_none_or(|(_, latest)| latest == *version)
        }
    };
    let mut queue = stored.clone();
    queue.app = Some(request.app.clone());
    if replaces {
        queue.stored = request.limits;
        queue.partition_flag = request.limits.partitioned();
        queue.polling = request.polling;
    }
    replace(tx, &stored, queue)
}

fn update(tx: &mut Tx<'_>, request: &UpdateQueue) -> rusqlite::Result<std::result::Result<QueueReply, FieldError>> {
    let Some(stored) = queues::read(tx.conn, &request.name)? else { return Ok(Ok(QueueReply::Missing)) };
    if let Some(owner) = stored.app.as_ref().filter(|owner| **owner != request.app) {
        return Ok(Ok(QueueReply::Owned(owner.clone())));
    }
    if request.change.is_empty() {
        return Ok(Ok(QueueReply::Kept(stored)));
    }
    match request.change.merge(&stored) {
        Ok(queue) => replace(tx, &stored, queue).map(Ok),
        Err(field) => Ok(Err(field)),
    }
}

/// Writes a queue that differs from what is stored, under a later revision.
fn replace(tx: &mut Tx<'_>, stored: &Queue, mut queue: Queue) -> rusqlite::Result<QueueReply> {
    if queue == *stored {
        return Ok(QueueReply::Kept(queue));
    }
    queue.revision = revision(tx)?;
    save(tx, sql::QUEUE_UPDATE, &queue)?;
    Ok(QueueReply::Updated(queue))
}

/// Later than every revision before it, of any queue, so that a queue made anew differs from the one it replaces.
fn revision(tx: &Tx<'_>) -> rusqlite::Result<Revision> {
    let latest: i64 = tx.conn.exactly(sql::STAMP, [], |found| found.get(0))?;
    Ok(Revision(tx.now.0.max(latest.saturating_add(1))))
}

fn save(tx: &mut Tx<'_>, statement: &'static str, queue: &Queue) -> rusqlite::Result<()> {
    queues::write(tx.conn, statement, queue)?;
    tx.stamped(queue.created_at);
    tx.queues_changed();
    Ok(())
}
