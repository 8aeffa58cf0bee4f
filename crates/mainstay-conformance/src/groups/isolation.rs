//! Group `isolation`: calls at once, each case one question.

use std::collections::BTreeMap;
use std::sync::Arc;

use mainstay_store::{
    Beat, Change, Claim, Collect, Effect, EffectReply, Fence, Fork, Joining, Limits, OnHeld, Outcome, Place,
    QueueChange, QueueReply, ReadSteps, RegisterQueue, Registered, Registry, Result, Standing, Status, Stop, Store,
    Submit, TakeOver, Tick, Unit, UnitReply, UpdateQueue, WorkflowId, WriteExt,
};

use crate::clients::{Work, at_once, held_back};
use crate::desk::{APP, Desk, E1, E2, Q, V1, WORK, ids, ms, step, success};

cases! { "isolation";
    no_row_is_claimed_twice;
    no_row_of_two_processes_is_claimed_twice: Shared;
    case_o20_two_processes_start_each_of_a_thousand_rows_once: Shared;
    no_enqueue_is_lost;
    an_id_submitted_by_many_is_one_workflow;
    an_id_submitted_by_two_processes_is_one_workflow: Shared;
    a_start_sent_twice_at_once_is_one_start;
    a_key_submitted_by_many_has_one_holder;
    a_cancel_at_the_side_of_a_claim_is_not_undone;
    a_cancel_and_an_outcome_have_one_winner;
    two_outcomes_of_one_fence_have_one_winner;
    a_position_written_by_two_is_written_once;
    a_claim_at_the_side_of_a_take_over_strands_no_row;
    a_start_at_the_side_of_a_take_over_strands_no_row;
    two_take_overs_return_each_row_once;
    beats_at_once_keep_the_highest;
    ticks_at_once_cancel_each_row_once;
    forks_at_once_make_one_copy;
    collections_at_once_remove_each_row_once;
    registrations_at_once_leave_one_of_them;
    changes_at_once_are_checked_one_after_the_other;
    versions_at_once_have_one_latest;
    a_reader_sees_a_unit_whole;
    a_reader_of_another_process_sees_a_unit_whole: Shared;
    a_reader_sees_the_steps_of_a_unit_whole;
    what_one_process_writes_the_other_reads: Shared;
    a_fence_works_in_another_process: Shared;
    a_fence_voided_in_one_process_is_void_in_the_other: Shared;
    batches_of_many_ids_in_any_order_do_not_stand_still;
}

fn work<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> Work<T> {
    Box::pin(work)
}

fn claim_by(queue: &str, executor: &str, token: String) -> Claim {
    Claim::new(queue, executor, APP, V1, token).names(vec![Registered::new(WORK)])
}

/// Rows `w0`, `w1`, … on the queue.
async fn fill(d: &Desk, count: u32) {
    let units: Vec<Unit> = (0..count).map(|n| Unit::new().effect(d.job(&format!("w{n}")))).collect();
    d.units(&units).await;
}

/// Claims and settles until the queue is drained; the ids that this client was given.
async fn drain(store: Arc<dyn Store>, executor: String) -> Vec<WorkflowId> {
    store.lease_beat(Beat::new(executor.as_str(), APP, 1_u64)).await.expect("leased");
    let mut taken = Vec::new();
    for round in 0_u32.. {
        let claim = claim_by(Q, &executor, format!("{executor} {round}")).budget(7);
        let claimed = store.queue_claim(claim).await.expect("claimed");
        let ends: Vec<Unit> = claimed.rows.iter().map(|row| Unit::by(&row.fence).outcome(success("end"))).collect();
        taken.extend(claimed.rows.iter().map(|row| row.row.id.clone()));
        if ends.is_empty() && claimed.stop != Stop::Contended {
            break;
        }
        let ended = store.commit(&ends).await.expect("settled").units;
        assert!(ended.iter().all(|end| end.as_ref().is_ok_and(UnitReply::is_done)), "an execution was lost");
    }
    taken
}

/// Clients of these stores drain so many rows; each row goes to one of them.
async fn drained(d: &Desk, stores: &[Arc<dyn Store>], clients: usize, count: u32) {
    fill(d, count).await;
    let client = |n: usize| work(drain(stores[n % stores.len()].clone(), format!("client-{n}~1")));
    let taken: Vec<WorkflowId> = at_once(d, (0..clients).map(client).collect()).await.concat();
    let mut times: BTreeMap<&WorkflowId, u32> = BTreeMap::new();
    for id in &taken {
        *times.entry(id).or_default() += 1;
    }
    let twice: Vec<_> = times.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "claimed more than once: {twice:?}");
    assert_eq!(times.len(), count as usize);
    for id in [0, count / 2, count - 1] {
        assert_eq!(d.row(&format!("w{id}")).await.attempts, 1);
    }
}

