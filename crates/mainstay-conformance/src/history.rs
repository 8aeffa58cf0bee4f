//! The history checker: whether what clients were answered can have been one order of atomic operations.
//!
//! Each call is an interval on one counter, read before it and after it; its moment lies somewhere inside. Only what holds
//! wherever the moments lie is called a fault.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mainstay_store::{ClaimedRow, ExecutorId, Fence, Rate, Status, Timestamp, WorkflowId, WorkflowRow};

/// An acknowledged call and the interval of its moment.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) begun: u64,
    pub(crate) ended: u64,
    pub(crate) did: Did,
}

/// What a call was answered.
#[derive(Clone, Debug)]
pub(crate) enum Did {
    Enqueued(WorkflowId),
    Claimed {
        executor: ExecutorId,
        now: Timestamp,
        rows: Vec<Taken>,
    },
    /// A claim sent again: the rows that it still held.
    Repeated {
        rows: Vec<Taken>,
    },
    Settled {
        fence: Fence,
        done: bool,
    },
    GaveBack {
        fence: Fence,
        done: bool,
    },
    Cancelled {
        id: WorkflowId,
        moved: bool,
    },
    TookOver {
        executor: ExecutorId,
        ids: Vec<WorkflowId>,
    },
}

/// A row as a claim gave it out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) fence: Fence,
    pub(crate) attempts: u32,
    pub(crate) rank: (i32, Timestamp, WorkflowId),
}

impl Taken {
    pub(crate) fn of(claimed: &ClaimedRow) -> Self {
        Self { fence: claimed.fence.clone(), attempts: claimed.row.attempts, rank: claimed.row.rank() }
    }
}

/// Notes events of many clients.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    clock: AtomicU64,
    events: Mutex<Vec<Event>>,
}

impl Recorder {
    /// The moment before a call.
    pub(crate) fn begin(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// Notes what a call that began at `begun` was answered.
    pub(crate) fn note(&self, begun: u64, did: Did) {
        let ended = self.clock.fetch_add(1, Ordering::SeqCst);
        self.events.lock().expect("no client fails while it notes").push(Event { begun, ended, did });
    }

    /// All that was noted, in the order in which the calls ended.
    pub(crate) fn events(&self) -> Vec<Event> {
        let mut events = self.events.lock().expect("no client fails while it notes").clone();
        events.sort_by_key(|event| event.ended);
        events
    }
}

/// What the queue of the history allowed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Allowed {
    pub(crate) concurrency: Option<u32>,
    pub(crate) rate: Option<Rate>,
}

/// One execution of a row: from its claim to what ended it.
struct Execution<'a> {
    taken: &'a Taken,
    executor: &'a ExecutorId,
    claim: &'a Event,
    release: Option<&'a Event>,
}

/// Everything that no order of the calls explains, a sentence each. `last` are the rows as they were found at the end.
pub(crate) fn check(events: &[Event], last: &BTreeMap<WorkflowId, WorkflowRow>, allowed: Allowed) -> Vec<String> {
    let (executions, mut faults) = executions(events);
    faults.extend(claims(events));
    for (id, runs) in &executions {
        faults.extend(succession(id, runs));
    }
    faults.extend(refusals(events, &executions));
    faults.extend(ends(events, last, &executions));
    if let Some(limit) = allowed.concurrency {
        faults.extend(fleet(&executions, limit));
    }
    if let Some(rate) = allowed.rate {
        faults.extend(window(events, rate));
    }
    faults
}

type Executions<'a> = BTreeMap<&'a WorkflowId, Vec<Execution<'a>>>;

