//! Submits as columns, and what their judge says of each.

use std::collections::BTreeSet;

use mainstay_store::{
    Created, EffectReply, Fence, OnExisting, OnHeld, Payload, Place, Refusal, Submit, Timestamp, Wakeup, When,
    WorkflowId,
};
use tokio_postgres::Row;

use super::columns::Ord;
use super::texts;
use crate::fault::Fault;
use crate::row::{self, bound, get, millis};
use crate::session::{Ask, Param};

/// Submits.
#[derive(Default)]
pub(super) struct Submits<'u> {
    whole: Vec<(Ord, i32, &'u Submit)>,
    executors: BTreeSet<&'u str>,
    leased: Vec<&'u str>,
    ords: Vec<Ord>,
    effects: Vec<i32>,
    ids: Vec<&'u str>,
    tokens: Vec<&'u str>,
    names: Vec<&'u str>,
    classes: Vec<Option<&'u str>>,
    configs: Vec<Option<&'u str>>,
    codecs: Vec<Option<&'u str>>,
    runs: Vec<Option<&'u str>>,
    queues: Vec<Option<&'u str>>,
    keys: Vec<Option<&'u str>>,
    delays: Vec<Option<i64>>,
    dues: Vec<Option<i64>>,
    priorities: Vec<i32>,
    dedups: Vec<Option<&'u str>>,
    parents: Vec<Option<&'u str>>,
    apps: Vec<Option<&'u str>>,
    versions: Vec<Option<&'u str>>,
    timeouts: Vec<Option<i64>>,
    lives: Vec<Option<i64>>,
    deadlines: Vec<Option<i64>>,
    attributes: Vec<Option<&'u str>>,
    schedules: Vec<Option<&'u str>>,
    users: Vec<Option<&'u str>>,
    roles: Vec<Option<&'u str>>,
    all_roles: Vec<Option<String>>,
    inputs: Vec<Option<&'u str>>,
    reusable: Vec<bool>,
    keep: Vec<bool>,
}

/// A moment as a duration from now, or as an instant.
fn moment(when: Option<When>) -> (Option<i64>, Option<i64>) {
    match when {
        Some(When::In(delay)) => (Some(millis(delay)), None),
        Some(When::At(at)) => (None, Some(at.0)),
        None => (None, None),
    }
}

impl<'u> Submits<'u> {
    /// A submit that is the effect `effect` of its unit; `now` is the time by which its id is new or not.
    pub(super) fn push(&mut self, ord: Ord, effect: i32, new: &'u Submit, now: Timestamp) {
        let (run, queue, key, delay) = match &new.place {
            Place::Run(executor) => (Some(executor.as_str()), None, None, None),
            Place::Queue { name, key, delay } => (None, Some(name.as_str()), bound(key.as_ref()), *delay),
        };
        let (delay, due) = moment(delay);
        let (life, deadline) = moment(new.deadline);
        self.executors.extend(run);
        self.whole.push((ord, effect, new));
        self.ords.push(ord);
        self.effects.push(effect);
        self.ids.push(new.id.as_str());
        self.tokens.push(new.token.as_str());
        self.names.push(new.name.as_str());
        self.classes.push(bound(new.class.as_ref()));
        self.configs.push(bound(new.config.as_ref()));
        self.codecs.push(bound(new.codec.as_ref()));
        self.runs.push(run);
        self.queues.push(queue);
        self.keys.push(key);
        self.delays.push(delay);
        self.dues.push(due);
        self.priorities.push(new.priority);
        self.dedups.push(new.dedup.as_ref().map(|dedup| dedup.key.as_str()));
        self.parents.push(bound(new.parent.as_ref()));
        self.apps.push(bound(new.app.as_ref()));
        self.versions.push(bound(new.version.as_ref()));
        self.timeouts.push(new.timeout.map(millis));
        self.lives.push(life);
        self.deadlines.push(deadline);
        self.attributes.push(new.attributes.as_ref().map(Payload::as_str));
        self.schedules.push(bound(new.schedule.as_ref()));
        self.users.push(new.caller.user.as_deref());
        self.roles.push(new.caller.role.as_deref());
        self.all_roles.push(row::stored_roles(&new.caller));
        self.inputs.push(new.input.as_ref().map(Payload::as_str));
        self.reusable.push(!is_fresh(new.id.as_str(), now));
        self.keep.push(new.on_existing == OnExisting::Return);
    }

    /// Makes the list of executors, once all are known.
    pub(super) fn seal(&mut self) {
        self.leased = self.executors.iter().copied().collect();
    }

    /// Holds the leases of what runs at once.
    pub(super) fn leases<'a>(&'a self, system: &'a String) -> Option<Ask<'a>> {
        let params: [Param<'a>; 2] = [system, &self.leased];
        (!self.leased.is_empty()).then(|| Ask::new(&texts::LEASES, &params))
    }

    pub(super) fn write<'a>(&'a self, now: &'a Option<i64>) -> Option<Ask<'a>> {
        let params: [Param<'a>; 28] = [
            now,
            &self.ords,
            &self.ids,
            &self.tokens,
            &self.names,
            &self.classes,
            &self.configs,
            &self.codecs,
            &self.runs,
            &self.queues,
            &self.keys,
            &self.delays,
            &self.dues,
            &self.priorities,
            &self.dedups,
            &self.parents,
            &self.apps,
            &self.versions,
            &self.timeouts,
            &self.lives,
            &self.deadlines,
            &self.attributes,
            &self.schedules,
            &self.users,
            &self.roles,
            &self.all_roles,
            &self.inputs,
            &self.reusable,
        ];
        (!self.ords.is_empty()).then(|| Ask::new(&texts::SUBMIT, &params))
    }

    pub(super) fn judge(&self) -> Option<Ask<'_>> {
        let params: [Param<'_>; 11] = [
            &self.ords,
            &self.effects,
            &self.ids,
            &self.tokens,
            &self.names,
            &self.classes,
            &self.configs,
            &self.runs,
            &self.queues,
            &self.dedups,
            &self.keep,
        ];
        (!self.ords.is_empty()).then(|| Ask::new(&texts::JUDGE, &params))
    }

