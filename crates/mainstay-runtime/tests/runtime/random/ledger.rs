//! The ledger: what bodies did and what the store committed, in the order in which it happened, and what must never happen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mainstay_runtime::{Error, ErrorKind};
use mainstay_store::{
    Claimed, Committed, Effect, EffectReply, ExecutorId, Fence, Outcome, StepOutput, Steps, Unit, UnitReply, WorkflowId,
};

use super::coverage::Met;

/// One incarnation of a process.
pub(crate) type Run = Arc<str>;
/// A call: its workflow and position.
pub(crate) type Place = (WorkflowId, i32);

/// How a recorded row compares with that of another run of the same program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    /// It is there, and the same.
    Exact,
    /// Its moment of waking differs.
    Sleep,
    /// It is dropped before it commits: nothing is recorded.
    Absent,
    /// It may be missing.
    Maybe,
    /// Part of a race that either may win.
    Free,
    /// Its value differs.
    Status,
}

/// An execution.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Who {
    pub(crate) run: Run,
    pub(crate) id: WorkflowId,
    /// Counted by the store: later executions have higher ones.
    pub(crate) attempt: u32,
}

/// What a process is amidst of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amidst {
    /// A step's body.
    Step,
    /// Steps are committed, and their answer is under way.
    StepAnswer,
    /// The same for an outcome.
    OutcomeAnswer,
    /// The same for workflows that were started.
    StartAnswer,
    /// The same for claimed rows.
    ClaimAnswer,
}

impl Amidst {
    pub(crate) const ALL: [Self; 5] =
        [Self::Step, Self::StepAnswer, Self::OutcomeAnswer, Self::StartAnswer, Self::ClaimAnswer];

    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Step => "kill inside a step",
            Self::StepAnswer => "kill between a step's commit and reply",
            Self::OutcomeAnswer => "kill between an outcome's commit and reply",
            Self::StartAnswer => "kill between a start's commit and reply",
            Self::ClaimAnswer => "kill between a claim and its reply",
        }
    }
}

#[derive(Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<State>>);

#[derive(Default)]
pub(crate) struct State {
    pub(crate) met: Met,
    pub(crate) violations: Vec<String>,
    pub(crate) tags: BTreeMap<Place, Tag>,
    /// Winners of the races that either may win.
    pub(crate) races: BTreeMap<Place, usize>,
    /// Created and not ended.
    pub(crate) open: BTreeSet<WorkflowId>,
    pub(crate) ended: BTreeSet<WorkflowId>,
    /// What waiters of each incarnation were told of the root.
    pub(crate) answers: BTreeMap<Run, String>,
    /// Executions whose body lives.
    pub(crate) alive: BTreeMap<u64, Who>,
    /// The attempt that committed a row.
    committed: BTreeMap<Place, u32>,
    fences: BTreeMap<WorkflowId, Fence>,
    attempts: BTreeMap<Fence, u32>,
    wrote: BTreeMap<WorkflowId, u32>,
    newest: BTreeMap<(Run, WorkflowId), u32>,
    bodies: BTreeSet<(Who, i32, u32)>,
    finished: BTreeSet<Place>,
    amidst: BTreeMap<u64, (Run, Amidst)>,
    executors: BTreeMap<ExecutorId, Run>,
    next: u64,
}

impl State {
    fn violation(&mut self, text: String) {
        // One cause may have many effects: the first ones tell most.
        if self.violations.len() < 8 {
            self.violations.push(text);
        }
    }

    fn enter(&mut self, run: &Run, amidst: Amidst) -> u64 {
        self.next += 1;
        self.amidst.insert(self.next, (run.clone(), amidst));
        self.next
    }

    fn created(&mut self, id: &WorkflowId, fence: Option<&Fence>) {
        if !self.ended.contains(id) {
            self.open.insert(id.clone());
        }
        if let Some(fence) = fence {
            self.issued(fence, 1);
        }
    }

    fn issued(&mut self, fence: &Fence, attempt: u32) {
        self.attempts.insert(fence.clone(), attempt);
        self.fences.insert(fence.workflow().clone(), fence.clone());
    }

    fn end(&mut self, id: &WorkflowId) {
        self.open.remove(id);
        self.ended.insert(id.clone());
        self.fences.remove(id);
    }

