//! How a batch is divided: units that can be written by kind share a transaction, the others have one each. Pure.
//!
//! A transaction writes kind by kind: all fences and positions are judged, then come all submits, outcomes, cancels,
//! give-backs and steps. So no row may be touched by two of its units, but for units of one fence that add to each other.
//! Then its result is that of its units one by one: those that were refused first, for they have seen nothing of the others.

use std::collections::{BTreeMap, BTreeSet};

use mainstay_store::{Effect, Place, StepOutput, Submit, Unit};

/// Most units of one transaction: its rows are locked until the last is written.
const MOST_UNITS: usize = 1_000;

/// Most bytes of payloads of one transaction, unless a single unit has more. A message of the protocol and an array of the
/// server hold 1 GiB.
const MOST_BYTES: u64 = 32 << 20;

/// One transaction; units are named by their place in the batch and stand in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// Written by kind.
    Together(Vec<usize>),
    /// Written effect by effect.
    Alone(usize),
}

/// What the units of a transaction touch.
#[derive(Default)]
struct Room<'u> {
    units: Vec<usize>,
    bytes: u64,
    /// Workflows that are made or moved.
    moved: BTreeSet<&'u str>,
    /// Queues and deduplication keys that are asked for.
    keys: BTreeSet<(&'u str, &'u str)>,
    fences: BTreeMap<&'u str, Execution>,
}

/// What the units of one fence do.
#[derive(Default)]
struct Execution {
    positions: BTreeSet<i32>,
    /// By an outcome or a give-back.
    ends: bool,
    /// A cancel may free a deduplication key, and submits are written before it.
    cancels: bool,
}

enum Built<'u> {
    Room(Box<Room<'u>>),
    Alone(usize),
}

/// Divides those units of a batch that `takes` names. Transactions are run in the order of the answer; a unit comes after every earlier one that
/// it meets, and after every earlier one of its fence or beside it.
pub(super) fn groups(units: &[Unit], takes: impl Fn(usize) -> bool) -> Vec<Group> {
    let mut built: Vec<Built<'_>> = Vec::new();
    // Nothing goes before a unit that stands alone: what it touches is known only when it runs.
    let mut floor = 0;
    for (at, unit) in units.iter().enumerate().filter(|(at, _)| takes(*at)) {
        if !is_plain(unit) {
            built.push(Built::Alone(at));
            floor = built.len();
            continue;
        }
        let place = place(&built, floor, unit);
        if place == built.len() {
            built.push(Built::Room(Box::default()));
        }
        if let Some(Built::Room(room)) = built.get_mut(place) {
            room.add(at, unit);
        }
    }
    let group = |built| match built {
        Built::Room(room) => Group::Together(room.units),
        Built::Alone(at) => Group::Alone(at),
    };
    built.into_iter().map(group).collect()
}

/// Where a unit goes; the number of groups for a new one.
fn place(built: &[Built<'_>], floor: usize, unit: &Unit) -> usize {
    let own = unit.fence.as_ref().map(|fence| fence.workflow().as_str());
    let mut lowest = floor;
    for (at, group) in built.iter().enumerate().skip(floor).rev() {
        let Built::Room(room) = group else { continue };
        if room.meets(unit) {
            lowest = at + 1;
            break;
        }
        if own.is_some_and(|own| room.fences.contains_key(own)) {
            lowest = at;
            break;
        }
    }
    let has_room = |group: &Built<'_>| matches!(group, Built::Room(room) if room.has_room(unit));
    (lowest..built.len()).find(|at| has_room(&built[*at])).unwrap_or(built.len())
}

impl<'u> Room<'u> {
    fn has_room(&self, unit: &Unit) -> bool {
        self.units.len() < MOST_UNITS && self.bytes.saturating_add(bytes(unit)) <= MOST_BYTES
    }

    /// Whether the unit has to come after the units here.
    fn meets(&self, unit: &Unit) -> bool {
        let own = unit.fence.as_ref().map(|fence| fence.workflow().as_str());
        let met = |id: &str| self.moved.contains(id) || self.fences.contains_key(id);
        let asked = unit.effects.iter().any(|effect| match effect {
            Effect::Submit(new) => met(new.id.as_str()) || key(new).is_some_and(|key| self.keys.contains(&key)),
            other => other.moves().iter().any(|id| met(id.as_str())),
        });
        asked
            || own.is_some_and(|own| {
                self.moved.contains(own) || self.fences.get(own).is_some_and(|execution| execution.meets(unit))
            })
    }

    fn add(&mut self, at: usize, unit: &'u Unit) {
        self.units.push(at);
        self.bytes = self.bytes.saturating_add(bytes(unit));
        for effect in &unit.effects {
            if let Effect::Submit(new) = effect {
                self.moved.insert(new.id.as_str());
                self.keys.extend(key(new));
            }
            self.moved.extend(effect.moves().iter().map(mainstay_store::WorkflowId::as_str));
        }
        let Some(fence) = &unit.fence else { return };
        let execution = self.fences.entry(fence.workflow().as_str()).or_default();
        execution.positions.extend(unit.steps.iter().map(|step| step.position.0));
        execution.ends |= unit.outcome.is_some() || unit.effects.iter().any(gives_back);
        execution.cancels |= unit.effects.iter().any(cancels);
    }
}

impl Execution {
    fn meets(&self, unit: &Unit) -> bool {
        self.ends
            || unit.effects.iter().any(gives_back)
            || unit.steps.iter().any(|step| self.positions.contains(&step.position.0))
            || self.cancels && unit.effects.iter().any(|effect| matches!(effect, Effect::Submit(_)))
    }
}

/// Whether a unit can be written by kind: submits and then cancels, each of a workflow and a key of its own, or a give-back.
pub(super) fn is_plain(unit: &Unit) -> bool {
    let mut ids: BTreeSet<&str> = unit.fence.iter().map(|fence| fence.workflow().as_str()).collect();
    let mut keys = BTreeSet::new();
    let mut cancelled = false;
    unit.effects.iter().all(|effect| match effect {
        Effect::Submit(new) => !cancelled && ids.insert(new.id.as_str()) && key(new).is_none_or(|key| keys.insert(key)),
        Effect::Cancel { ids: named, children: false } => {
            cancelled = true;
            named.iter().all(|id| ids.insert(id.as_str()))
        }
        Effect::GiveBack { .. } => true,
        _ => false,
    })
}

fn cancels(effect: &Effect) -> bool {
    matches!(effect, Effect::Cancel { .. })
}

fn gives_back(effect: &Effect) -> bool {
    matches!(effect, Effect::GiveBack { .. })
}

/// The key that a submit asks for, in its queue.
fn key(new: &Submit) -> Option<(&str, &str)> {
    match (&new.place, &new.dedup) {
        (Place::Queue { name, .. }, Some(dedup)) => Some((name.as_str(), dedup.key.as_str())),
        _ => None,
    }
}

/// Bytes of the payloads that a unit sends.
fn bytes(unit: &Unit) -> u64 {
    let steps = unit.steps.iter().filter_map(|step| match &step.output {
        StepOutput::Value(payload) | StepOutput::Failure(payload) => Some(payload),
        _ => None,
    });
    let effects = unit.effects.iter().flat_map(|effect| match effect {
        Effect::Submit(new) => [new.input.as_ref(), new.attributes.as_ref()],
        _ => [None, None],
    });
    let outcome = unit.outcome.iter().filter_map(mainstay_store::Outcome::payload);
    steps.chain(effects.flatten()).chain(outcome).map(mainstay_store::Payload::bytes).sum()
}

#[cfg(test)]
#[path = "groups_tests.rs"]
mod tests;