/// The executions of each row in order of attempts, each with the call that ended it.
fn executions(events: &[Event]) -> (Executions<'_>, Vec<String>) {
    let mut found: Executions<'_> = BTreeMap::new();
    for event in events {
        if let Did::Claimed { executor, rows, .. } = &event.did {
            for taken in rows {
                let run = Execution { taken, executor, claim: event, release: None };
                found.entry(taken.fence.workflow()).or_default().push(run);
            }
        }
    }
    for runs in found.values_mut() {
        runs.sort_by_key(|run| run.taken.attempts);
    }
    let mut faults = Vec::new();
    // What names a fence comes first: the others end what is left.
    for event in events {
        if let Did::Settled { fence, done: true } | Did::GaveBack { fence, done: true } = &event.did {
            faults.extend(let_go(&mut found, event, fence));
        }
    }
    for event in events {
        if let Did::TookOver { executor, ids } = &event.did {
            faults.extend(ids.iter().filter_map(|id| taken_over(&mut found, event, executor, id)));
        }
    }
    for event in events {
        if let Did::Cancelled { id, moved: true } = &event.did {
            // A row that waited had no execution to end.
            let last = found.get_mut(id).and_then(|runs| runs.last_mut());
            if let Some(run) = last.filter(|run| run.release.is_none()) {
                run.release = Some(event);
            }
        }
    }
    (found, faults)
}

fn let_go<'a>(found: &mut Executions<'a>, event: &'a Event, fence: &Fence) -> Option<String> {
    let runs = found.get_mut(fence.workflow()).map_or(&mut [][..], |runs| runs);
    match runs.iter_mut().find(|run| run.taken.fence == *fence) {
        Some(run) if run.release.is_none() => {
            run.release = Some(event);
            None
        }
        Some(_) => Some(format!("{fence:?} was let go of twice")),
        None => Some(format!("{fence:?} was never claimed")),
    }
}

fn taken_over<'a>(found: &mut Executions<'a>, event: &'a Event, by: &ExecutorId, id: &WorkflowId) -> Option<String> {
    let runs = found.get_mut(id).map_or(&mut [][..], |runs| runs);
    let run = runs.iter_mut().find(|run| run.executor == by && run.release.is_none());
    match run.filter(|run| run.claim.begun < event.ended) {
        Some(run) => {
            run.release = Some(event);
            None
        }
        None => Some(format!("{id} was taken over from {by}, which did not run it")),
    }
}

/// Within each claim: rows in order, no row twice; a repeat answers what its claim took.
fn claims(events: &[Event]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut issued: BTreeMap<&Fence, &Taken> = BTreeMap::new();
    for event in events {
        match &event.did {
            Did::Claimed { rows, .. } => {
                if !rows.is_sorted_by(|a, b| a.rank < b.rank) {
                    faults.push(format!("a claim's rows are out of order: {rows:?}"));
                }
                for taken in rows {
                    if issued.insert(&taken.fence, taken).is_some() {
                        faults.push(format!("{:?} was given out twice", taken.fence));
                    }
                }
            }
            Did::Repeated { rows } => {
                let unknown = rows.iter().filter(|taken| issued.get(&taken.fence).is_none_or(|first| *first != *taken));
                faults.extend(
                    unknown.map(|taken| format!("a repeat gave out {:?}, which its claim had not", taken.fence)),
                );
            }
            _ => {}
        }
    }
    faults
}

/// Between two executions of a row the first was let go of, and by something that leaves the row to be claimed.
fn succession(id: &WorkflowId, runs: &[Execution<'_>]) -> Vec<String> {
    let mut faults = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        if run.taken.attempts as usize != at + 1 {
            faults.push(format!("{id}: execution {} says that it is number {}", at + 1, run.taken.attempts));
        }
    }
    for pair in runs.windows(2) {
        let (first, second) = (&pair[0], &pair[1]);
        match first.release {
            None => faults.push(format!("{id}: claimed twice, {:?} and {:?}", first.taken.fence, second.taken.fence)),
            Some(release) if !matches!(release.did, Did::GaveBack { .. } | Did::TookOver { .. }) => {
                faults.push(format!("{id}: claimed again after its end by {:?}", release.did));
            }
            Some(release) if release.begun > second.claim.ended => {
                faults
                    .push(format!("{id}: claimed by {:?} while {:?} was live", second.taken.fence, first.taken.fence));
            }
            Some(_) => {}
        }
    }
    faults
}

