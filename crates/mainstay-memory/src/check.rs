//! The checker: what must hold between the rows and everything derived from them.

use std::collections::BTreeSet;

use mainstay_store::{Status, Timestamp, WorkflowRow};

use crate::index::Indexes;
use crate::state::{Record, State};

/// Everything that does not hold, a sentence each.
pub(crate) fn state(state: &State) -> Vec<String> {
    let mut found = Vec::new();
    for (id, record) in &state.rows {
        let broken = row_rules(record, state.latest).into_iter().filter(|(holds, _)| !holds);
        found.extend(broken.map(|(_, rule)| format!("{id} ({}): {rule}", record.row.status)));
        if *id != record.row.id {
            found.push(format!("{id}: is stored under another id than its own"));
        }
    }
    // Indexes are derived from rows that are sound; of others they say nothing.
    if found.is_empty() {
        found.extend(index_rules(state));
    }
    found.extend(store_rules(state));
    found
}

type Rule = (bool, &'static str);

fn row_rules(record: &Record, latest: Timestamp) -> Vec<Rule> {
    let mut rules = status_rules(record);
    let row = &record.row;
    let stamps = [Some(row.created_at), row.started_at, row.completed_at];
    rules.extend([
        (stamps.into_iter().flatten().all(|at| at <= row.updated_at), "updated_at is not before its other stamps"),
        (row.started_at.is_none_or(|at| at >= row.created_at), "it starts after it was submitted"),
        (row.updated_at <= latest, "the latest stamp is not before updated_at"),
        (record.steps.iter().all(|(at, step)| *at == step.position), "a step lies at its position"),
        (record.steps.values().all(|step| step.completed_at.is_some()), "a step has the time of its end"),
        (row.forked_from.is_none() || record.creator.is_none(), "a fork has no creator"),
    ]);
    rules
}

fn status_rules(record: &Record) -> Vec<Rule> {
    let Record { row, outcome, owner, .. } = record;
    let WorkflowRow { queue, dedup, executor, started_at, completed_at, delay_until, attempts, .. } = row;
    let status = row.status;
    let waits = matches!(status, Status::Delayed | Status::Enqueued);
    let pending = status == Status::Pending;
    let set_aside = matches!(status, Status::Cancelled | Status::Parked);
    vec![
        (outcome.as_ref().map(|outcome| outcome.status()) == status.is_ended().then_some(status), "its outcome fits"),
        (completed_at.is_some() == status.is_ended(), "an ended row alone has the time of its end"),
        (owner.is_some() == pending, "a pending row alone has an owner"),
        (!pending || executor.is_some(), "a pending row has an executor"),
        (!pending || *attempts > 0, "a pending row has begun"),
        (started_at.is_none() == (waits || set_aside), "a row that runs or has run to its end alone has a start"),
        (!waits || queue.is_some(), "a row that waits has a queue"),
        (!set_aside || queue.is_none(), "a row that is set aside has no queue"),
        (dedup.is_none() || queue.is_some() && !status.is_ended(), "an open row on a queue alone carries a key"),
        (status != Status::Delayed || delay_until.is_some(), "a delayed row has a due time"),
        (
            !pending || queue.is_none() || row.app.is_some() && row.version.is_some(),
            "a claimed row has its claimer's names",
        ),
    ]
}

fn index_rules(state: &State) -> Vec<String> {
    let mut fresh = Indexes::default();
    for record in state.rows.values() {
        fresh.add(record);
    }
    let kept = &state.index;
    let count = |wanted: Status| state.rows.values().filter(|record| record.row.status == wanted).count();
    let pending = count(Status::Pending);
    let enqueued: usize = kept.enqueued.values().map(|groups| groups.total()).sum();
    let rules = [
        (fresh.enqueued == kept.enqueued && enqueued == count(Status::Enqueued), "enqueued"),
        (fresh.running == kept.running, "running"),
        (fresh.held_by_age == kept.held_by_age && kept.held_by_age.total() == pending, "held_by_age"),
        (fresh.held_by_id == kept.held_by_id && kept.held_by_id.total() == pending, "held_by_id"),
        (fresh.tokens == kept.tokens && kept.tokens.total() == pending, "tokens"),
        (fresh.delayed == kept.delayed && kept.delayed.total() == count(Status::Delayed), "delayed"),
        (fresh.deadlines == kept.deadlines, "deadlines"),
        (fresh.ended == kept.ended, "ended"),
        (fresh.dedup == kept.dedup, "dedup"),
        (fresh.children == kept.children, "children"),
    ];
    rules
        .into_iter()
        .filter(|(holds, _)| !holds)
        .map(|(_, name)| format!("index {name}: differs from the rows"))
        .collect()
}

fn store_rules(state: &State) -> Vec<String> {
    let mut found = Vec::new();
    let fences: Vec<_> =
        state.rows.values().filter_map(|record| record.owner.as_ref()).map(|owner| &owner.raw).collect();
    if fences.iter().collect::<BTreeSet<_>>().len() != fences.len() {
        found.push("two executions share a fence".to_owned());
    }
    for (name, queue) in &state.queues {
        if queue.name != *name || queue.revision.0 > state.stamp.0 {
            found.push(format!("queue {name}: its name or revision is not its own"));
        }
    }
    for (name, starts) in &state.starts {
        if !starts.is_ordered() {
            found.push(format!("queue {name}: its starts are not in order"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use mainstay_store::{DedupKey, Effect, OnHeld, Outcome, Place, StoreClock, Submit, Unit, WriteExt};

    use super::*;
    use crate::memory::Memory;

    /// One row in every state, with a parent, a key, a deadline and a delay among them.
    fn filled() -> (mainstay_env::Sim, Memory) {
        let sim = mainstay_env::Sim::new(1);
        let memory = Memory::open(sim.env("one"), StoreClock::Server);
        sim.block_on(async {
            let open = mainstay_store::Beat::new("e~1", "shop", 1u64);
            mainstay_store::ExecutorStore::lease_beat(&memory, open).await.expect("a lease");
            let run = |id: &str| Submit::new(id, "f", id, Place::Run("e~1".into()));
            let hour = std::time::Duration::from_secs(3600);
            let delayed = Place::Queue { name: "q".into(), key: None, delay: Some(hour.into()) };
            let key = mainstay_store::Joining { key: DedupKey::from("k"), on_held: OnHeld::Reject };
            let unit = Unit::new()
                .effect(run("pending").parent("done").deadline(hour))
                .effect(run("done"))
                .effect(Submit::new("delayed", "f", "delayed", delayed))
                .effect(Submit::new("enqueued", "f", "enqueued", Place::queue("q")).dedup(key))
                .effect(Submit::new("cancelled", "f", "cancelled", Place::queue("q")))
                .effect(Effect::Cancel { ids: vec!["cancelled".into()], children: false });
            assert!(memory.unit(unit).await.is_ok_and(|reply| reply.is_done()));
            let fence = memory.fences().into_iter().find(|fence| fence.workflow().as_str() == "done");
            let outcome = Outcome::Success("1".into());
            memory.settle(&fence.expect("it runs"), outcome).await.expect("an outcome");
        });
        assert_eq!(memory.check_invariants(), Ok(()));
        (sim, memory)
    }

    fn check_red(what: &str, wanted: &str, damage: impl FnOnce(&mut State)) {
        let (_sim, memory) = filled();
        damage(&mut memory.state());
        let found = memory.check_invariants().expect_err(what);
        assert!(found.contains(wanted), "{what}: {found}");
    }

    #[test]
    fn an_index_that_forgets_or_keeps_a_row_is_found() {
        let id = |id: &str| mainstay_store::WorkflowId::from(id);
        for name in
            ["enqueued", "running", "held_by_age", "tokens", "delayed", "deadlines", "ended", "dedup", "children"]
        {
            let empty = Indexes::default();
            let damage = |state: &mut State| match name {
                "enqueued" => state.index.enqueued = empty.enqueued,
                "running" => {
                    let record = state.rows.get_mut(&id("pending")).expect("a row");
                    record.row = record.row.clone().queue("q").app("shop").version("v1");
                }
                "held_by_age" => state.index.held_by_age = empty.held_by_age,
                "tokens" => state.index.tokens = empty.tokens,
                "delayed" => state.index.delayed = empty.delayed,
                "deadlines" => state.index.deadlines = empty.deadlines,
                "ended" => state.index.ended = empty.ended,
                "dedup" => state.index.dedup = empty.dedup,
                _ => state.index.children = empty.children,
            };
            check_red(name, &format!("index {name}: differs"), damage);
        }
        check_red("a row that is gone", "index held_by_id: differs", |state| {
            state.rows.remove(&id("pending"));
        });
    }

    #[test]
    fn a_row_that_its_state_does_not_allow_is_found() {
        type Damage = fn(&mut Record);
        let cases: [(&str, &str, Damage); 6] = [
            ("pending", "a pending row alone has an owner", |record| record.row.status = Status::Success),
            ("done", "its outcome fits", |record| record.outcome = Some(Outcome::Cancelled)),
            ("done", "a row that runs", |record| record.row.started_at = None),
            ("cancelled", "a row that is set aside has no queue", |record| record.row.queue = Some("q".into())),
            ("pending", "a pending row has begun", |record| record.row.attempts = 0),
            ("done", "an open row on a queue alone", |record| record.row.dedup = Some("k".into())),
        ];
        for (id, wanted, damage) in cases {
            let (_sim, memory) = filled();
            let mut state = memory.state();
            let record = state.rows.get_mut(&mainstay_store::WorkflowId::from(id)).expect("a row");
            damage(record);
            let found: Vec<&str> = row_rules(record, Timestamp(i64::MAX))
                .into_iter()
                .filter(|(holds, _)| !holds)
                .map(|(_, rule)| rule)
                .collect();
            assert!(found.iter().any(|rule| rule.starts_with(wanted)), "{id}: {wanted}: {found:?}");
        }
    }

    #[test]
    fn two_executions_with_one_fence_are_found() {
        check_red("a fence given twice", "two executions share a fence", |state| {
            let owner = state.rows.values().find_map(|record| record.owner.clone());
            for record in state.rows.values_mut() {
                record.owner = owner.clone();
            }
        });
    }
}
