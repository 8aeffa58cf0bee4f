//! Plays a program undisturbed and disturbed, and compares what is stored.

use std::collections::BTreeMap;
use std::time::Duration;

use mainstay_env::Rng;
use mainstay_memory::{Memory, Trouble};
use mainstay_store::wrap::Rates;
use mainstay_store::{ReadSteps, Standing, Status, StepResult, WorkflowId, WorkflowStore};

use super::coverage::Met;
use super::fleet::{Fleet, ROOT, Setting, instantly};
use super::ledger::{Amidst, Ledger, Place, Tag};
use super::program::Program;

/// Longest undisturbed run.
const UNDISTURBED: Duration = Duration::from_secs(600);
/// What the end of the disturbance may cost: a call that hangs for 30 s, leases of the dead, and pauses of lanes and queues
/// that have seen failures.
pub(crate) const RECOVERY: Duration = Duration::from_secs(90);
/// The same where a twentieth of all calls goes on hanging for 30 s, beats of leases among them.
const ROUGH: Duration = Duration::from_secs(900);
/// What each workflow may cost beyond the undisturbed run where no hint is heard: polls of queues, of waits and of steps.
const EACH: Duration = Duration::from_secs(3);
/// How long after the end the processes may take to notice it: a read that hangs, then the next one.
const NOTICE: Duration = Duration::from_secs(45);

/// What is done to the processes, in order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    /// After so many polls, a process is killed, and launched again after so many more.
    Kill { process: usize, after: u32, down: u32 },
    /// The first process that is amidst of this is killed, if one is within some polls.
    Trap { amidst: Amidst, skip: u32, down: u32 },
    /// After so many polls, a process that lives loses its lease.
    Lease { process: usize, after: u32 },
    /// After so many polls, a process is shut down with so many milliseconds for what runs, and launched again later.
    Shutdown { process: usize, after: u32, limit: u64, down: u32 },
}

/// A program, and what is done while it runs.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) program: Program,
    pub(crate) processes: usize,
    pub(crate) setting: Setting,
    pub(crate) events: Vec<Event>,
    /// Calls go on failing to the end.
    pub(crate) to_the_end: bool,
}

/// A workflow as it is stored at the end.
#[derive(Clone, Debug)]
struct Stored {
    status: Status,
    outcome: String,
    ended_at: i64,
    steps: BTreeMap<i32, (String, StepResult, Option<WorkflowId>)>,
}

/// What a run has left.
pub(crate) struct Left {
    rows: BTreeMap<WorkflowId, Stored>,
    tags: BTreeMap<Place, Tag>,
    answers: Vec<String>,
    took: Duration,
}

impl Plan {
    /// Draws the plan of a seed.
    pub(crate) fn draw(seed: u64) -> Self {
        let rng = Rng::seeded(seed).child("plan");
        let program = Program::draw(&rng.child("program"));
        let processes = rng.between(2, 4) as usize;
        let trouble = match (seed % 2, rng.below(2)) {
            (0, _) => Trouble { contended: 0.05, ..Trouble::silent() },
            (_, 0) => Trouble { lost: 0.3, doubled: 0.2, contended: 0.1, ..Trouble::default() },
            _ => Trouble::default(),
        };
        // A call that hangs lasts 30 s: where all hang as often as the rest fails, leases are lost all the time.
        let (faults, to_the_end) = match rng.below(5) {
            0 => (Rates::default(), false),
            1 => (Rates { hang: 0.005, ..Rates::each(0.05) }, true),
            2 => (Rates::each(0.05), true),
            _ => (Rates::each(0.05), false),
        };
        let small = if program.waits_inside() { 1024 } else { rng.between(1, 4) as u32 };
        let max_running = if rng.chance(0.3) { small } else { 1024 };
        let setting = Setting { trouble, faults, max_running, by_queue: rng.chance(0.4) };
        let events = (0..rng.between(2, 8)).map(|_| draw_event(&rng, processes)).collect();
        Self { seed, program, processes, setting, events, to_the_end }
    }
}

