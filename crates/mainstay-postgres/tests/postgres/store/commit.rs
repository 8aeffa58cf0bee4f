//! Commits beyond the contract: what the tables hold afterwards, what a batch costs, and what one bad unit does to it.

use std::pin::pin;
use std::slice;
use std::time::Duration;

use futures_util::future::{Either, join, join_all, select};
use mainstay_env::block_on;
use mainstay_pgkit::{Client, Database, Proxy};
use mainstay_postgres::{Config, PayloadLayout, Postgres};
use mainstay_store::{
    Beat, Effect, EffectReply, ErrorKind, ExecutorStore, Fence, Fork, Joining, OnHeld, Outcome, Place, Position,
    Refusal, Standing, Status, StepOutput, StepRow, Store, StoreClock, Submit, Unit, UnitReply, When, WorkflowId,
    WorkflowStore, WriteExt, WriteStore,
};

use crate::store::support::{self, with_store};

const APP: &str = "shop";
const E1: &str = "one~1";

fn direct(id: &str, token: &str) -> Submit {
    Submit::new(id, "work", token, Place::Run(E1.into())).app(APP).input("[1]")
}

fn job(id: &str, token: &str) -> Submit {
    Submit::new(id, "work", token, Place::queue("q")).app(APP).input("[1]")
}

fn step(at: i32) -> StepRow {
    StepRow::new(at, "s", StepOutput::Value(format!("{at}").into()))
}

fn success() -> Outcome {
    Outcome::Success("\"end\"".into())
}

/// Starts a workflow in the executor of these tests.
async fn start(store: &Postgres, submit: Submit) -> Fence {
    store.lease_beat(Beat::new(E1, APP, 1_u64)).await.expect("a lease");
    started(store.submit(submit).await.expect("submitted"))
}

/// The fence of a workflow that a unit has started.
fn started(reply: UnitReply) -> Fence {
    match reply {
        UnitReply::Done { effects } => match &effects[..] {
            [EffectReply::Created(created)] => created.fence.clone().expect("a fence"),
            other => panic!("not created: {other:?}"),
        },
        other => panic!("not done: {other:?}"),
    }
}

fn count(database: &Database, table: &str, id: &str) -> String {
    database.client().value(&format!("SELECT count(*) FROM dbos.{table} WHERE workflow_uuid = '{id}'"))
}

async fn standing(store: &Postgres, id: &str) -> Standing {
    store.workflow_standing(&[id.into()]).await.expect("read").remove(0)
}

#[test]
fn acceptance_12_an_outcome_is_written_in_the_shape_of_its_row() {
    with_store(|store, database| async move {
        for (id, inline) in [("split", false), ("inline", true)] {
            let fence = start(&store, direct(id, id)).await;
            if inline {
                database.client().run(
                    "UPDATE dbos.workflow_status SET inputs = '[1]' WHERE workflow_uuid = 'inline';
                    DELETE FROM dbos.workflow_input WHERE workflow_uuid = 'inline';
                    INSERT INTO dbos.workflow_output (workflow_uuid, output) VALUES ('inline', 'stale')",
                );
            } else {
                database.client().run("UPDATE dbos.workflow_status SET output = 'stale' WHERE workflow_uuid = 'split'");
            }
            assert_eq!(store.settle(&fence, success()).await.expect("settled"), UnitReply::done());
            let column =
                format!("SELECT coalesce(output, 'none') FROM dbos.workflow_status WHERE workflow_uuid = '{id}'");
            let expected = if inline { ("\"end\"", "0") } else { ("none", "1") };
            assert_eq!(
                (database.client().value(&column).as_str(), count(&database, "workflow_output", id).as_str()),
                expected
            );
            assert_eq!(standing(&store, id).await, Standing::Ended(success()), "{id}");
        }
    });
}

