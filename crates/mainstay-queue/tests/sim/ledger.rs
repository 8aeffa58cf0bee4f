//! The checker of rows: replays every change of the store and judges it against the invariants that rows show.

use crate::plan::MAX_ATTEMPTS;
use mainstay_env::Timestamp;
use mainstay_store::wire::INTERNAL_QUEUE;
use mainstay_store::{
    Admission, Claim, Counts, Local, Queue, QueueName, Registered, Starts, Status, VersionName, WorkflowId, WorkflowRow,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// One change of one row.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) at: Timestamp,
    pub(crate) before: Option<WorkflowRow>,
    pub(crate) after: Option<WorkflowRow>,
}

/// What the test itself asked of the store, so that nothing else may have happened.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) submitted: BTreeSet<WorkflowId>,
    pub(crate) resumed: BTreeSet<WorkflowId>,
    pub(crate) deleted: BTreeSet<WorkflowId>,
    pub(crate) cancelled: BTreeSet<WorkflowId>,
    pub(crate) moved_delay: BTreeSet<WorkflowId>,
}

/// The state of the world in which a change happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Around<'a> {
    pub(crate) queues: &'a BTreeMap<QueueName, Queue>,
    /// Latest version, and whether any is registered, by application.
    pub(crate) latest: &'a dyn Latest,
    /// The claim that took these rows.
    pub(crate) claim: Option<&'a Claim>,
}

/// Knows which version takes unversioned rows.
pub(crate) trait Latest: std::fmt::Debug {
    /// Whether `version` is the latest of its application, or none is registered.
    fn is_latest(&self, app: &str, version: &VersionName) -> bool;
}

/// The rows as the changes so far have made them, and what must be remembered of the past.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) rows: BTreeMap<WorkflowId, WorkflowRow>,
    /// Flips of queues with a rate, in order.
    starts: BTreeMap<QueueName, Vec<Timestamp>>,
    /// Process limit in force when a row was claimed, by row and start stamp.
    pub(crate) worker_limit: BTreeMap<(WorkflowId, Timestamp), u32>,
    pub(crate) flips: u64,
    pub(crate) returns: u64,
    pub(crate) parked: u64,
    pub(crate) violations: Vec<String>,
}

impl Ledger {
    fn fault(&mut self, invariant: &str, text: String) {
        self.violations.push(format!("invariant {invariant}: {text}"));
    }

    /// Judges the changes of one store operation, in order, and takes them over.
    pub(crate) fn take(&mut self, changes: &[Change], asked: &Asked, around: Around<'_>) {
        let claims = |change: &&Change| claimed(change) || parked_by_claim(change);
        let claimed: Vec<&Change> = changes.iter().filter(claims).collect();
        if !claimed.is_empty() {
            self.claim(&claimed, around);
        }
        for change in changes {
            self.single(change, asked);
            let id = change.after.as_ref().or(change.before.as_ref()).map(|row| row.id.clone());
            match (&change.after, id) {
                (Some(row), Some(id)) => drop(self.rows.insert(id, row.clone())),
                (None, Some(id)) => drop(self.rows.remove(&id)),
                (_, None) => {}
            }
        }
    }

    fn single(&mut self, change: &Change, asked: &Asked) {
        match (&change.before, &change.after) {
            (None, Some(row)) => self.created(row, asked),
            (Some(row), None) => {
                if !asked.deleted.contains(&row.id) {
                    self.fault("4", format!("{} is gone and nobody deleted it", row.id));
                }
            }
            (Some(before), Some(after)) => self.moved(change.at, before, after, asked),
            (None, None) => {}
        }
    }

    fn created(&mut self, row: &WorkflowRow, asked: &Asked) {
        if !asked.submitted.contains(&row.id) {
            self.fault("5", format!("{} appeared and nobody submitted it", row.id));
        }
        if !matches!(row.status, Status::Delayed | Status::Enqueued | Status::Pending) {
            self.fault("5", format!("{} was made {}", row.id, row.status));
        }
    }

