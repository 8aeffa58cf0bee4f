//! A claim's request as the parameters of its statements.

use mainstay_store::{Claim, Outcome, Store};
use tokio::sync::OwnedMutexGuard;

use crate::claim::fronts::{Asker, Hole, Planned};
use crate::session::Param;
use crate::store::Postgres;

/// What every statement of one claim is asked with.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) request: Claim,
    pub(crate) now: Option<i64>,
    pub(crate) system: String,
    pub(crate) asker: Asker,
    claim_bytes: i64,
    row_bytes: i64,
    caps: Vec<i32>,
    park_error: String,
    hole: (Option<i32>, Option<i64>, Option<bool>),
    _turn: OwnedMutexGuard<()>,
}

impl Wanted {
    /// `turn` is kept for as long as any call of the claim runs.
    pub(crate) fn new(store: &Postgres, request: Claim, turn: OwnedMutexGuard<()>) -> Self {
        let Claim { app, version, names, .. } = &request;
        let asker = Asker { app: app.clone(), version: version.clone(), names: names.clone() };
        let hole = store.fronts().hole(&request.queue, &asker, store.env().monotonic());
        // The statement puts a row's own number in the place of this one.
        let park_error = Outcome::out_of_attempts(u32::MAX).payload().map(|text| text.as_str().to_owned());
        Self {
            now: store.now(),
            system: store.system().to_owned(),
            claim_bytes: bytes(request.claim_bytes),
            row_bytes: bytes(request.row_bytes),
            caps: names.iter().map(|known| i32::try_from(known.max_attempts).unwrap_or(i32::MAX)).collect(),
            park_error: park_error.unwrap_or_default(),
            hole: (
                hole.map(|Hole { priority, .. }| priority),
                hole.map(|Hole { to, .. }| to),
                hole.map(|Hole { latest, .. }| latest),
            ),
            asker,
            request,
            _turn: turn,
        }
    }

    pub(crate) const fn row_bytes(&self) -> i64 {
        self.row_bytes
    }

    /// What a statement that takes is asked with.
    pub(crate) fn taking<'a>(&'a self, planned: &'a Planned, room: u32) -> Taking<'a> {
        let Claim { queue, executor, app, version, token, .. } = &self.request;
        Taking {
            wanted: self,
            planned,
            room: i32::try_from(room).unwrap_or(i32::MAX),
            texts: [queue.as_str(), executor.as_str(), app.as_str(), version.as_str(), token.as_str()],
            columns: self.asker.columns(),
        }
    }
}

/// A statement that takes, with what its parameters borrow.
pub(crate) struct Taking<'a> {
    wanted: &'a Wanted,
    planned: &'a Planned,
    room: i32,
    texts: [&'a str; 5],
    columns: [Vec<&'a str>; 3],
}

impl Taking<'_> {
    pub(crate) fn params(&self) -> [Param<'_>; 19] {
        let Wanted { now, system, claim_bytes, row_bytes, caps, park_error, hole, .. } = self.wanted;
        let [queue, executor, app, version, token] = &self.texts;
        let [names, classes, configs] = &self.columns;
        let (planned, room) = (&self.planned.revision, &self.room);
        [
            now,
            system,
            claim_bytes,
            row_bytes,
            queue,
            executor,
            app,
            version,
            token,
            planned,
            room,
            names,
            classes,
            configs,
            caps,
            park_error,
            &hole.0,
            &hole.1,
            &hole.2,
        ]
    }

    /// The same of a look for the rows that the token holds.
    pub(crate) fn repeating(&self) -> [Param<'_>; 7] {
        let Wanted { now, system, claim_bytes, row_bytes, .. } = self.wanted;
        let [queue, executor, _, _, token] = &self.texts;
        [now, system, claim_bytes, row_bytes, queue, executor, token]
    }
}

/// A number of bytes as the server counts.
pub(crate) fn bytes(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