async fn no_row_is_claimed_twice(d: &Desk) {
    drained(d, &[d.store()], 6, 400).await;
}

async fn no_row_of_two_processes_is_claimed_twice(d: &Desk) {
    drained(d, &[d.store(), d.another().await], 4, 300).await;
}

async fn case_o20_two_processes_start_each_of_a_thousand_rows_once(d: &Desk) {
    drained(d, &[d.store(), d.another().await], 2, 1_000).await;
}

async fn no_enqueue_is_lost(d: &Desk) {
    let mut works: Vec<Work<Vec<WorkflowId>>> = Vec::new();
    for n in 0..4 {
        let store = d.store();
        works.push(work(async move {
            let mut made = Vec::new();
            for at in 0..40 {
                let id = WorkflowId::from(format!("p{n}-{at:02}"));
                let submit = Submit::new(&id, WORK, format!("make {id}"), Place::queue(Q)).app(APP);
                assert!(store.submit(submit).await.expect("submitted").is_done());
                made.push(id);
            }
            made
        }));
    }
    works.extend((0..2).map(|n| work(drain(d.store(), format!("drain-{n}~1")))));
    let done = at_once(d, works).await;
    let mut taken = done[4..].concat();
    taken.extend(drain(d.store(), "rest~1".to_owned()).await);
    let mut made = done[..4].concat();
    made.sort();
    taken.sort();
    assert_eq!(taken, made);
}

/// So many clients that each commit one unit of their own; their replies in order.
async fn commit_at_once(d: &Desk, stores: &[Arc<dyn Store>], units: Vec<Unit>) -> Vec<UnitReply> {
    let client = |(n, unit): (usize, Unit)| {
        let store = stores[n % stores.len()].clone();
        work(async move { store.unit(unit).await })
    };
    let replies = at_once(d, units.into_iter().enumerate().map(client).collect()).await;
    replies.into_iter().map(|reply: Result<UnitReply>| reply.expect("judged")).collect()
}

fn created(reply: &UnitReply) -> Option<&mainstay_store::Created> {
    match reply {
        UnitReply::Done { effects } => match &effects[..] {
            [EffectReply::Created(created)] => Some(created),
            _ => None,
        },
        _ => None,
    }
}

async fn one_workflow(d: &Desk, stores: &[Arc<dyn Store>]) {
    for round in 0..15 {
        let id = format!("w{round}");
        let units = (0..4).map(|_| Unit::new().effect(d.direct(&id))).collect();
        let replies = commit_at_once(d, stores, units).await;
        let made: Vec<_> = replies.iter().filter_map(created).collect();
        assert_eq!(made.len(), 1, "{replies:?}");
        let existing = UnitReply::Done { effects: vec![EffectReply::Existing(Standing::Open(Status::Pending))] };
        assert_eq!(replies.iter().filter(|reply| **reply == existing).count(), 3, "{replies:?}");
        d.settle(made[0].fence.as_ref().expect("a fence"), success("end")).await;
    }
}

async fn an_id_submitted_by_many_is_one_workflow(d: &Desk) {
    one_workflow(d, &[d.store()]).await;
}

async fn an_id_submitted_by_two_processes_is_one_workflow(d: &Desk) {
    one_workflow(d, &[d.store(), d.another().await]).await;
}

async fn a_start_sent_twice_at_once_is_one_start(d: &Desk) {
    for round in 0..15 {
        let unit = Unit::new().effect(d.direct(&format!("w{round}")));
        let replies = commit_at_once(d, &[d.store()], vec![unit; 3]).await;
        assert!(created(&replies[0]).is_some_and(|made| made.fence.is_some()), "{replies:?}");
        assert!(replies.iter().all(|reply| *reply == replies[0]), "{replies:?}");
    }
}