    fn moved(&mut self, at: Timestamp, before: &WorkflowRow, after: &WorkflowRow, asked: &Asked) {
        let id = &before.id;
        let kept = (before.created_at, before.priority, &before.name, &before.timeout, &before.parent);
        if kept != (after.created_at, after.priority, &after.name, &after.timeout, &after.parent) {
            self.fault("8", format!("{id} changed in what never changes: {before:?} -> {after:?}"));
        }
        if after.updated_at < before.updated_at {
            self.fault("8", format!("{id} went back in time: {before:?} -> {after:?}"));
        }
        let resumed = asked.resumed.contains(id) && after.status == Status::Enqueued && after.attempts == 0;
        match (before.status, after.status) {
            (from, to) if from == to => self.touched(before, after, asked),
            (Status::Enqueued, Status::Pending | Status::Parked) => {}
            (Status::Pending, Status::Success | Status::Error) => {}
            (Status::Delayed | Status::Enqueued | Status::Pending | Status::Parked, Status::Cancelled) => {
                let due = before.deadline.is_some_and(|deadline| deadline <= at);
                if !asked.cancelled.contains(id) && !due {
                    self.fault("6", format!("{id} was cancelled and nobody asked for it"));
                }
            }
            (_, Status::Enqueued) if resumed => {}
            (Status::Delayed, Status::Enqueued) => self.released(at, before, after),
            (Status::Pending, Status::Enqueued | Status::Delayed) => self.returned(before, after),
            (from, to) => self.fault("6", format!("{id} went from {from} to {to}")),
        }
    }

    /// A change that is no move: only a delay, attributes or the stamp.
    fn touched(&mut self, before: &WorkflowRow, after: &WorkflowRow, asked: &Asked) {
        let mut same = after.clone();
        same.updated_at = before.updated_at;
        if asked.moved_delay.contains(&before.id) && before.status == Status::Delayed {
            same.delay_until = before.delay_until;
        }
        let resumed = asked.resumed.contains(&before.id) && before.status == Status::Enqueued;
        if same != *before && !resumed {
            self.fault("42", format!("{} was changed without a move: {before:?} -> {after:?}", before.id));
        }
    }

    fn released(&mut self, at: Timestamp, before: &WorkflowRow, after: &WorkflowRow) {
        match before.delay_until {
            Some(due) if due <= at => {}
            due => self.fault("34", format!("{} was released at {at}, due {due:?}", before.id)),
        }
        if (&before.queue, before.attempts) != (&after.queue, after.attempts) {
            self.fault("34", format!("a release changed more than the state: {before:?} -> {after:?}"));
        }
    }

    /// A take-over or give-back keeps age, priority, deadline and dedup, and goes to the row's own queue. It keeps the attempts
    /// too, but for that of a body that never began.
    fn returned(&mut self, before: &WorkflowRow, after: &WorkflowRow) {
        self.returns += 1;
        let home = before.queue.clone().unwrap_or_else(|| QueueName::from(INTERNAL_QUEUE));
        if after.queue.as_ref() != Some(&home) {
            self.fault("49", format!("{} came back to {:?}, its queue is {home}", before.id, after.queue));
        }
        if before.attempts != after.attempts && before.attempts != after.attempts + 1 {
            self.fault(
                "50",
                format!("{} came back with {} attempts of {}", before.id, after.attempts, before.attempts),
            );
        }
        if (before.deadline, &before.dedup) != (after.deadline, &after.dedup) {
            self.fault("49", format!("a return changed more than the state: {before:?} -> {after:?}"));
        }
    }