    /// A unit that has committed: by the execution that holds the row, with the steps whose bodies have finished.
    fn done(&mut self, unit: &Unit, effects: &[EffectReply]) {
        if let Some(fence) = &unit.fence {
            let id = fence.workflow();
            if self.fences.get(id) != Some(fence) {
                self.violation(format!("{fence:?} has written, and {:?} holds the row", self.fences.get(id)));
            }
            let attempt = self.attempts.get(fence).copied().unwrap_or(0);
            let latest = self.wrote.entry(id.clone()).or_default();
            let newest = *latest;
            *latest = newest.max(attempt);
            if attempt < newest {
                self.violation(format!("attempt {attempt} of {id} has written after attempt {newest} had"));
            }
            for row in &unit.steps {
                let place = (id.clone(), row.position.0);
                let own = !row.name.as_str().starts_with("DBOS.") && row.child.is_none();
                if own && matches!(row.output, StepOutput::Value(_)) && !self.finished.contains(&place) {
                    self.violation(format!("{place:?} is recorded, and no body of it came to an end"));
                }
                self.committed.insert(place, attempt);
                // In every race of a program the first is a step, made two positions before.
                let by_step = row.name.as_str() == "DBOS.selectStep" && row.output == StepOutput::Value("0".into());
                if by_step && !unit.steps.iter().any(|other| other.position.0 == row.position.0 - 2) {
                    self.violation(format!("{id} at {}: the race is recorded without its winner", row.position));
                }
            }
        }
        for (effect, reply) in unit.effects.iter().zip(effects) {
            match (effect, reply) {
                (Effect::Submit(submit), EffectReply::Created(created)) => {
                    self.created(&submit.id, created.fence.as_ref());
                }
                (Effect::Cancel { .. }, EffectReply::Moved(ids)) => ids.iter().for_each(|id| self.end(id)),
                (Effect::GiveBack { .. }, _) => {
                    drop(unit.fence.as_ref().map(|fence| self.fences.remove(fence.workflow())))
                }
                _ => {}
            }
        }
        if let (Some(fence), Some(outcome)) = (&unit.fence, &unit.outcome) {
            if let Outcome::Parked(reason) = outcome {
                self.violation(format!("{} is set aside: {}", fence.workflow(), reason.as_str()));
            }
            self.end(&fence.workflow().clone());
        }
    }
}

impl Ledger {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn note(&self, what: &'static str) {
        self.lock().met.add(what, 1);
    }

    pub(crate) fn violation(&self, text: String) {
        self.lock().violation(text);
    }

    /// A body begins.
    pub(crate) fn begin(&self, who: &Who) -> Alive {
        let mut state = self.lock();
        state.next += 1;
        let number = state.next;
        state.alive.insert(number, who.clone());
        state.met.add(if who.attempt > 1 { "execution: later one" } else { "execution: first" }, 1);
        let newest = state.newest.entry((who.run.clone(), who.id.clone())).or_default();
        if *newest >= who.attempt {
            let newest = *newest;
            state.violation(format!("{who:?} begins after attempt {newest} has begun in the same process"));
        } else {
            *newest = who.attempt;
        }
        Alive { ledger: self.clone(), number }
    }

    /// A call takes a position.
    pub(crate) fn tag(&self, who: &Who, at: i32, tag: Tag) {
        let mut state = self.lock();
        let place = (who.id.clone(), at);
        if state.tags.insert(place.clone(), tag).is_some_and(|before| before != tag) {
            state.violation(format!("{place:?} is another call in another execution"));
        }
    }

    /// Code of an execution runs: none of an older one in the same process may.
    pub(crate) fn runs(&self, who: &Who) {
        let mut state = self.lock();
        let newest = state.newest.get(&(who.run.clone(), who.id.clone())).copied();
        if newest.is_some_and(|newest| newest > who.attempt) {
            state.violation(format!("{who:?} goes on beside attempt {newest:?} in one process"));
        }
    }

    /// The body of a step begins.
    pub(crate) fn step(&self, who: &Who, at: i32, number: u32) -> Inside {
        self.runs(who);
        let mut state = self.lock();
        let place = (who.id.clone(), at);
        if let Some(attempt) = state.committed.get(&place).copied().filter(|attempt| *attempt <= who.attempt) {
            state.violation(format!("{place:?} runs in {who:?}, and attempt {attempt} has committed it"));
        }
        if !state.bodies.insert((who.clone(), at, number)) {
            state.violation(format!("{place:?} runs twice in {who:?}, attempt {number} of the step"));
        }
        let entered = state.enter(&who.run, Amidst::Step);
        Inside { ledger: self.clone(), entered, place }
    }

    /// A race that either could win has been won.
    pub(crate) fn won(&self, who: &Who, at: i32, index: usize) {
        let mut state = self.lock();
        state.met.add(if index == 0 { "race: won by the step" } else { "race: won by the sleep" }, 1);
        if state.races.insert((who.id.clone(), at), index).is_some_and(|before| before != index) {
            state.violation(format!("the race at {at} of {who:?} was won by another before"));
        }
    }