    /// The submit that a row of the judge speaks of.
    pub(super) fn of(&self, ord: Ord, effect: i32) -> Result<&'u Submit, Fault> {
        let found = self.whole.binary_search_by_key(&(ord, effect), |(ord, effect, _)| (*ord, *effect));
        let found = found.ok().and_then(|at| self.whole.get(at));
        found.map(|(_, _, new)| *new).ok_or_else(|| Fault::unreadable("ord", "names no submit"))
    }
}

/// What the judge says of one submit.
pub(super) struct Judged {
    pub(super) ord: Ord,
    pub(super) effect: i32,
    /// The answer, or what refuses the unit; a row that cannot be read is the unit's own failure.
    pub(super) answer: Result<Result<EffectReply, Refusal>, Fault>,
    pub(super) hint: Option<Wakeup>,
    /// Whether the answer is an end without its payload.
    pub(super) lacking: bool,
}

/// Reads a row of the judge.
pub(super) fn judged(found: &Row, submits: &Submits<'_>) -> Result<Judged, Fault> {
    let (ord, effect) = (get(found, "ord")?, get(found, "effect")?);
    let new = submits.of(ord, effect)?;
    let verdict: &str = get(found, "verdict")?;
    let lacking = verdict == "existing" && row::is_lacking(found)?;
    let answer = match verdict {
        "created" => created(found, new).map(Ok),
        "existing" => row::standing(found).map(|standing| Ok(EffectReply::Existing(standing))),
        verdict => refusal(found, new, verdict).map(Err),
    };
    let claimable = matches!(&new.place, Place::Queue { delay: None, .. }) && get::<bool>(found, "made")?;
    let hint = match &new.place {
        Place::Queue { name, .. } if claimable => Some(Wakeup::Queue(name.clone())),
        _ => None,
    };
    Ok(Judged { ord, effect, answer, hint, lacking })
}

fn created(found: &Row, new: &Submit) -> Result<EffectReply, Fault> {
    let mut created = Created::new(row::stamp(found, "created_at")?);
    created.deadline = row::stamp_if(found, "deadline")?;
    created.fence = get::<Option<&str>>(found, "fence")?.map(|raw| Fence::issue(new.id.clone(), raw));
    Ok(EffectReply::Created(created))
}

fn refusal(found: &Row, new: &Submit, verdict: &str) -> Result<Refusal, Fault> {
    Ok(match (verdict, &new.place) {
        ("conflict", _) => conflict(found, &new.id)?,
        ("exists", _) => Refusal::Exists(new.id.clone()),
        ("unleased", Place::Run(executor)) => Refusal::Unleased(executor.clone()),
        ("held", _) => {
            let holder: WorkflowId = row::text(found, "holder")?;
            match new.dedup.as_ref().map(|dedup| dedup.on_held) {
                Some(OnHeld::Join) => Refusal::Joined { holder },
                _ => Refusal::Held { holder },
            }
        }
        _ => return Err(row::status(found).err().unwrap_or_else(|| Fault::unreadable("verdict", verdict))),
    })
}

/// The refusal that says whose an id is, by the columns `name`, `class` and `config`.
pub(super) fn conflict(found: &Row, id: &WorkflowId) -> Result<Refusal, Fault> {
    Ok(Refusal::Conflict {
        id: id.clone(),
        name: row::text(found, "name")?,
        class: row::text_if(found, "class")?,
        config: row::text_if(found, "config")?,
    })
}

/// How far from now the stamp of an id that is new may be, in milliseconds: an hour, clocks that differ included.
const FRESH: i64 = 3_600_000;

/// Whether an id was just made, as UUIDs with a time (version 7) are: nobody has ever left anything under it.
fn is_fresh(id: &str, now: Timestamp) -> bool {
    let form = id.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        14 => byte == b'7',
        _ => byte.is_ascii_hexdigit(),
    });
    if !form || id.len() != 36 {
        return false;
    }
    let stamp = i64::from_str_radix(&format!("{}{}", &id[..8], &id[9..13]), 16);
    stamp.is_ok_and(|stamp| stamp.abs_diff(now.0) <= FRESH.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_id_with_the_time_of_its_making_is_fresh() {
        let at = Timestamp(0x0192_f0a1_b2c3);
        let fresh = "0192f0a1-b2c3-7abc-8def-0123456789ab";
        assert!(
            is_fresh(fresh, at) && is_fresh(fresh, Timestamp(at.0 + FRESH)) && is_fresh(fresh, Timestamp(at.0 - FRESH))
        );
        assert!(!is_fresh(fresh, Timestamp(at.0 + FRESH + 1)), "an old one may have been used before");
        for other in [
            "0192f0a1-b2c3-4abc-8def-0123456789ab",
            "0192f0a1-b2c3-7abc-8def-0123456789ab-1",
            "0192f0a1-b2c3-7abc-8def-0123456789a",
            "0192f0a1xb2c3-7abc-8def-0123456789ab",
            "0192f0a1-b2c3-7abc-8def-0123456789aé",
            "order-42",
            "",
        ] {
            assert!(!is_fresh(other, at), "{other}");
        }
    }
}