    /// Judges what one claim took, all of it against the rows before it.
    fn claim(&mut self, changes: &[&Change], around: Around<'_>) {
        let Some(claim) = around.claim else {
            let ids: Vec<_> = changes.iter().filter_map(|change| change.before.as_ref()).map(|row| &row.id).collect();
            return self.fault("1", format!("{ids:?} were claimed and no claim was sent"));
        };
        let at = changes.iter().map(|change| change.at).max().unwrap_or_default();
        self.eligible_at_the_flip(changes, claim, around);
        self.takes_what_admission_allows(changes, claim, around, at);
        self.nothing_outranks(changes, claim, around);
        let queue = around.queues.get(&claim.queue);
        for change in changes {
            let (Some(before), Some(after)) = (&change.before, &change.after) else { continue };
            if parked_by_claim(change) {
                self.parked += 1;
                self.parks_only_over_the_cap(claim, before);
                continue;
            }
            self.flips += 1;
            self.writes_claim_columns_only(claim, before, after, queue);
            if let (Some(limit), Some(started)) =
                (queue.and_then(|queue| queue.limits().worker_concurrency), after.started_at)
            {
                self.worker_limit.insert((after.id.clone(), started), limit);
            }
            if queue.is_some_and(|queue| queue.limits().rate.is_some()) {
                self.starts.entry(claim.queue.clone()).or_default().push(at);
            }
        }
    }

    fn eligible_at_the_flip(&mut self, changes: &[&Change], claim: &Claim, around: Around<'_>) {
        for before in changes.iter().filter_map(|change| change.before.as_ref()) {
            if let Some(why) = ineligible(before, claim, around.latest) {
                let invariant = match why {
                    "function" => "39",
                    "version" => "45",
                    "application" => "46",
                    _ => "7",
                };
                self.fault(invariant, format!("{} claimed {before:?} of another {why}", claim.executor));
            }
        }
    }

    /// Right after a claim no limit is exceeded, and it took all that the limits and the rows allow.
    fn takes_what_admission_allows(&mut self, changes: &[&Change], claim: &Claim, around: Around<'_>, at: Timestamp) {
        let internal = claim.queue == *INTERNAL_QUEUE;
        let queue = around.queues.get(&claim.queue);
        let limits = match queue {
            Some(queue) => queue.limits(),
            None if internal => Default::default(),
            None => return self.fault("36", format!("a claim took rows of {}, which is not registered", claim.queue)),
        };
        let running = self.pending(claim);
        let started = limits.rate.map_or(0, |rate| {
            let starts = self.starts.get(&claim.queue);
            starts.map_or(0, |starts| starts.iter().filter(|start| **start > at - rate.period).count())
        });
        let taken = changes.len() as u32;
        let flipped = changes.iter().filter(|change| claimed(change)).count() as u32;
        if limits.concurrency.is_some_and(|limit| running + flipped > limit.max(running)) {
            let text = format!(
                "{} has {running} pending rows and {flipped} more, limit {:?}",
                claim.queue, limits.concurrency
            );
            self.fault("12", text);
        }
        if limits.rate.is_some_and(|rate| started as u32 + flipped > rate.starts) {
            self.fault(
                "15",
                format!("{} starts {flipped} after {started} in the window of {:?}", claim.queue, limits.rate),
            );
        }
        let counts = Counts { running, starts: Starts { count: started as u32, opens_in: None }, keys: Vec::new() };
        let local = Local { running: claim.local.running, ..Local::default() };
        let total = Admission { limits: &limits, local: &local, budget: claim.budget }.decide(&counts).total;
        let eligible = self.rows.values().filter(|row| ineligible(row, claim, around.latest).is_none()).count() as u32;
        if taken != total.min(eligible) {
            let mut text = format!("a claim on {} took {taken}, allowed {total}, eligible {eligible}", claim.queue);
            let _ = write!(text, ", limits {limits:?}, pending {running}, started {started}, budget {}", claim.budget);
            self.fault("17", text);
        }
    }

