//! Commits that meet other transactions in the same rows: what is locked, in which order, and what is seen of the others.

use std::pin::pin;
use std::slice;
use std::time::Duration;

use futures_util::future::{Either, join, join_all, select};
use mainstay_env::block_on;
use mainstay_pgkit::{Client, Proxy};
use mainstay_postgres::Config;
use mainstay_store::{
    Beat, Effect, EffectReply, ErrorKind, ExecutorStore, Fence, Fork, Position, Refusal, Store, Unit, UnitReply, When,
    WorkflowId, WriteExt, WriteStore,
};

use super::commit::{APP, E1, direct, job, start, started, step};
use crate::store::support::{self, until, until_waiting, with_store};

/// Begins a transaction that holds a row.
fn hold(client: &mut Client, id: &str) {
    client.run(&format!("BEGIN; SELECT FROM dbos.workflow_status WHERE workflow_uuid = '{id}' FOR UPDATE"));
}

#[test]
fn batches_that_overlap_in_any_order_all_end() {
    const BATCHES: usize = 6;
    let Some(database) = support::database() else { return };
    // The server undoes none of those that wait for each other, so they are seen to wait.
    let name = database.name();
    database.client().run(&format!("ALTER DATABASE \"{name}\" SET deadlock_timeout = '1h'"));
    block_on(async {
        let store = support::open(&database, |config| config.pool(8)).await;
        store.lease_beat(Beat::new(E1, APP, 1_u64)).await.expect("a lease");
        // In every order of 60 of 64 rows.
        let places = |shift: usize, back: bool| {
            let places: Vec<usize> = (0..60).map(|n| (n * 7 + shift) % 64).collect();
            if back { places.into_iter().rev().collect() } else { places }
        };
        let (mut holder, mut watch) = (database.client(), database.client());
        for round in 0..8 {
            let id = |n: usize| format!("r{round}w{n}");
            let units: Vec<Unit> = (0..64).map(|n| Unit::new().effect(direct(&id(n), &id(n)))).collect();
            let replies = store.commit(&units).await.expect("submitted").units;
            let fences: Vec<Fence> = replies.into_iter().map(|reply| started(reply.expect("judged"))).collect();
            // All meet at a row that somebody holds: those that came by another way hold what the others need next.
            let middle = format!("'{}', '{}'", id(30 + round), id(50 - round));
            holder
                .run(&format!("BEGIN; SELECT FROM dbos.workflow_status WHERE workflow_uuid IN ({middle}) FOR UPDATE"));
            let cancel = |n: usize| Unit::new().effect(Effect::Cancel { ids: vec![id(n).into()], children: false });
            let step = |n: usize| Unit::by(&fences[n]).step(step(0));
            // A third cancels, the others write checkpoints, and of those as many go from the end to the start.
            let batch = |n: usize| -> Vec<Unit> {
                let places = places(n * 5 + round, n.is_multiple_of(2)).into_iter();
                if n.is_multiple_of(3) { places.map(cancel).collect() } else { places.map(step).collect() }
            };
            let batches: Vec<Vec<Unit>> = (0..BATCHES).map(batch).collect();
            let calls = join_all(batches.iter().map(|units| store.commit(units)));
            let released = async {
                until_waiting(&store, &mut watch, BATCHES).await;
                holder.run("COMMIT");
            };
            for answer in join(calls, released).await.0 {
                answer.expect("no batch waits for another for ever");
            }
        }
    });
}