/// A write that was refused, and a cancel that moved nothing, has a cause.
fn refusals(events: &[Event], executions: &Executions<'_>) -> Vec<String> {
    let ends_row = |event: &Event, id: &WorkflowId| match &event.did {
        Did::Settled { fence, done: true } => fence.workflow() == id,
        Did::Cancelled { id: cancelled, moved: true } => cancelled == id,
        _ => false,
    };
    let mut faults = Vec::new();
    for event in events {
        let excused = match &event.did {
            Did::Settled { fence, done: false } | Did::GaveBack { fence, done: false } => {
                let runs = executions.get(fence.workflow()).map_or(&[][..], |runs| runs);
                let run = runs.iter().find(|run| run.taken.fence == *fence);
                run.is_none_or(|run| run.release.is_some_and(|release| release.begun < event.ended))
            }
            Did::Cancelled { id, moved: false } => {
                events.iter().any(|other| other.begun < event.ended && ends_row(other, id))
            }
            _ => true,
        };
        if !excused {
            faults.push(format!("refused without a cause: {:?}", event.did));
        }
    }
    faults
}

/// The rows at the end: all that was enqueued, in the state that the last acknowledged call left.
fn ends(events: &[Event], last: &BTreeMap<WorkflowId, WorkflowRow>, executions: &Executions<'_>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut enqueued: BTreeMap<&WorkflowId, &Event> = BTreeMap::new();
    let mut cancelled: BTreeMap<&WorkflowId, &Event> = BTreeMap::new();
    for event in events {
        match &event.did {
            Did::Enqueued(id) => drop(enqueued.insert(id, event)),
            Did::Cancelled { id, moved: true } if cancelled.insert(id, event).is_some() => {
                faults.push(format!("{id}: was cancelled twice"));
            }
            _ => {}
        }
    }
    for (id, event) in &enqueued {
        let runs = executions.get(*id).map_or(&[][..], |runs| runs);
        if runs.first().is_some_and(|run| run.claim.ended < event.begun) {
            faults.push(format!("{id}: was claimed before it was enqueued"));
        }
        if let Some(cancel) = cancelled.get(*id)
            && runs.iter().any(|run| run.claim.begun > cancel.ended)
        {
            faults.push(format!("{id}: was claimed after it was cancelled"));
        }
        let expected = match (cancelled.get(*id), runs.last().map(|run| run.release.map(|release| &release.did))) {
            (Some(_), _) => Status::Cancelled,
            (None, Some(Some(Did::Settled { .. }))) => Status::Success,
            (None, Some(None)) => Status::Pending,
            (None, None | Some(Some(_))) => Status::Enqueued,
        };
        match last.get(*id) {
            None => faults.push(format!("{id}: was enqueued and is lost")),
            Some(row) if row.status != expected || row.attempts as usize != runs.len() => {
                let found = format!("{} after {} executions", row.status, row.attempts);
                faults.push(format!("{id}: is {found}, was left {expected} after {}", runs.len()));
            }
            Some(_) => {}
        }
    }
    let unknown = executions.keys().filter(|id| !enqueued.contains_key(*id));
    faults.extend(unknown.map(|id| format!("{id}: was claimed and never enqueued")));
    faults
}

/// At no time more executions were certainly live than the limit allows.
fn fleet(executions: &Executions<'_>, limit: u32) -> Vec<String> {
    let mut changes: Vec<(u64, i64)> = Vec::new();
    for run in executions.values().flatten() {
        let until = run.release.map_or(u64::MAX, |release| release.begun);
        if until > run.claim.ended {
            changes.extend([(run.claim.ended, 1), (until, -1)]);
        }
    }
    changes.sort_unstable();
    let (mut live, mut most) = (0, 0);
    for (_, change) in changes {
        live += change;
        most = most.max(live);
    }
    if most > i64::from(limit) {
        vec![format!("{most} executions were live at once, {limit} are allowed")]
    } else {
        vec![]
    }
}

/// No window of the rate's length, its first moment left out, holds more starts than the rate allows.
fn window(events: &[Event], rate: Rate) -> Vec<String> {
    let mut starts: Vec<Timestamp> = Vec::new();
    for event in events {
        if let Did::Claimed { now, rows, .. } = &event.did {
            starts.extend(rows.iter().map(|_| *now));
        }
    }
    starts.sort_unstable();
    let mut faults = Vec::new();
    for (at, start) in starts.iter().enumerate() {
        let until = *start + rate.period - Duration::from_millis(1);
        let inside = starts[at..].iter().take_while(|other| **other <= until).count();
        if inside > rate.starts as usize {
            faults.push(format!("{inside} starts in the window that begins at {start}, {} are allowed", rate.starts));
            break;
        }
    }
    faults
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