    fn nothing_outranks(&mut self, changes: &[&Change], claim: &Claim, around: Around<'_>) {
        let taken: BTreeSet<&WorkflowId> =
            changes.iter().filter_map(|change| change.before.as_ref()).map(|row| &row.id).collect();
        let Some(last) = changes.iter().filter_map(|change| change.before.as_ref()).map(WorkflowRow::rank).max() else {
            return;
        };
        let passed = self.rows.values().filter(|row| !taken.contains(&row.id) && row.rank() < last);
        let passed: Vec<_> =
            passed.filter(|row| ineligible(row, claim, around.latest).is_none()).map(|row| row.id.clone()).collect();
        if !passed.is_empty() {
            self.fault("23", format!("a claim on {} passed over {passed:?}", claim.queue));
        }
    }

    fn parks_only_over_the_cap(&mut self, claim: &Claim, before: &WorkflowRow) {
        let cap = claim.registered(before).map_or(MAX_ATTEMPTS, |registered: &Registered| registered.max_attempts);
        if before.attempts < cap {
            self.fault("38", format!("{} was parked after {} of {cap} attempts", before.id, before.attempts));
        }
    }

    fn writes_claim_columns_only(
        &mut self,
        claim: &Claim,
        before: &WorkflowRow,
        after: &WorkflowRow,
        queue: Option<&Queue>,
    ) {
        let cap = claim.registered(before).map_or(0, |registered| registered.max_attempts);
        if after.attempts != before.attempts + 1 {
            self.fault("50", format!("{} went from {} to {} attempts", before.id, before.attempts, after.attempts));
        }
        if after.attempts > cap {
            self.fault("38", format!("{} is begun {} times, at most {cap} are allowed", before.id, after.attempts));
        }
        let mut expected = before.clone();
        expected.status = Status::Pending;
        expected.attempts = after.attempts;
        expected.executor = Some(claim.executor.clone());
        expected.version = Some(claim.version.clone());
        expected.app = before.app.clone().or_else(|| Some(claim.app.clone()));
        (expected.started_at, expected.updated_at) = (after.started_at, after.updated_at);
        expected.rate_limited = queue.is_some_and(|queue| queue.limits().rate.is_some());
        if before.deadline.is_none() && before.timeout.is_some() {
            expected.deadline = after.deadline;
        }
        if expected != *after {
            self.fault("8", format!("a claim changed more than its columns: {before:?} -> {after:?}"));
        }
        if after.started_at <= before.started_at || after.started_at != Some(after.updated_at) {
            self.fault("8", format!("the start stamp of {after:?} is not of this claim"));
        }
    }

    /// Pending rows of the queue that count against its fleet limit.
    fn pending(&self, claim: &Claim) -> u32 {
        let counts = |row: &&WorkflowRow| {
            row.status == Status::Pending
                && row.queue.as_ref() == Some(&claim.queue)
                && row.app.as_ref().is_none_or(|app| *app == claim.app)
        };
        self.rows.values().filter(counts).count() as u32
    }
}

/// An enqueued row became pending.
fn claimed(change: &Change) -> bool {
    let status = |row: &Option<WorkflowRow>| row.as_ref().map(|row| row.status);
    (status(&change.before), status(&change.after)) == (Some(Status::Enqueued), Some(Status::Pending))
}

/// An enqueued row was set aside; only a claim does that.
fn parked_by_claim(change: &Change) -> bool {
    let status = |row: &Option<WorkflowRow>| row.as_ref().map(|row| row.status);
    (status(&change.before), status(&change.after)) == (Some(Status::Enqueued), Some(Status::Parked))
}

/// Which predicate of the claim the row fails.
pub(crate) fn ineligible(row: &WorkflowRow, claim: &Claim, latest: &dyn Latest) -> Option<&'static str> {
    if row.status != Status::Enqueued {
        return Some("status");
    }
    if row.queue.as_ref() != Some(&claim.queue) {
        return Some("queue");
    }
    if row.app.as_ref().is_some_and(|app| *app != claim.app) {
        return Some("application");
    }
    let fits = match &row.version {
        Some(version) => *version == claim.version,
        None => latest.is_latest(claim.app.as_str(), &claim.version),
    };
    if !fits {
        return Some("version");
    }
    claim.registered(row).is_none().then_some("function")
}