#[test]
fn acceptance_14_an_id_that_is_used_again_finds_nothing_of_its_first_life() {
    with_store(|store, database| async move {
        let fence = start(&store, direct("w", "first")).await;
        store.unit(Unit::by(&fence).step(step(0)).outcome(success())).await.expect("done");
        store.delete(&"w".into()).await.expect("deleted");
        for table in ["workflow_status", "workflow_input", "workflow_output", "operation_outputs"] {
            assert_eq!(count(&database, table, "w"), "0", "{table}");
        }
        // As a delete of an older SDK leaves them.
        database.client().run(
            "INSERT INTO dbos.workflow_input (workflow_uuid, inputs) VALUES ('w', 'old');
            INSERT INTO dbos.workflow_output (workflow_uuid, output) VALUES ('w', 'old');
            INSERT INTO dbos.operation_outputs (workflow_uuid, function_id, function_name) VALUES ('w', 0, 'old')",
        );
        let fence = start(&store, direct("w", "second").input("[2]")).await;
        assert_eq!(store.workflow_input(&"w".into()).await.expect("read"), Some("[2]".into()));
        assert_eq!(
            (count(&database, "operation_outputs", "w"), count(&database, "workflow_output", "w")),
            ("0".into(), "0".into())
        );
        assert_eq!(store.unit(Unit::by(&fence).step(step(0))).await.expect("recorded"), UnitReply::done());
    });
}

#[test]
fn an_inline_row_takes_the_place_of_an_orphaned_input() {
    let Some(database) = support::database() else { return };
    block_on(async {
        let store = support::open(&database, |config: Config| config.payload_layout(PayloadLayout::Inline)).await;
        database.client().run("INSERT INTO dbos.workflow_input (workflow_uuid, inputs) VALUES ('w', 'old')");
        let fence = start(&store, direct("w", "t")).await;
        assert_eq!(store.workflow_input(&"w".into()).await.expect("read"), Some("[1]".into()));
        store.settle(&fence, success()).await.expect("settled");
        let inline = "SELECT inputs || output FROM dbos.workflow_status WHERE workflow_uuid = 'w'";
        assert_eq!(database.client().value(inline), "[1]\"end\"");
        assert_eq!(standing(&store, "w").await, Standing::Ended(success()));
    });
}

/// The row is changed under the execution, which then can write nothing.
fn is_void_after(change: &'static str, by: Standing) {
    with_store(|store, database| async move {
        let fence = start(&store, direct("w", "t")).await;
        database.client().run(change);
        for unit in [
            Unit::by(&fence).step(step(0)),
            Unit::by(&fence).outcome(success()),
            Unit::by(&fence).effect(job("v", "v")),
        ] {
            assert_eq!(store.unit(unit).await.expect("judged"), UnitReply::Superseded { by: by.clone() }, "{change}");
        }
        assert_eq!(
            (count(&database, "operation_outputs", "w"), count(&database, "workflow_output", "w")),
            ("0".into(), "0".into())
        );
        assert_eq!(count(&database, "workflow_status", "v"), "0");
    });
}

#[test]
fn acceptance_18_a_stale_execution_adds_no_row() {
    is_void_after("DELETE FROM dbos.workflow_status", Standing::Gone);
    is_void_after(
        "UPDATE dbos.workflow_status SET owner_xid = 'other', started_at_epoch_ms = started_at_epoch_ms + 1",
        Standing::Open(Status::Pending),
    );
}

#[test]
fn acceptance_19_an_execution_whose_owner_was_cleared_is_over() {
    is_void_after(
        "UPDATE dbos.workflow_status SET status = 'ENQUEUED', owner_xid = NULL, started_at_epoch_ms = NULL, queue_name = 'q'",
        Standing::Open(Status::Enqueued),
    );
}

#[test]
fn acceptance_22_an_outcome_is_not_written_over_a_deadline_that_another_swept() {
    is_void_after(
        "UPDATE dbos.workflow_status SET status = 'CANCELLED', owner_xid = NULL, completed_at = 1",
        Standing::Ended(Outcome::Cancelled),
    );
}

#[test]
fn acceptance_26_a_step_of_an_unknown_workflow_is_refused_by_its_owner() {
    with_store(|store, database| async move {
        let unit = Unit::by(&Fence::issue("nobody".into(), "t")).step(step(0));
        assert_eq!(store.unit(unit).await.expect("judged"), UnitReply::Superseded { by: Standing::Gone });
        assert_eq!(count(&database, "operation_outputs", "nobody"), "0");
    });
}