async fn a_key_submitted_by_many_has_one_holder(d: &Desk) {
    for round in 0..15 {
        let keyed = |n: u32| {
            let joining = Joining { key: format!("k{round}").as_str().into(), on_held: OnHeld::Join };
            Unit::new().effect(d.job(&format!("w{round}-{n}")).dedup(joining))
        };
        let replies = commit_at_once(d, &[d.store()], (0..4).map(keyed).collect()).await;
        let holder = d.store().workflow_holder(&Q.into(), &format!("k{round}").as_str().into()).await.expect("read");
        let holder = holder.expect("somebody holds the key");
        assert_eq!(replies.iter().filter(|reply| created(reply).is_some()).count(), 1, "{replies:?}");
        let joined = mainstay_store::Refusal::Joined { holder: holder.clone() };
        let joined = UnitReply::Refused { effect: 0, why: joined };
        assert_eq!(replies.iter().filter(|reply| **reply == joined).count(), 3, "{replies:?}");
        assert_eq!(d.row(holder.as_str()).await.dedup, Some(format!("k{round}").into()));
    }
}

async fn a_cancel_at_the_side_of_a_claim_is_not_undone(d: &Desk) {
    for round in 0..20 {
        let names: Vec<String> = (0..4).map(|n| format!("w{round}-{n}")).collect();
        let units: Vec<Unit> = names.iter().map(|id| Unit::new().effect(d.job(id))).collect();
        d.units(&units).await;
        let ids: Vec<WorkflowId> = names.iter().map(WorkflowId::from).collect();
        let (store, claim) = (d.store(), d.claim());
        let take = work(async move { store.queue_claim(claim).await.map(|claimed| claimed.rows.len()) });
        let (store, cancel) = (d.store(), Effect::Cancel { ids: ids.clone(), children: false });
        let end = work(async move {
            held_back(&store, 1 << (round % 10)).await;
            store.unit(Unit::new().effect(cancel)).await.map(|_| 0)
        });
        let done = at_once(d, vec![take, end]).await;
        let rows = d.store().workflow_rows(&ids).await.expect("read");
        let undone: Vec<_> = rows.iter().flatten().filter(|row| row.status != Status::Cancelled).collect();
        assert!(undone.is_empty(), "round {round}: {done:?} {undone:?}");
    }
}

async fn a_cancel_and_an_outcome_have_one_winner(d: &Desk) {
    for round in 0..20 {
        let id = format!("w{round}");
        let fence = d.start(&id).await;
        let cancel = Unit::new().effect(Effect::Cancel { ids: ids(&[&id]), children: false });
        let outcome = Unit::by(&fence).step(step(0, "last")).outcome(success("end"));
        let replies = commit_at_once(d, &[d.store()], vec![cancel, outcome]).await;
        let cancelled = replies[0] == UnitReply::Done { effects: vec![EffectReply::Moved(ids(&[&id]))] };
        let expected = if cancelled { Outcome::Cancelled } else { success("end") };
        assert_eq!(d.standing(&id).await, Standing::Ended(expected), "{replies:?}");
        assert_eq!((replies[1].is_done(), d.steps(&id).await.len()), (!cancelled, usize::from(!cancelled)));
    }
}

async fn two_outcomes_of_one_fence_have_one_winner(d: &Desk) {
    for round in 0..20 {
        let id = format!("w{round}");
        let fence = d.start(&id).await;
        let units = ["one", "two"].map(|end| Unit::by(&fence).outcome(success(end)));
        let replies = commit_at_once(d, &[d.store()], units.to_vec()).await;
        let winner = usize::from(!replies[0].is_done());
        let end = Standing::Ended(success(["one", "two"][winner]));
        assert_eq!(replies[1 - winner], UnitReply::Superseded { by: end.clone() });
        assert_eq!((replies[winner].is_done(), d.standing(&id).await), (true, end));
    }
}

async fn a_position_written_by_two_is_written_once(d: &Desk) {
    let fence = d.start("w").await;
    for at in 0..20 {
        let units = ["one", "two"].map(|value| Unit::by(&fence).step(step(at, value)));
        let replies = commit_at_once(d, &[d.store()], units.to_vec()).await;
        let stored = d.steps("w").await[at as usize].clone();
        let recorded = UnitReply::Recorded { rows: vec![stored] };
        let done = replies.iter().filter(|reply| reply.is_done()).count();
        assert_eq!((done, replies.contains(&recorded)), (1, true), "{replies:?}");
    }
}