fn draw_event(rng: &Rng, processes: usize) -> Event {
    // Most things happen soon: a whole run takes some hundred polls.
    let polls = |most: f64| (most.powf(rng.below(1000) as f64 / 1000.0)) as u32;
    let process = rng.index(processes);
    match rng.below(10) {
        0..=3 => Event::Kill { process, after: polls(900.0), down: polls(400.0) },
        4..=7 => {
            let amidst = Amidst::ALL[rng.index(Amidst::ALL.len())];
            Event::Trap { amidst, skip: rng.below(5) as u32, down: polls(400.0) }
        }
        8 => Event::Shutdown { process, after: polls(900.0), limit: rng.below(3000), down: polls(400.0) },
        _ => Event::Lease { process, after: polls(900.0) },
    }
}

/// Runs a program on one process that nothing happens to.
pub(crate) fn undisturbed(seed: u64, program: &Program) -> Result<Left, String> {
    let mut fleet = Fleet::new(seed, 1, program, Setting::calm());
    fleet.launch(0);
    let took = fleet.run(UNDISTURBED).map_err(|error| format!("undisturbed: {error}"))?;
    let left = finish(&mut fleet, took).map_err(|error| format!("undisturbed: {error}"))?;
    let state = fleet.ledger.lock();
    match state.tags.keys().find(|place| !left.rows.contains_key(&place.0)) {
        Some(place) => Err(format!("undisturbed: {place:?} has no row")),
        None => Ok(left),
    }
}

/// Plays a plan; what it met, and what was wrong.
pub(crate) fn play(plan: &Plan) -> (Met, Result<(), String>) {
    let wanted = match undisturbed(plan.seed, &plan.program) {
        Ok(wanted) => wanted,
        Err(error) => return (Met::default(), Err(error)),
    };
    let mut fleet = Fleet::new(plan.seed, plan.processes, &plan.program, plan.setting.clone());
    for process in 0..plan.processes {
        fleet.launch(process);
    }
    disturb(&mut fleet, &plan.events);
    fleet.all_up();
    let patience = if plan.to_the_end { ROUGH } else { RECOVERY };
    if !plan.to_the_end {
        fleet.calm_down();
    }
    let judged = drained(&mut fleet, &wanted, patience);
    fleet.note_all();
    let mut met = std::mem::take(&mut fleet.ledger.lock().met);
    met.add("polls", fleet.sim.polls());
    met.add("workflows", wanted.rows.len() as u64);
    met.add("hints: silent", u64::from(plan.setting.trouble.lost >= 1.0));
    met.add("places: few", u64::from(plan.setting.max_running < 1024));
    if let Ok(took) = judged {
        let label = if plan.to_the_end { "seconds to the end, faults go on" } else { "seconds to the end, calm" };
        met.raise(label, took.as_secs());
    }
    (met, judged.map(drop))
}

/// Runs what is left to its end, and compares.
pub(crate) fn drained(fleet: &mut Fleet, wanted: &Left, patience: Duration) -> Result<Duration, String> {
    let limit = wanted.took + patience + EACH * wanted.rows.len() as u32;
    let took = fleet.run(limit).map_err(|error| with_violations(&fleet.ledger, error))?;
    fleet.calm_down();
    let got = finish(fleet, took)?;
    let found = compare(wanted, &got, &fleet.ledger);
    if found.is_empty() { Ok(took) } else { Err(found.join("\n")) }
}

fn with_violations(ledger: &Ledger, error: String) -> String {
    let mut lines = ledger.lock().violations.clone();
    lines.push(error);
    lines.join("\n")
}