#[test]
fn a_client_locks_its_rows_in_order_of_id_before_it_moves_any() {
    with_store(|store, database| async move {
        for id in ["a", "b"] {
            store.submit(job(id, id)).await.expect("submitted");
        }
        let (mut holder, mut watch) = (database.client(), database.client());
        let cancel = |id: &str| Effect::Cancel { ids: vec![id.into()], children: true };
        // The id of a copy may be taken.
        let fork = Effect::Fork(Fork::new("b", "a", Position(0)));
        for (unit, done) in
            [(Unit::new().effect(fork), false), (Unit::new().effect(cancel("b")).effect(cancel("a")), true)]
        {
            hold(&mut holder, "a");
            let released = async {
                until_waiting(&store, &mut watch, 1).await;
                let free = "SELECT string_agg(workflow_uuid, ' ') FROM (
                    SELECT workflow_uuid FROM dbos.workflow_status FOR UPDATE SKIP LOCKED) AS free";
                assert_eq!(watch.value(free), "b", "the first is waited for");
                holder.run("COMMIT");
            };
            let (answers, ()) = join(store.commit(slice::from_ref(&unit)), released).await;
            let answers = answers.expect("answered").units;
            assert!(
                answers.iter().all(|answer| answer.as_ref().is_ok_and(|reply| reply.is_done() == done)),
                "{answers:?}"
            );
        }
    });
}

/// A client cancels two workflows with their children, waits for the second, and then for the table of queues, which a cancel
/// looks at: the family is known then, and nothing is written yet. Meanwhile the first starts a child.
fn cancel_while_a_child_is_started(parent_is_late: bool) {
    with_store(|store, database| async move {
        store.submit(job("w", "w")).await.expect("submitted");
        let make = || start(&store, direct("parent", "p"));
        let early = if parent_is_late { None } else { Some(make().await) };
        let (mut holder, mut queues, mut watch) = (database.client(), database.client(), database.client());
        hold(&mut holder, "w");
        queues.run("BEGIN; LOCK TABLE dbos.queues IN ACCESS EXCLUSIVE MODE");
        let ids = vec!["parent".into(), "w".into()];
        let cancel = [Unit::new().effect(Effect::Cancel { ids, children: true })];
        let meanwhile = async {
            until_waiting(&store, &mut watch, 1).await;
            let fence = match early {
                Some(fence) => fence,
                None => make().await,
            };
            holder.run("COMMIT");
            let table =
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'relation'";
            until(&store, &mut watch, table, "1").await;
            let submit = [Unit::by(&fence).effect(job("child", "c").parent("parent")).step(step(0))];
            let child = pin!(store.commit(&submit));
            let waits = pin!(until_waiting(&store, &mut watch, 2));
            match select(child, waits).await {
                Either::Left((answers, _)) => {
                    queues.run("COMMIT");
                    answers
                }
                Either::Right(((), child)) => {
                    queues.run("COMMIT");
                    child.await
                }
            }
        };
        let (cancelled, child) = join(store.commit(&cancel), meanwhile).await;
        assert!(cancelled.expect("answered").units.iter().all(|answer| answer.as_ref().is_ok_and(UnitReply::is_done)));
        let child = child.expect("answered").units;
        assert!(matches!(&child[..], [Ok(UnitReply::Superseded { .. })]), "{child:?}");
        let rows = "SELECT string_agg(workflow_uuid || ' ' || status, ', ' ORDER BY 1) FROM dbos.workflow_status";
        assert_eq!(database.client().value(rows), "parent CANCELLED, w CANCELLED");
    });
}

#[test]
fn no_child_is_made_behind_the_back_of_a_client_that_cancels_its_parent() {
    cancel_while_a_child_is_started(false);
}

#[test]
fn no_child_is_made_behind_the_back_of_a_client_though_the_parent_came_after_the_lock() {
    cancel_while_a_child_is_started(true);
}