/// A take-over at the side of a claim or a start: afterwards no row is pending under the executor.
async fn strands_none(d: &Desk, start: bool) {
    for round in 0..25 {
        let (executor, id) = (format!("x~{round}"), format!("w{round}"));
        d.lease(&executor).await;
        let (store, claim) = (d.store(), claim_by(Q, &executor, format!("t{round}")));
        let mut direct = d.direct(&id);
        direct.place = Place::Run(executor.as_str().into());
        if !start {
            d.enqueue(&id).await;
        }
        let begin = work(async move {
            match start {
                true => store.submit(direct).await.map(|reply| reply.is_done()),
                false => store.queue_claim(claim).await.map(|claimed| !claimed.rows.is_empty()),
            }
        });
        let (store, request) = (d.store(), TakeOver::new(executor.as_str(), 1_u64));
        let end = work(async move {
            held_back(&store, 1 << (round % 10)).await;
            store.lease_take_over(request).await.map(|_| true)
        });
        let done = at_once(d, vec![begin, end]).await;
        let held = d.store().queue_audit(mainstay_store::Audit::new(executor.as_str())).await.expect("audited").rows;
        assert!(held.is_empty(), "round {round}: a row is stranded, {done:?}");
        d.delete(&id).await;
    }
}

async fn a_claim_at_the_side_of_a_take_over_strands_no_row(d: &Desk) {
    strands_none(d, false).await;
}

async fn a_start_at_the_side_of_a_take_over_strands_no_row(d: &Desk) {
    strands_none(d, true).await;
}

async fn two_take_overs_return_each_row_once(d: &Desk) {
    fill(d, 40).await;
    assert_eq!(d.take_ids(d.claim()).await.len(), 40);
    let client = |_| {
        let store = d.store();
        work(async move {
            let mut taken = Vec::new();
            while let mainstay_store::TakenOver::Rows { ids, more } =
                store.lease_take_over(TakeOver::new(E1, 1_u64).limit(3)).await.expect("taken over")
            {
                taken.extend(ids);
                if !more {
                    break;
                }
            }
            taken
        })
    };
    let mut taken = at_once(d, (0..3).map(client).collect()).await.concat();
    taken.sort();
    taken.dedup();
    assert_eq!((taken.len(), d.take_ids(d.claim_by(E2)).await.len()), (40, 40));
}

async fn beats_at_once_keep_the_highest(d: &Desk) {
    let client = |n: u64| {
        let store = d.store();
        work(async move {
            for at in 0..20 {
                store.lease_beat(Beat::new(E1, APP, 2 + (at * 7 + n * 13) % 97)).await.expect("beaten");
            }
        })
    };
    at_once(d, (0..4).map(client).collect()).await;
    let highest = (0..4_u64).flat_map(|n| (0..20).map(move |at| 2 + (at * 7 + n * 13) % 97)).max();
    let leases = d.store().lease_list(&APP.into()).await.expect("listed").leases;
    assert_eq!(Some(leases[0].beat), highest);
}

async fn ticks_at_once_cancel_each_row_once(d: &Desk) {
    let units: Vec<Unit> = (0..60).map(|n| Unit::new().effect(d.job(&format!("w{n}")).deadline(ms(10)))).collect();
    d.units(&units).await;
    d.put(d.later("late", 10)).await;
    d.pass(10);
    let client = |_| {
        let store = d.store();
        work(async move {
            let mut seen = (Vec::new(), 0);
            for _ in 0..30 {
                let ticked = store.tick(Tick::new(APP).limit(5)).await.expect("ticked");
                seen.0.extend(ticked.cancelled);
                seen.1 += ticked.released.len();
            }
            seen
        })
    };
    let seen = at_once(d, (0..3).map(client).collect()).await;
    let mut cancelled: Vec<WorkflowId> = seen.iter().flat_map(|(ids, _)| ids.clone()).collect();
    let released: usize = seen.iter().map(|(_, released)| released).sum();
    cancelled.sort();
    let all = cancelled.len();
    cancelled.dedup();
    assert_eq!((all, cancelled.len(), released), (60, 60, 1));
}

async fn forks_at_once_make_one_copy(d: &Desk) {
    for source in ["a", "b"] {
        let fence = d.start(source).await;
        d.record(&fence, 0, source).await;
    }
    for round in 0..15 {
        let id = format!("copy{round}");
        let units = ["a", "b", "a", "b"].map(|source| Unit::new().effect(Fork::new(source, id.as_str(), 5)));
        let replies = commit_at_once(d, &[d.store()], units.to_vec()).await;
        let from = d.row(&id).await.forked_from.expect("a source");
        let expected: Vec<bool> = ["a", "b", "a", "b"].iter().map(|source| from == **source).collect();
        assert_eq!(replies.iter().map(UnitReply::is_done).collect::<Vec<_>>(), expected, "{replies:?}");
        assert_eq!(d.values(&id).await, [(0, from.as_str().to_owned())]);
    }
}

