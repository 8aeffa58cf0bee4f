//! Stores whose last look at the catalog was before a peer gave payloads tables of their own.

use futures_util::future::join;
use mainstay_env::block_on;
use mainstay_pgkit::Database;
use mainstay_postgres::{Config, Postgres};
use mainstay_store::{
    Effect, EffectReply, Fence, Input, Limits, Maintenance, OnExisting, Outcome, Place, QueueStore, Standing,
    StepOutput, StepRow, Submit, Tick, Unit, UnitReply, WorkflowStore, WriteExt,
};

use crate::store::claim::{APP, E1, Q, WORK, claim, lease, register};
use crate::store::support::{self, until};

fn job(id: &str) -> Submit {
    Submit::new(id, WORK, format!("of {id}"), Place::queue(Q)).app(APP).input("[1]")
}

/// A database that a peer has brought up to date, and a store that holds it for one at 108.
fn with_stale<F: Future<Output = ()>>(body: impl FnOnce(Postgres, Fence, Database) -> F) {
    let Some(server) = mainstay_pgkit::server() else { return };
    let database = server.database();
    block_on(async {
        let stale = support::open(&database, Config::hold_at_108).await;
        lease(&stale, E1).await;
        register(&stale, Limits::default()).await;
        stale.submit(job("ours")).await.expect("enqueued");
        let fence = stale.queue_claim(claim(&stale, E1)).await.expect("claimed").rows.remove(0).fence;
        drop(support::open(&database, |config| config).await);
        // What the peer leaves: ends in the tables of their own.
        database.client().run(
            "INSERT INTO dbos.workflow_status (workflow_uuid, status, name, application_name, completed_at) VALUES
                ('theirs', 'ERROR', 'work', 'shop', 1);
            INSERT INTO dbos.workflow_output (workflow_uuid, error) VALUES ('theirs', '\"no\"');
            UPDATE dbos.workflow_status SET status = 'SUCCESS', owner_xid = NULL, completed_at = 5 WHERE
                workflow_uuid = 'ours';
            INSERT INTO dbos.workflow_output (workflow_uuid, output) VALUES ('ours', '\"end\"')",
        );
        body(stale, fence, database).await;
    });
}

fn ours() -> Standing {
    Standing::Ended(Outcome::Success("\"end\"".into()))
}

fn theirs() -> Standing {
    Standing::Ended(Outcome::Error("\"no\"".into()))
}

#[test]
fn a_parked_row_tells_its_reason_from_the_table_that_a_peer_made_for_it() {
    with_stale(async |stale, _fence, database| {
        database.client().run(
            "INSERT INTO dbos.workflow_status (workflow_uuid, status, name, application_name, completed_at) VALUES
                ('aside', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED', 'work', 'shop', 1);
            INSERT INTO dbos.workflow_output (workflow_uuid, error) VALUES ('aside', '\"why\"')",
        );
        let standing = stale.workflow_standing(&["aside".into()]).await.expect("read");
        assert_eq!(standing, [Standing::Ended(Outcome::Parked("\"why\"".into()))]);
    });
}

/// Effects that put a unit into a transaction of its own, and none, which leaves it to a batch.
fn ways() -> [Option<Effect>; 2] {
    [None, Some(Effect::Cancel { ids: vec!["nobody".into()], children: true })]
}

#[test]
fn a_commit_that_lost_to_an_end_tells_its_payload_from_the_table_that_a_peer_made_for_it() {
    for way in ways() {
        with_stale(async |stale, fence, _database| {
            let mut unit = Unit::by(&fence).step(StepRow::new(0, "s", StepOutput::Value("1".into())));
            unit.effects.extend(way.clone());
            assert_eq!(stale.unit(unit).await.expect("judged"), UnitReply::Superseded { by: ours() }, "{way:?}");
        });
    }
}

#[test]
fn a_submit_that_finds_an_end_tells_its_payload_from_the_table_that_a_peer_made_for_it() {
    for way in ways() {
        with_stale(async |stale, _fence, _database| {
            let again = |id| {
                let mut submit = job(id);
                submit.on_existing = OnExisting::Return;
                submit
            };
            let mut unit = Unit::new().effect(again("theirs")).effect(again("ours"));
            unit.effects.extend(way.clone());
            let reply = stale.unit(unit).await.expect("judged");
            let UnitReply::Done { effects } = reply else { panic!("not done: {reply:?}") };
            assert_eq!(effects[..2], [EffectReply::Existing(theirs()), EffectReply::Existing(ours())], "{way:?}");
        });
    }
}

/// Waits until as many sessions wait for a table.
async fn waiting(store: &Postgres, database: &Database, table: &str, count: usize) {
    let ask = format!("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'dbos.{table}'::regclass");
    until(store, &mut database.client(), &ask, &count.to_string()).await;
}

#[test]
fn an_end_is_read_again_when_another_call_has_looked_at_the_catalog_meanwhile() {
    with_stale(async |stale, _fence, database| {
        let (mut numbers, mut rows) = (database.client(), database.client());
        numbers.run("BEGIN; LOCK TABLE dbos.dbos_migrations IN ACCESS EXCLUSIVE MODE");
        let ids = ["ours".into()];
        // The first has met no payload and looks at the catalog. The second is sent before that look is answered, and is
        // answered after it.
        let first = stale.workflow_standing(&ids);
        let second = async {
            waiting(&stale, &database, "dbos_migrations", 1).await;
            rows.run("BEGIN; LOCK TABLE dbos.workflow_status IN ACCESS EXCLUSIVE MODE");
            let second = stale.workflow_standing(&ids);
            let freed = async {
                waiting(&stale, &database, "workflow_status", 1).await;
                numbers.run("COMMIT");
                waiting(&stale, &database, "workflow_status", 2).await;
                rows.run("COMMIT");
            };
            join(second, freed).await.0
        };
        let (first, second) = join(first, second).await;
        assert_eq!(first.expect("read"), [ours()]);
        assert_eq!(second.expect("read"), [ours()]);
    });
}

#[test]
fn a_claimed_row_has_its_input_when_a_tick_has_looked_at_the_catalog_meanwhile() {
    with_stale(async |stale, _fence, database| {
        let mut holder = database.client();
        holder.run(
            "SELECT dbos.enqueue_workflow('work', 'q', ARRAY['1']::json[], workflow_id => 'sql', application_name => 'shop');
            CREATE FUNCTION held() RETURNS trigger LANGUAGE plpgsql AS
                'BEGIN PERFORM pg_advisory_xact_lock(77); RETURN NEW; END';
            CREATE TRIGGER held BEFORE UPDATE ON dbos.workflow_status FOR EACH ROW EXECUTE FUNCTION held()",
        );
        holder.run("BEGIN; SELECT pg_advisory_xact_lock(77)");
        let ticked = async {
            let ask =
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'";
            until(&stale, &mut database.client(), ask, "1").await;
            assert_eq!(stale.tick(Tick::new(APP)).await.expect("ticked").catalog, 125);
            holder.run("COMMIT");
        };
        let (claimed, ()) = join(stale.queue_claim(claim(&stale, E1)), ticked).await;
        let row = claimed.expect("claimed").rows.remove(0);
        let Input::Inline(input) = &row.input else { panic!("no input: {row:?}") };
        assert_eq!(input.as_str().replace(' ', ""), r#"{"positionalArgs":[1],"namedArgs":{}}"#);
        let outcome = Outcome::Success("1".into());
        assert_eq!(stale.settle(&row.fence, outcome).await.expect("judged"), UnitReply::done(), "its fence is of now");
    });
}