fn disturb(fleet: &mut Fleet, events: &[Event]) {
    let mut returns: Vec<(u32, usize)> = Vec::new();
    for event in events {
        match *event {
            Event::Kill { process, after, down } => {
                steps(fleet, after, &mut returns);
                if fleet.kill(process) {
                    returns.push((down, process));
                }
            }
            Event::Trap { amidst, mut skip, down } => {
                for _ in 0..1500 {
                    let caught = fleet.ledger.amidst(amidst).and_then(|run| fleet.process_of(&run));
                    if let Some(process) = caught {
                        if skip == 0 {
                            fleet.kill(process);
                            returns.push((down, process));
                            break;
                        }
                        skip -= 1;
                    }
                    if fleet.is_done() {
                        break;
                    }
                    steps(fleet, 1, &mut returns);
                }
            }
            Event::Shutdown { process, after, limit, down } => {
                steps(fleet, after, &mut returns);
                if fleet.shut_down(process, Duration::from_millis(limit)) {
                    returns.push((down, process));
                }
            }
            Event::Lease { process, after } => {
                steps(fleet, after, &mut returns);
                fleet.lose_lease(process);
            }
        }
    }
}

/// So many polls, in which processes come back.
fn steps(fleet: &mut Fleet, polls: u32, returns: &mut Vec<(u32, usize)>) {
    for _ in 0..polls {
        if fleet.is_down() {
            // Nothing else is left to wait for.
            returns.drain(..).for_each(|(_, process)| fleet.launch(process));
        }
        while !fleet.step() {}
        for (left, process) in returns.iter_mut() {
            *left = left.saturating_sub(1);
            if *left == 0 {
                fleet.launch(*process);
            }
        }
        returns.retain(|(left, _)| *left > 0);
    }
}

/// The stored state of a run that has ended, once its processes have noticed.
fn finish(fleet: &mut Fleet, took: Duration) -> Result<Left, String> {
    let until = fleet.now() + NOTICE;
    while !fleet.left().is_empty() && fleet.now() < until {
        fleet.step();
    }
    fleet.rest(Duration::from_secs(3));
    let mut wrong = fleet.ledger.lock().violations.clone();
    wrong.extend(fleet.left());
    wrong.extend(fleet.memory.check_invariants().err());
    if !wrong.is_empty() {
        return Err(wrong.join("\n"));
    }
    let rows = fleet.memory.rows();
    let stored = rows.into_iter().map(|row| (row.id.clone(), stored(&fleet.memory, &row)));
    let state = fleet.ledger.lock();
    let answers = state.answers.values().cloned().collect();
    Ok(Left { rows: stored.collect(), tags: state.tags.clone(), answers, took })
}

fn stored(memory: &Memory, row: &mainstay_store::WorkflowRow) -> Stored {
    let steps = instantly(memory.workflow_steps(ReadSteps::new(row.id.clone()).bytes(u64::MAX))).expect("steps");
    let standing = instantly(memory.workflow_standing(std::slice::from_ref(&row.id))).expect("a standing");
    let outcome = match &standing[0] {
        Standing::Ended(outcome) => outcome.payload().map_or("", |payload| payload.as_str()).to_owned(),
        other => format!("{other:?}"),
    };
    let steps = steps
        .here()
        .iter()
        .map(|step| (step.position.0, (step.name.to_string(), step.result.clone(), step.child.clone())));
    Stored { status: row.status, outcome, ended_at: row.completed_at.map_or(0, |at| at.0), steps: steps.collect() }
}

/// A text without the winners of races that either may win.
fn without_winners(text: &str) -> String {
    let mut parts = text.split("free@");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let position: String = part.chars().take_while(char::is_ascii_digit).collect();
        let rest = part[position.len()..].strip_prefix(' ').map_or("", |rest| rest.get(1..).unwrap_or(""));
        out.push_str(&format!("free@{position} ?{rest}"));
    }
    out
}