async fn collections_at_once_remove_each_row_once(d: &Desk) {
    fill(d, 60).await;
    let all: Vec<WorkflowId> = (0..60).map(|n| format!("w{n}").into()).collect();
    d.moved(Effect::Cancel { ids: all.clone(), children: false }).await;
    let client = |_| {
        let store = d.store();
        work(async move {
            let mut removed = 0;
            for _ in 0..20 {
                removed += store.collect(Collect::new(APP, ms(0)).limit(4)).await.expect("collected").removed;
            }
            removed
        })
    };
    assert_eq!(at_once(d, (0..3).map(client).collect()).await.iter().sum::<u32>(), 60);
    assert!(d.store().workflow_rows(&all).await.expect("read").iter().all(Option::is_none));
}

async fn registrations_at_once_leave_one_of_them(d: &Desk) {
    let client = |n: u32| {
        let store = d.store();
        work(async move {
            let limits = Limits { concurrency: Some(n + 1), ..Limits::default() };
            store.queue_register(RegisterQueue::new("new", APP).limits(limits)).await.expect("registered")
        })
    };
    let replies = at_once(d, (0..5).map(client).collect()).await;
    let created = replies.iter().filter(|reply| matches!(reply, QueueReply::Created(_))).count();
    let mut written: Vec<_> = replies
        .iter()
        .filter_map(|reply| match reply {
            QueueReply::Created(queue) | QueueReply::Updated(queue) => Some(queue.clone()),
            _ => None,
        })
        .collect();
    let listed = d.store().queue_list(&APP.into()).await.expect("listed").remove(0);
    assert_eq!((created, written.len(), written.contains(&listed)), (1, 5, true));
    written.sort_by_key(|queue| queue.revision);
    written.dedup_by_key(|queue| queue.revision);
    assert_eq!(written.len(), 5, "each has a revision of its own");
}

/// Each change alone fits the stored limits, and both together do not.
async fn changes_at_once_are_checked_one_after_the_other(d: &Desk) {
    for round in 0..15 {
        let name = format!("q{round}");
        let limits = Limits { concurrency: Some(5), worker_concurrency: Some(1), ..Limits::default() };
        d.register(&name, limits).await;
        let narrower = QueueChange { concurrency: Change::Set(2), ..QueueChange::default() };
        let wider = QueueChange { worker_concurrency: Change::Set(3), ..QueueChange::default() };
        let client = |change: QueueChange| {
            let (store, request) = (d.store(), UpdateQueue::new(name.as_str(), APP, change));
            work(async move { store.queue_update(request).await })
        };
        let replies = at_once(d, vec![client(narrower), client(wider)]).await;
        let invalid = replies.iter().filter_map(|reply| reply.as_ref().err()).map(crate::desk::field);
        assert_eq!(invalid.collect::<Vec<_>>(), ["worker_concurrency"], "round {round}");
        let queues = d.store().queue_list(&APP.into()).await.expect("listed");
        let stored = queues.iter().find(|queue| queue.name == *name).expect("the queue is listed");
        assert_eq!(stored.check(), Ok(()));
    }
}

async fn versions_at_once_have_one_latest(d: &Desk) {
    let client = |n: u32| {
        let store = d.store();
        work(async move { store.version_register(&APP.into(), &format!("v{n}").into()).await.expect("registered") })
    };
    at_once(d, (0..5).map(client).collect()).await;
    let versions = Registry::version_list(&*d.store(), &APP.into()).await.expect("listed");
    let ages: Vec<_> = versions.iter().map(|version| version.promoted_at).collect();
    assert_eq!((versions.len(), ages.is_sorted_by(|a, b| a > b)), (5, true), "{versions:?}");
}

/// A unit moves two rows again and again, while a reader asks for both in one call.
async fn seen_whole(d: &Desk, reader: Arc<dyn Store>) {
    let both = ids(&["a", "b"]);
    for id in ["a", "b"] {
        d.enqueue(id).await;
    }
    let (writer, moved) = (d.store(), both.clone());
    let write = work(async move {
        for _ in 0..60 {
            let cancel = Effect::Cancel { ids: moved.clone(), children: false };
            let resume = Effect::Resume { ids: moved.clone(), queue: None, force: false };
            for effect in [cancel, resume] {
                assert!(writer.unit(Unit::new().effect(effect)).await.expect("moved").is_done());
            }
        }
        0
    });
    let read = work(async move {
        let mut torn = 0;
        for _ in 0..200 {
            let standings = reader.workflow_standing(&both).await.expect("read");
            let rows = reader.workflow_rows(&both).await.expect("read");
            let status = |at: usize| rows[at].as_ref().map(|row| row.status);
            torn += u32::from(standings[0] != standings[1]) + u32::from(status(0) != status(1));
        }
        torn
    });
    assert_eq!(at_once(d, vec![write, read]).await, [0, 0], "a reader saw half of a unit");
}