#[test]
fn a_family_that_grows_until_it_is_locked_is_moved_in_the_same_transaction() {
    let Some(database) = support::database() else { return };
    let proxy = Proxy::before(database.server()).expect("a proxy");
    block_on(async {
        let store = support::open_at(proxy.url(&database), Config::silent).await;
        for children in [0, 2] {
            let parent = format!("p{children}");
            store.submit(job(&parent, "p")).await.expect("submitted");
            let (mut holder, mut watch) = (database.client(), database.client());
            holder.run(&format!(
                "BEGIN; SELECT FROM dbos.workflow_status WHERE workflow_uuid = '{parent}' FOR UPDATE;
                INSERT INTO dbos.workflow_status (workflow_uuid, status, name, queue_name, created_at, updated_at,
                    parent_workflow_id)
                SELECT '{parent}-' || n, 'ENQUEUED', 'work', 'q', 1, 1, CASE n WHEN 1 THEN '{parent}' ELSE '{parent}-1' END
                FROM generate_series(1, {children}) AS n"
            ));
            let unit = [Unit::new().effect(Effect::Cancel { ids: vec![parent.as_str().into()], children: true })];
            proxy.reset_counts();
            let released = async {
                until_waiting(&store, &mut watch, 1).await;
                holder.run("COMMIT");
            };
            let (answers, ()) = join(store.commit(&unit), released).await;
            let answer = answers.expect("answered").units.remove(0).expect("judged");
            let moved = (0..=children).map(|n| if n == 0 { parent.clone() } else { format!("{parent}-{n}") });
            let moved: Vec<WorkflowId> = moved.map(WorkflowId::from).collect();
            assert_eq!(answer, UnitReply::Done { effects: vec![EffectReply::Moved(moved)] });
            let undone = proxy.messages().into_iter().filter(|message| message.sql() == "ROLLBACK").count();
            assert_eq!((proxy.counts().commits, undone), (1, 0), "what is held is not let go to grow again");
        }
    });
}

#[test]
fn a_batch_that_is_undone_for_another_transaction_is_written_afterwards() {
    let Some(database) = support::database() else { return };
    let name = database.name();
    database.client().run(&format!("ALTER DATABASE \"{name}\" SET deadlock_timeout = '50ms'"));
    block_on(async {
        let store = support::open(&database, |config| config).await;
        for id in ["a", "b"] {
            store.submit(job(id, id)).await.expect("submitted");
        }
        let (mut foreign, mut watch) = (database.client(), database.client());
        let lock = |id: &str| format!("SELECT FROM dbos.workflow_status WHERE workflow_uuid = '{id}' FOR UPDATE;");
        foreign.run(&format!("SET deadlock_timeout = '1h'; BEGIN; {}", lock("b")));
        let unit = [Unit::new().effect(Effect::Cancel { ids: vec!["a".into(), "b".into()], children: false })];
        let meanwhile = async {
            until_waiting(&store, &mut watch, 1).await;
            let then = format!("{} COMMIT", lock("a"));
            store.env().tasks().thread("foreign", move || foreign.run(&then)).expect("a thread").await.expect("ended");
        };
        let (answers, ()) = join(store.commit(&unit), meanwhile).await;
        let answer = answers.expect("answered").units.remove(0).expect("judged");
        assert_eq!(answer, UnitReply::Done { effects: vec![EffectReply::Moved(vec!["a".into(), "b".into()])] });
    });
}

#[test]
fn a_failure_after_a_part_is_written_that_must_not_be_sent_again_proves_nothing() {
    with_store(|store, database| async move {
        database.client().run(
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN RAISE EXCEPTION 'no space' USING ERRCODE = '53100'; END $$;
            CREATE TRIGGER full_disk BEFORE DELETE ON dbos.workflow_status FOR EACH ROW EXECUTE FUNCTION full_disk()",
        );
        for id in ["a", "b"] {
            store.submit(job(id, id)).await.expect("submitted");
        }
        let resume = |force| Unit::new().effect(Effect::Resume { ids: vec!["a".into()], queue: None, force });
        let delete = Unit::new().effect(Effect::Delete { ids: vec!["b".into()], children: false });
        for (force, kind) in [(false, ErrorKind::Full), (true, ErrorKind::Unavailable)] {
            let error = store.commit(&[resume(force), delete.clone()]).await.expect_err("no space");
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains("53100"), "{error}");
        }
    });
}