#[test]
fn a_unit_that_no_server_takes_fails_alone_and_the_others_of_its_batch_are_done() {
    with_store(|store, database| async move {
        // Too large for a number of JSON columns: no check of ours knows it.
        let bad = r#"{"n":1e999999}"#;
        let long = "x".repeat(300);
        let units: Vec<Unit> = (0..256)
            .map(|n| {
                let submit = job(&format!("w{n}"), &format!("t{n}"));
                Unit::new().effect(match n {
                    17 => submit.attributes(bad),
                    200 => submit.class(long.as_str()),
                    _ => submit,
                })
            })
            .collect();
        let answers = store.commit(&units).await.expect("answered").units;
        for (n, answer) in answers.iter().enumerate() {
            match answer {
                Ok(reply) => assert!(reply.is_done() && n != 17 && n != 200, "{n}: {reply:?}"),
                Err(error) => assert!(error.kind() == ErrorKind::Invalid && (n == 17 || n == 200), "{n}: {error}"),
            }
        }
        assert_eq!(database.client().value("SELECT count(*) FROM dbos.workflow_status"), "254");
    });
}

/// Commits, and says of which kind the failure of each unit is.
async fn kinds(store: &Postgres, units: &[Unit]) -> Vec<Option<ErrorKind>> {
    let answers = store.commit(units).await.expect("the others are committed").units;
    answers.into_iter().map(|answer| answer.err().map(|error| error.kind())).collect()
}

#[test]
fn what_a_check_or_a_column_of_the_user_refuses_fails_alone_as_invalid() {
    with_store(|store, database| async move {
        database.client().run(
            "ALTER TABLE dbos.workflow_status ADD CHECK (class_name <> 'banned'), ADD COLUMN theirs text;
            CREATE FUNCTION theirs() RETURNS trigger LANGUAGE plpgsql AS
                'BEGIN NEW.theirs := nullif(NEW.config_name, ''none''); RETURN NEW; END';
            CREATE TRIGGER theirs BEFORE INSERT ON dbos.workflow_status FOR EACH ROW EXECUTE FUNCTION theirs();
            ALTER TABLE dbos.workflow_status ALTER COLUMN theirs SET NOT NULL",
        );
        let of = |id: &str, class: &str, config: &str| Unit::new().effect(job(id, id).class(class).config(config));
        let units = [of("a", "fine", "one"), of("b", "banned", "one"), of("c", "fine", "none"), of("d", "fine", "two")];
        let refused = Some(ErrorKind::Invalid);
        assert_eq!(kinds(&store, &units).await, [None, refused, refused, None]);
    });
}

#[test]
fn what_an_index_or_a_key_of_the_user_refuses_fails_alone() {
    with_store(|store, database| async move {
        database.client().run(
            "CREATE UNIQUE INDEX theirs ON dbos.operation_outputs (function_name);
            CREATE TABLE dbos.tenants (name text PRIMARY KEY);
            INSERT INTO dbos.tenants VALUES ('known');
            ALTER TABLE dbos.workflow_status ADD FOREIGN KEY (class_name) REFERENCES dbos.tenants",
        );
        let fence = start(&store, direct("w", "t")).await;
        let named = |at: i32, name: &str| StepRow::new(at, name, StepOutput::Value("1".into()));
        store.unit(Unit::by(&fence).step(named(0, "paid"))).await.expect("recorded");
        let other = start(&store, direct("v", "u")).await;
        let units = [
            Unit::new().effect(job("a", "a").class("known")),
            Unit::by(&other).step(named(0, "paid")),
            Unit::by(&fence).step(named(1, "sent")),
            Unit::new().effect(job("stray", "b").class("nobody")),
            // A transaction of its own.
            Unit::by(&fence).step(named(2, "paid")).effect(Effect::Attributes { id: "w".into(), json: None }),
            Unit::new().effect(job("c", "c")),
        ];
        let refused = Some(ErrorKind::Invalid);
        assert_eq!(kinds(&store, &units).await, [None, refused, None, refused, refused, None]);
        let error = store.unit(Unit::by(&other).step(named(0, "paid"))).await.expect_err("a clash");
        let why = std::error::Error::source(&error).expect("a reason").to_string();
        assert!(why.contains("23505") && why.contains("theirs") && !why.contains("paid"), "{why}");
        let rows = "SELECT string_agg(workflow_uuid, ' ' ORDER BY workflow_uuid) FROM dbos.workflow_status";
        assert_eq!(database.client().value(rows), "a c v w");
        assert_eq!(store.settle(&other, success()).await.expect("settled"), UnitReply::done(), "the lane goes on");
    });
}

