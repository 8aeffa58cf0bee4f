//! Commits beyond the contract: what the tables hold afterwards, what a batch costs, and what one bad unit does to it.

use mainstay_env::block_on;
use mainstay_pgkit::{Database, Proxy};
use mainstay_postgres::{Config, PayloadLayout, Postgres};
use mainstay_store::{
    Beat, Effect, EffectReply, ErrorKind, ExecutorStore, Fence, Joining, OnHeld, Outcome, Place, Refusal, Standing,
    Status, StepOutput, StepRow, StoreClock, Submit, Unit, UnitReply, WorkflowStore, WriteExt, WriteStore,
};

use crate::store::support::{self, with_store};

pub(super) const APP: &str = "shop";
pub(super) const E1: &str = "one~1";

pub(super) fn direct(id: &str, token: &str) -> Submit {
    Submit::new(id, "work", token, Place::Run(E1.into())).app(APP).input("[1]")
}

pub(super) fn job(id: &str, token: &str) -> Submit {
    Submit::new(id, "work", token, Place::queue("q")).app(APP).input("[1]")
}

pub(super) fn step(at: i32) -> StepRow {
    StepRow::new(at, "s", StepOutput::Value(format!("{at}").into()))
}

fn success() -> Outcome {
    Outcome::Success("\"end\"".into())
}

/// Starts a workflow in the executor of these tests.
pub(super) async fn start(store: &Postgres, submit: Submit) -> Fence {
    store.lease_beat(Beat::new(E1, APP, 1_u64)).await.expect("a lease");
    started(store.submit(submit).await.expect("submitted"))
}

/// The fence of a workflow that a unit has started.
pub(super) fn started(reply: UnitReply) -> Fence {
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