async fn a_reader_sees_a_unit_whole(d: &Desk) {
    seen_whole(d, d.store()).await;
}

async fn a_reader_of_another_process_sees_a_unit_whole(d: &Desk) {
    seen_whole(d, d.another().await).await;
}

async fn a_reader_sees_the_steps_of_a_unit_whole(d: &Desk) {
    let fence = d.start("w").await;
    let (writer, reader) = (d.store(), d.store());
    let write = work(async move {
        for at in 0..60 {
            let unit = Unit::by(&fence).step(step(2 * at, "first")).step(step(2 * at + 1, "second"));
            assert!(writer.unit(unit).await.expect("judged").is_done());
        }
        0
    });
    let read = work(async move {
        let mut torn = 0;
        for _ in 0..200 {
            let steps = reader.workflow_steps(ReadSteps::new("w").bytes(u64::MAX)).await.expect("read");
            torn += steps.here().len() % 2;
        }
        torn
    });
    assert_eq!(at_once(d, vec![write, read]).await, [0, 0], "a reader saw half of a unit");
}

async fn what_one_process_writes_the_other_reads(d: &Desk) {
    let other = d.another().await;
    for n in 0..20 {
        let id = format!("w{n}");
        d.enqueue(&id).await;
        assert_eq!(other.workflow_standing(&ids(&[&id])).await.expect("read"), [Standing::Open(Status::Enqueued)]);
        let mut claimed = other.queue_claim(d.claim_by(E2)).await.expect("claimed");
        other.settle(&claimed.rows.remove(0).fence, success(&id)).await.expect("settled");
        assert_eq!(d.standing(&id).await, Standing::Ended(success(&id)));
    }
    d.register("new", Limits::default()).await;
    assert_eq!(other.queue_list(&APP.into()).await.expect("listed").len(), 2);
}

async fn a_fence_works_in_another_process(d: &Desk) {
    let other = d.another().await;
    let fence = d.claimed("w").await;
    assert!(other.unit(Unit::by(&fence).step(step(0, "1"))).await.expect("judged").is_done());
    assert!(other.settle(&fence, success("end")).await.expect("judged").is_done());
    assert_eq!(d.superseded(Unit::by(&fence).step(step(1, "2"))).await, Standing::Ended(success("end")));
}

async fn a_fence_voided_in_one_process_is_void_in_the_other(d: &Desk) {
    let other = d.another().await;
    let void = |reply: UnitReply| matches!(reply, UnitReply::Superseded { .. });
    for n in 0..10 {
        let fence: Fence = d.claimed(&format!("w{n}")).await;
        other.give_back(&fence).await.expect("given back");
        assert!(void(d.unit(Unit::by(&fence).outcome(success("late"))).await));
        let second = other.queue_claim(d.claim_by(E2)).await.expect("claimed").rows.remove(0).fence;
        assert!(void(d.unit(Unit::by(&fence).outcome(success("late"))).await));
        d.settle(&second, success("end")).await;
        assert!(void(other.settle(&second, success("late")).await.expect("judged")));
    }
}

async fn batches_of_many_ids_in_any_order_do_not_stand_still(d: &Desk) {
    fill(d, 40).await;
    let client = |n: u64| {
        let store = d.store();
        work(async move {
            let rng = mainstay_env::Rng::seeded(n);
            for _ in 0..10 {
                let mut all: Vec<WorkflowId> = (0..40).map(|n| format!("w{n}").into()).collect();
                rng.shuffle(&mut all);
                let cancel = Effect::Cancel { ids: all.clone(), children: rng.chance(0.5) };
                rng.shuffle(&mut all);
                let resume = Effect::Resume { ids: all, queue: Some(Q.into()), force: true };
                let units = [Unit::new().effect(cancel), Unit::new().effect(resume)];
                let replies = store.commit(&units).await.expect("judged").units;
                assert!(replies.iter().all(|reply| reply.as_ref().is_ok_and(UnitReply::is_done)), "{replies:?}");
            }
        })
    };
    at_once(d, (0..3).map(client).collect()).await;
    assert_eq!(d.take_ids(d.claim()).await.len(), 40);
}