    /// An error that no program makes is a violation.
    pub(crate) fn judge(&self, who: &Who, error: &Error) {
        if !matches!(error.kind(), ErrorKind::App | ErrorKind::Timeout | ErrorKind::Cancelled) {
            self.violation(format!("{who:?} was told {:?}: {error}", error.kind()));
        }
    }

    /// What a commit did.
    pub(crate) fn committed(&self, run: &Run, units: &[Unit], committed: &Committed) -> Vec<Answering> {
        let mut amidst = Vec::new();
        let mut state = self.lock();
        state.met.add("commits", 1);
        for (unit, reply) in units.iter().zip(&committed.units) {
            match reply {
                Ok(UnitReply::Done { effects }) => {
                    state.done(unit, effects);
                    let starts = effects.iter().any(|effect| matches!(effect, EffectReply::Created(_)));
                    amidst.extend((!unit.steps.is_empty()).then_some(Amidst::StepAnswer));
                    amidst.extend(unit.outcome.is_some().then_some(Amidst::OutcomeAnswer));
                    amidst.extend(starts.then_some(Amidst::StartAnswer));
                    state.met.add("units", 1);
                }
                Ok(UnitReply::Recorded { .. }) => state.met.add("reply: recorded", 1),
                Ok(UnitReply::Superseded { .. }) => state.met.add("reply: superseded", 1),
                Ok(UnitReply::Refused { .. }) => state.met.add("reply: refused", 1),
                Ok(other) => state.violation(format!("{unit:?} was answered {other:?}")),
                Err(error) => state.violation(format!("{unit:?} is not acceptable: {error}")),
            }
        }
        amidst.into_iter().map(|amidst| self.answering(&mut state, run, amidst)).collect()
    }

    /// What a claim took.
    pub(crate) fn claimed(&self, run: &Run, claimed: &Claimed) -> Vec<Answering> {
        let mut state = self.lock();
        for row in &claimed.rows {
            state.issued(&row.fence, row.row.attempts);
            state.met.add("claim: more steps than it brings", u64::from(matches!(row.steps, Steps::Partial { .. })));
        }
        if !claimed.parked.is_empty() {
            state.violation(format!("a claim has parked {:?}", claimed.parked));
        }
        let any = (!claimed.rows.is_empty()).then_some(Amidst::ClaimAnswer);
        any.into_iter().map(|amidst| self.answering(&mut state, run, amidst)).collect()
    }

    fn answering(&self, state: &mut State, run: &Run, amidst: Amidst) -> Answering {
        Answering { ledger: self.clone(), entered: state.enter(run, amidst) }
    }

    /// Rows that left their execution.
    pub(crate) fn taken(&self, ids: &[WorkflowId]) {
        let mut state = self.lock();
        for id in ids {
            state.fences.remove(id);
        }
        state.met.add("rows taken over", ids.len() as u64);
    }

    /// Rows that a tick has cancelled.
    pub(crate) fn ended(&self, ids: &[WorkflowId]) {
        let mut state = self.lock();
        ids.iter().for_each(|id| state.end(id));
        state.met.add("deadlines by a tick", ids.len() as u64);
    }

    /// Whose executor this is.
    pub(crate) fn beats(&self, run: &Run, executor: &ExecutorId) {
        self.lock().executors.insert(executor.clone(), run.clone());
    }

    pub(crate) fn run_of(&self, executor: &ExecutorId) -> Option<Run> {
        self.lock().executors.get(executor).cloned()
    }

    /// A process that is amidst of this.
    pub(crate) fn amidst(&self, wanted: Amidst) -> Option<Run> {
        let state = self.lock();
        state.amidst.values().find(|(_, amidst)| *amidst == wanted).map(|(run, _)| run.clone())
    }

    /// What a process is amidst of.
    pub(crate) fn all_amidst(&self, run: &Run) -> Vec<Amidst> {
        self.lock().amidst.values().filter(|(other, _)| other == run).map(|(_, amidst)| *amidst).collect()
    }
}

/// A body's place among the living.
pub(crate) struct Alive {
    ledger: Ledger,
    number: u64,
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.ledger.lock().alive.remove(&self.number);
    }
}

/// A step's body that runs.
pub(crate) struct Inside {
    ledger: Ledger,
    entered: u64,
    place: Place,
}

impl Inside {
    /// It came to its end.
    pub(crate) fn finish(self) {
        self.ledger.lock().finished.insert(self.place.clone());
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.ledger.lock().amidst.remove(&self.entered);
    }
}

/// An answer of the store that is under way.
pub(crate) struct Answering {
    ledger: Ledger,
    entered: u64,
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.ledger.lock().amidst.remove(&self.entered);
    }
}