/// Everything in which a disturbed run differs from an undisturbed one.
fn compare(wanted: &Left, got: &Left, ledger: &Ledger) -> Vec<String> {
    let mut found = Vec::new();
    let ids = |left: &Left| left.rows.keys().cloned().collect::<Vec<_>>();
    if ids(wanted) != ids(got) {
        found.push(format!("workflows are {:?}, undisturbed {:?}", ids(got), ids(wanted)));
    }
    for (id, wanted_row) in &wanted.rows {
        let Some(row) = got.rows.get(id) else { continue };
        let same =
            row.status == wanted_row.status && without_winners(&row.outcome) == without_winners(&wanted_row.outcome);
        if !same {
            let (was, is) = ((wanted_row.status, &wanted_row.outcome), (row.status, &row.outcome));
            found.push(format!("{id} ended {is:?}, undisturbed {was:?}"));
        }
        let tagged = wanted.tags.keys().filter(|place| place.0 == *id).map(|place| &place.1);
        let positions = wanted_row.steps.keys().chain(row.steps.keys()).chain(tagged).copied();
        for at in positions.collect::<std::collections::BTreeSet<_>>() {
            let place = (id.clone(), at);
            let tag = got.tags.get(&place).or_else(|| wanted.tags.get(&place)).copied();
            found.extend(differs(tag, wanted_row, row, at).map(|text| format!("{id} at {at}: {text}")));
        }
    }
    races(got, ledger, &mut found);
    let answer = |left: &Left| left.answers.iter().map(|answer| without_winners(answer)).collect::<Vec<_>>();
    let told = answer(wanted);
    if answer(got).iter().any(|answer| told.first() != Some(answer)) {
        found.push(format!("waiters were told {:?}, undisturbed {told:?}", got.answers));
    }
    if !got.rows.contains_key(&WorkflowId::from(ROOT)) {
        found.push("the root is not there".to_owned());
    }
    found
}

fn differs(tag: Option<Tag>, wanted: &Stored, got: &Stored, at: i32) -> Option<String> {
    let (was, is) = (wanted.steps.get(&at), got.steps.get(&at));
    let apart = || Some(format!("recorded is {is:?}, undisturbed {was:?}"));
    // A workflow that is stopped is stopped sooner or later.
    let stopped = got.status == Status::Cancelled;
    let (Some(was), Some(is)) = (was, is) else {
        let missing = was.is_none() && is.is_none();
        return match tag {
            _ if stopped => None,
            Some(Tag::Maybe | Tag::Free) => None,
            Some(Tag::Absent) if missing => None,
            Some(_) if missing => Some("is recorded in neither run".to_owned()),
            _ => apart(),
        };
    };
    let text = |result: &StepResult| result.payload().map(|payload| without_winners(payload.as_str()));
    let same = match tag {
        None => return Some(format!("{is:?} is recorded, and no call took the position")),
        Some(Tag::Exact) => was.2 == is.2 && text(&was.1) == text(&is.1) && is_failure(&was.1) == is_failure(&is.1),
        Some(Tag::Sleep) => {
            let wake = text(&is.1).and_then(|text| text.parse::<i64>().ok());
            // The store's clock may be some milliseconds ahead: no two claims of it share a stamp.
            wake.is_some_and(|wake| stopped || wake <= got.ended_at + 20)
        }
        Some(Tag::Maybe | Tag::Status) => true,
        Some(Tag::Absent) => false,
        Some(Tag::Free) => return None,
    };
    if was.0 == is.0 && same { None } else { apart() }
}

fn is_failure(result: &StepResult) -> bool {
    matches!(result, StepResult::Failure(_))
}

/// The winner of a race that either could win is the one that is recorded.
fn races(got: &Left, ledger: &Ledger, found: &mut Vec<String>) {
    for ((id, at), index) in &ledger.lock().races {
        let Some(row) = got.rows.get(id) else { continue };
        let result = row.steps.get(at).and_then(|step| step.1.payload());
        let recorded = result.and_then(|payload| payload.as_str().parse::<usize>().ok());
        let step = row.steps.contains_key(&(at - 2));
        let sleep = row.steps.contains_key(&(at - 1));
        if recorded != Some(*index) || step != (*index == 0) || (*index == 1 && !sleep) {
            found.push(format!(
                "{id}: the body was told that {index} won the race at {at}; recorded is {recorded:?}, a step {step}, a \
                 sleep {sleep}"
            ));
        }
    }
}