#[test]
fn a_row_that_comes_after_the_lock_is_not_waited_for() {
    let Some(database) = support::database() else { return };
    block_on(async {
        let store = support::open(&database, |config| config.call_timeout(Duration::from_secs(5))).await;
        let (mut holder, mut other, mut watch) = (database.client(), database.client(), database.client());
        let ids = |ids: &[&WorkflowId]| ids.iter().map(|id| (*id).clone()).collect::<Vec<_>>();
        type Make = fn(Vec<WorkflowId>) -> Effect;
        let cases: [(&str, Make); 6] = [
            ("cancel", |ids| Effect::Cancel { ids, children: false }),
            ("cancel-all", |ids| Effect::Cancel { ids, children: true }),
            ("delete", |ids| Effect::Delete { ids, children: false }),
            ("resume", |ids| Effect::Resume { ids, queue: None, force: true }),
            ("delay", |ids| Effect::SetDelay { id: ids[0].clone(), delay: When::In(Duration::ZERO) }),
            ("attributes", |ids| Effect::Attributes { id: ids[0].clone(), json: None }),
        ];
        for (name, effect) in cases {
            let (late, held) = (WorkflowId::from(format!("{name}-a")), WorkflowId::from(format!("{name}-b")));
            store.submit(job(held.as_str(), "b")).await.expect("submitted");
            hold(&mut holder, held.as_str());
            // Each holds the second before it reaches the first.
            let mut effects = vec![effect(ids(&[&late, &held]))];
            if matches!(effects[0], Effect::SetDelay { .. } | Effect::Attributes { .. }) {
                effects.insert(0, Effect::Cancel { ids: ids(&[&held]), children: true });
            }
            let unit = effects.into_iter().fold(Unit::new(), Unit::effect);
            let meanwhile = async {
                until_waiting(&store, &mut watch, 1).await;
                store.submit(job(late.as_str(), "a")).await.expect("submitted");
                hold(&mut other, late.as_str());
                holder.run("COMMIT");
            };
            let (answers, ()) = join(store.commit(slice::from_ref(&unit)), meanwhile).await;
            let answer = answers.expect("answered").units.remove(0).expect("judged");
            other.run("COMMIT");
            match name {
                "cancel" | "cancel-all" | "delete" => {
                    assert_eq!(answer, UnitReply::Done { effects: vec![EffectReply::Moved(ids(&[&held]))] }, "{name}");
                }
                _ => {
                    let effect = usize::from(name != "resume");
                    assert_eq!(answer, UnitReply::Refused { effect, why: Refusal::Missing(late) }, "{name}");
                }
            }
        }
    });
}

#[test]
fn beneath_a_root_that_another_has_just_made_and_holds_only_what_was_there_before_is_moved() {
    with_store(|store, database| async move {
        store.submit(job("w", "w")).await.expect("submitted");
        store.submit(job("orphan", "o").parent("root")).await.expect("submitted");
        let (mut holder, mut other, mut watch) = (database.client(), database.client(), database.client());
        hold(&mut holder, "w");
        let ids = vec!["root".into(), "w".into()];
        let cancel = [Unit::new().effect(Effect::Cancel { ids, children: true })];
        let meanwhile = async {
            until_waiting(&store, &mut watch, 1).await;
            store.submit(job("root", "r")).await.expect("submitted");
            store.submit(job("young", "y").parent("root")).await.expect("submitted");
            hold(&mut other, "root");
            holder.run("COMMIT");
        };
        let (answers, ()) = join(store.commit(&cancel), meanwhile).await;
        other.run("COMMIT");
        let answer = answers.expect("answered").units.remove(0).expect("judged");
        assert_eq!(answer, UnitReply::Done { effects: vec![EffectReply::Moved(vec!["orphan".into(), "w".into()])] });
    });
}