#[test]
fn case_o25_what_is_too_long_is_named_before_anything_is_sent() {
    with_store(|store, database| async move {
        // One byte too many, what no page of an index takes, and what its compression does not help either.
        for length in [513, 2_600, 100_000] {
            let long = "x".repeat(length);
            let keyed = Place::Queue { name: "q".into(), key: Some(long.as_str().into()), delay: None };
            let dedup = Joining { key: long.as_str().into(), on_held: OnHeld::Reject };
            let cases = [
                (job(&long, "t"), "submit.id"),
                (job("dedup", "d").dedup(dedup), "submit.dedup"),
                (Submit::new("keyed", "work", "k", keyed).app(APP), "submit.key"),
                (Submit::new("queue", "work", "q", Place::queue(long.as_str())).app(APP), "submit.queue"),
            ];
            let fields = cases.each_ref().map(|(_, field)| *field);
            let good = format!("good{length}");
            let mut units: Vec<Unit> = cases.into_iter().map(|(submit, _)| Unit::new().effect(submit)).collect();
            units.push(Unit::new().effect(job(&good, &good)));
            let mut answers = store.commit(&units).await.expect("answered").units;
            assert!(answers.pop().is_some_and(|answer| answer.is_ok_and(|reply| reply.is_done())), "{length}");
            for (answer, field) in answers.into_iter().zip(fields) {
                let error = answer.expect_err("too long");
                assert_eq!((error.kind(), error.field()), (ErrorKind::Invalid, Some(field)), "{length}");
            }
        }
        assert_eq!(database.client().value("SELECT count(*) FROM dbos.workflow_status"), "3");
    });
}

#[test]
fn case_o26_an_id_of_another_function_is_a_conflict() {
    with_store(|store, database| async move {
        store.submit(job("w", "t")).await.expect("submitted");
        let other = Submit::new("w", "other", "u", Place::queue("q"));
        let why = Refusal::Conflict { id: "w".into(), name: "work".into(), class: None, config: None };
        assert_eq!(store.submit(other).await.expect("judged"), UnitReply::Refused { effect: 0, why });
        assert_eq!(database.client().value("SELECT name FROM dbos.workflow_status"), "work");
    });
}

#[test]
fn a_batch_of_every_hot_kind_is_one_transaction_and_one_round_trip() {
    let Some(database) = support::database() else { return };
    let proxy = Proxy::before(database.server()).expect("a proxy");
    block_on(async {
        let config = Config::new(proxy.url(&database)).pool(1);
        let store = Postgres::open(&support::env(), config, StoreClock::Server).await.expect("a store");
        for round in 0..2 {
            let mut units = Vec::new();
            for n in 0..4 {
                let fence = start(&store, direct(&format!("w{round}{n}"), &format!("t{round}{n}"))).await;
                units.push(match n {
                    0 => Unit::by(&fence).step(step(0)),
                    1 => Unit::by(&fence).step(step(0)).outcome(success()),
                    2 => Unit::by(&fence).effect(Effect::GiveBack { delay: None, begun: true }),
                    _ => Unit::by(&fence).effect(direct(&format!("v{round}"), &format!("v{round}"))),
                });
            }
            store.submit(job(&format!("c{round}"), "c")).await.expect("submitted");
            units.push(Unit::new().effect(Effect::Cancel { ids: vec![format!("c{round}").into()], children: false }));
            proxy.reset_counts();
            let answers = store.commit(&units).await.expect("answered").units;
            assert!(answers.iter().all(|answer| answer.as_ref().is_ok_and(UnitReply::is_done)), "{answers:?}");
            let counts = proxy.counts();
            assert_eq!(counts.commits, 1, "{counts:?}");
            // The statements of the first round are prepared beside it, once for the connection.
            if round > 0 {
                // Hints of what came before go by a connection of their own, a trip each.
                let messages = proxy.messages();
                let hints = messages.iter().filter(|message| message.sql().contains("pg_notify") && message.runs());
                let hints = u64::try_from(hints.count()).expect("few");
                assert_eq!(counts.round_trips - hints, 1, "{counts:?}\n{messages:?}");
            }
        }
    });
}

/// Waits until so many sessions wait for a lock that another holds.
async fn waiting(store: &Postgres, watch: &mut Client, sessions: usize) {
    let env = store.env();
    let query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    for _ in 0..1_000 {
        if watch.value(query) == sessions.to_string() {
            return;
        }
        env.sleep(Duration::from_millis(5)).await;
    }
    let all = "SELECT state, wait_event_type, wait_event, left(query, 200) FROM pg_stat_activity WHERE datname = current_database()";
    panic!("{} of {sessions} sessions wait: {:?}", watch.value(query), watch.rows(all));
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
                waiting(&store, &mut watch, BATCHES).await;
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
            holder.run("BEGIN; SELECT FROM dbos.workflow_status WHERE workflow_uuid = 'a' FOR UPDATE");
            let released = async {
                waiting(&store, &mut watch, 1).await;
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

#[test]
fn no_child_is_made_behind_the_back_of_a_client_that_cancels_its_parent() {
    with_store(|store, database| async move {
        let fence = start(&store, direct("parent", "p")).await;
        let (mut holder, mut watch) = (database.client(), database.client());
        // A cancel looks at the queues, so it waits where the family is known and nothing is written yet.
        holder.run("BEGIN; LOCK TABLE dbos.queues IN ACCESS EXCLUSIVE MODE");
        let cancel = [Unit::new().effect(Effect::Cancel { ids: vec!["parent".into()], children: true })];
        let submit = [Unit::by(&fence).effect(job("child", "c").parent("parent")).step(step(0))];
        let meanwhile = async {
            waiting(&store, &mut watch, 1).await;
            let child = pin!(store.commit(&submit));
            let waits = pin!(waiting(&store, &mut watch, 2));
            match select(child, waits).await {
                Either::Left((answers, _)) => {
                    holder.run("COMMIT");
                    answers
                }
                Either::Right(((), child)) => {
                    holder.run("COMMIT");
                    child.await
                }
            }
        };
        let (cancelled, child) = join(store.commit(&cancel), meanwhile).await;
        assert!(cancelled.expect("answered").units.iter().all(|answer| answer.as_ref().is_ok_and(UnitReply::is_done)));
        let child = child.expect("answered").units;
        assert!(matches!(&child[..], [Ok(UnitReply::Superseded { .. })]), "{child:?}");
        let rows = "SELECT string_agg(workflow_uuid || ' ' || status, ', ') FROM dbos.workflow_status";
        assert_eq!(database.client().value(rows), "parent CANCELLED");
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
            let row = |id: &WorkflowId| {
                format!("BEGIN; SELECT FROM dbos.workflow_status WHERE workflow_uuid = '{id}' FOR UPDATE")
            };
            holder.run(&row(&held));
            // Each holds the second before it reaches the first.
            let mut effects = vec![effect(ids(&[&late, &held]))];
            if matches!(effects[0], Effect::SetDelay { .. } | Effect::Attributes { .. }) {
                effects.insert(0, Effect::Cancel { ids: ids(&[&held]), children: true });
            }
            let unit = effects.into_iter().fold(Unit::new(), Unit::effect);
            let meanwhile = async {
                waiting(&store, &mut watch, 1).await;
                store.submit(job(late.as_str(), "a")).await.expect("submitted");
                other.run(&row(&late));
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
