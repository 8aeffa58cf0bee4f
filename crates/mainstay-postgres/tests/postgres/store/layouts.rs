//! Databases of each layout beside what other programs write there: which shape a row is read in and answered in.

use mainstay_env::block_on;
use mainstay_pgkit::{Client, Database};
use mainstay_postgres::{Config, PayloadLayout, Postgres};
use mainstay_store::{
    Beat, Claim, ClaimedRow, Collect, Effect, EffectReply, ExecutorStore, Fence, Input, Limits, Maintenance, Outcome,
    Place, QueueStore, RegisterQueue, Registered, Registry, Standing, Status, StepOutput, StepRow, Store, Submit, Tick,
    Unit, UnitReply, WorkflowStore, WriteExt,
};

use crate::store::support::{self, with_store};

const APP: &str = "shop";
const E1: &str = "one~1";

fn job(id: &str) -> Submit {
    Submit::new(id, "work", format!("of {id}"), Place::queue("q")).app(APP).input("[1]")
}

fn success() -> Outcome {
    Outcome::Success("\"end\"".into())
}

fn step(at: i32) -> StepRow {
    StepRow::new(at, "s", StepOutput::Value(at.to_string().into()))
}

/// A lease and a queue, so that claims are answered.
async fn prepare(store: &Postgres) {
    store.lease_beat(Beat::new(E1, APP, 1_u64)).await.expect("a lease");
    store.queue_register(RegisterQueue::new("q", APP).limits(Limits::default())).await.expect("a queue");
}

async fn take(store: &Postgres) -> Vec<ClaimedRow> {
    let claim = Claim::new("q", E1, APP, "v1", store.env().ids().uuid()).names(vec![Registered::new("work")]);
    store.queue_claim(claim).await.expect("a claim").rows
}

async fn start(store: &Postgres, id: &str) -> Fence {
    let submit = Submit::new(id, "work", format!("of {id}"), Place::Run(E1.into())).app(APP).input("[1]");
    match store.submit(submit).await.expect("submitted") {
        UnitReply::Done { effects } => match &effects[..] {
            [EffectReply::Created(created)] => created.fence.clone().expect("a fence"),
            other => panic!("not created: {other:?}"),
        },
        other => panic!("not done: {other:?}"),
    }
}

async fn standing(store: &Postgres, id: &str) -> Standing {
    store.workflow_standing(&[id.into()]).await.expect("read").remove(0)
}

async fn input(store: &Postgres, id: &str) -> Option<String> {
    store.workflow_input(&id.into()).await.expect("read").map(|input| input.as_str().to_owned())
}

/// Inputs, output and error of a row itself.
fn inline(client: &mut Client, id: &str) -> Vec<Option<String>> {
    let ask = format!("SELECT inputs, output, error FROM dbos.workflow_status WHERE workflow_uuid = '{id}'");
    client.rows(&ask).remove(0)
}

fn count(client: &mut Client, table: &str, id: &str) -> String {
    client.value(&format!("SELECT count(*) FROM dbos.{table} WHERE workflow_uuid = '{id}'"))
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// A database held at 108, and a store on it.
fn with_held<F: Future<Output = ()>>(body: impl FnOnce(Postgres, Database) -> F) {
    let Some(server) = mainstay_pgkit::server() else { return };
    let database = server.database();
    block_on(async {
        let store = support::open(&database, Config::hold_at_108).await;
        prepare(&store).await;
        body(store, database).await;
    });
}

#[test]
fn acceptance_04_a_database_held_at_108_is_written_inline() {
    with_held(async |store, database| {
        let mut client = database.client();
        assert_eq!(store.tick(Tick::new(APP)).await.expect("ticked").catalog, 108);
        assert_eq!(client.value("SELECT coalesce(to_regclass('dbos.workflow_input')::text, 'none')"), "none");
        store.submit(job("w")).await.expect("submitted");
        assert_eq!(inline(&mut client, "w"), [some("[1]"), None, None]);
        // Its creator's token stays where the other SDKs of that number look for it.
        let owner = "SELECT owner_xid FROM dbos.workflow_status WHERE workflow_uuid = 'w'";
        assert_eq!(client.value(owner), "of w");
        let rows = take(&store).await;
        assert_eq!(client.value(owner), "of w");
        let fence = &rows[0].fence;
        assert_eq!(rows[0].input, Input::Inline("[1]".into()));
        assert_eq!(store.unit(Unit::by(fence).step(step(0))).await.expect("recorded"), UnitReply::done());
        assert_eq!(store.settle(fence, success()).await.expect("settled"), UnitReply::done());
        assert_eq!(inline(&mut client, "w"), [some("[1]"), some("\"end\""), None]);
        assert_eq!(standing(&store, "w").await, Standing::Ended(success()));
        store.delete(&"w".into()).await.expect("deleted");
        assert_eq!(count(&mut client, "operation_outputs", "w"), "0");
    });
}

#[test]
fn acceptance_09_each_payload_is_read_from_the_newer_place_else_from_the_row() {
    with_store(async |store, database| {
        let mut client = database.client();
        client.run(
            "INSERT INTO dbos.workflow_status (workflow_uuid, status, name, queue_name, application_name, inputs, output,
                error) VALUES ('inline', 'SUCCESS', 'work', NULL, 'shop', 'old in', 'old out', NULL),
                ('split', 'SUCCESS', 'work', NULL, 'shop', NULL, NULL, NULL),
                ('both', 'SUCCESS', 'work', NULL, 'shop', 'old in', 'old out', NULL),
                ('null', 'SUCCESS', 'work', NULL, 'shop', 'old in', 'old out', NULL),
                ('error', 'ERROR', 'work', NULL, 'shop', 'old in', 'old out', 'old error'),
                ('none', 'SUCCESS', 'work', NULL, 'shop', NULL, NULL, NULL);
            INSERT INTO dbos.workflow_input (workflow_uuid, inputs) VALUES ('split', 'new in'), ('both', 'new in'),
                ('null', NULL), ('orphan', 'new in');
            INSERT INTO dbos.workflow_output (workflow_uuid, output, error) VALUES ('split', 'new out', NULL),
                ('both', 'new out', NULL), ('null', NULL, NULL), ('error', 'new out', NULL), ('orphan', 'new out', NULL)",
        );
        let done = |text: &str| Standing::Ended(Outcome::Success(text.into()));
        for (id, read, stands) in [
            ("inline", some("old in"), done("old out")),
            ("split", some("new in"), done("new out")),
            ("both", some("new in"), done("new out")),
            ("null", some("old in"), done("old out")),
            ("error", some("old in"), Standing::Ended(Outcome::Error("old error".into()))),
        ] {
            assert_eq!((input(&store, id).await, standing(&store, id).await), (read, stands), "{id}");
        }
        assert_eq!(input(&store, "none").await, None);
        assert_eq!(standing(&store, "orphan").await, Standing::Gone);
        assert_eq!(store.workflow_rows(&["orphan".into()]).await.expect("read"), [None]);
        assert!(
            store
                .workflow_input(&"orphan".into())
                .await
                .is_err_and(|e| e.kind() == mainstay_store::ErrorKind::NotFound)
        );
    });
}

#[test]
fn acceptance_11_what_runs_while_a_peer_migrates_is_found_by_the_audit_and_runs_again() {
    with_held(async |held, database| {
        let started = start(&held, "started").await;
        held.submit(job("claimed")).await.expect("submitted");
        let claimed = take(&held).await.remove(0).fence;
        assert_eq!(held.unit(Unit::by(&claimed).step(step(0))).await.expect("recorded"), UnitReply::done());
        drop(support::open(&database, |config| config).await);
        // The fences of before say nothing about rows of now: their executions are over, and write nothing.
        let lost = UnitReply::Superseded { by: Standing::Open(Status::Pending) };
        assert_eq!(held.tick(Tick::new(APP)).await.expect("ticked").catalog, 125);
        for fence in [&started, &claimed] {
            assert_eq!(held.unit(Unit::by(fence).step(step(1))).await.expect("judged"), lost);
        }
        // They are this executor's without running in it: each is given back under the fence that it has now.
        let audited = held.queue_audit(mainstay_store::Audit::new(E1)).await.expect("audited");
        let mut found: Vec<&str> = audited.rows.iter().map(|row| row.fence.workflow().as_str()).collect();
        found.sort_unstable();
        assert_eq!(found, ["claimed", "started"]);
        for row in &audited.rows {
            let back = Unit::by(&row.fence).effect(Effect::GiveBack { delay: None, begun: true });
            assert!(held.unit(back).await.expect("judged").is_done(), "{row:?}");
        }
        let again = take(&held).await.remove(0);
        assert_eq!((again.row.id.as_str(), &again.input), ("claimed", &Input::Inline("[1]".into())));
        assert_eq!(held.settle(&again.fence, success()).await.expect("settled"), UnitReply::done());
        let outputs = "SELECT function_id FROM dbos.operation_outputs";
        assert_eq!(database.client().rows(outputs), [[some("0")]]);
        // The row was made inline and is answered so.
        assert_eq!(inline(&mut database.client(), "claimed"), [some("[1]"), some("\"end\""), None]);
    });
}

#[test]
fn acceptance_13_inputs_stay_inline_on_125_on_request_and_so_do_the_answers() {
    let Some(database) = support::database() else { return };
    block_on(async {
        let store = support::open(&database, |config| config.payload_layout(PayloadLayout::Inline)).await;
        prepare(&store).await;
        let mut client = database.client();
        store.submit(job("queued")).await.expect("submitted");
        let queued = take(&store).await.remove(0);
        assert_eq!(queued.input, Input::Inline("[1]".into()));
        let started = start(&store, "started").await;
        for (id, fence) in [("queued", &queued.fence), ("started", &started)] {
            assert_eq!(store.settle(fence, success()).await.expect("settled"), UnitReply::done());
            assert_eq!(inline(&mut client, id), [some("[1]"), some("\"end\""), None]);
            assert_eq!(standing(&store, id).await, Standing::Ended(success()));
            for table in ["workflow_input", "workflow_output"] {
                assert_eq!(count(&mut client, table, id), "0", "{id} in {table}");
            }
        }
        // Ownership is that of number 125 all the same.
        assert_eq!(
            client.value("SELECT count(*) FROM dbos.workflow_status WHERE creator_xid = 'of ' || workflow_uuid"),
            "2"
        );
    });
}

#[test]
fn acceptance_15_an_orphan_wins_over_the_sql_function_until_a_collection_removes_it() {
    with_store(async |store, database| {
        prepare(&store).await;
        let mut client = database.client();
        client
            .run("INSERT INTO dbos.workflow_input (workflow_uuid, inputs, retention_timestamp) VALUES ('w', 'old', 1)");
        let enqueue = "SELECT dbos.enqueue_workflow('work', 'q', ARRAY['2']::json[], workflow_id => 'w', application_name => 'shop')";
        client.run(enqueue);
        // The function is shared by all SDKs and keeps what stands there: a known wrong result.
        assert_eq!(take(&store).await.remove(0).input, Input::Inline("old".into()));
        client.run("DELETE FROM dbos.workflow_status");
        store.collect(Collect::new(APP, std::time::Duration::ZERO)).await.expect("collected");
        assert_eq!(count(&mut client, "workflow_input", "w"), "0");
        client.run(enqueue);
        let Input::Inline(input) = take(&store).await.remove(0).input else { panic!("no input") };
        assert_eq!(input.as_str().replace(' ', ""), r#"{"positionalArgs":[2],"namedArgs":{}}"#);
    });
}

#[test]
fn acceptance_18_and_19_hold_on_a_database_held_at_108() {
    with_held(async |store, database| {
        let mut client = database.client();
        for (change, by) in [
            // Another claim of the row, as a peer of that number makes it: the creator's token stays.
            ("started_at_epoch_ms = started_at_epoch_ms + 1, recovery_attempts = 2", Standing::Open(Status::Pending)),
            ("executor_id = 'peer'", Standing::Open(Status::Pending)),
            ("status = 'ENQUEUED', queue_name = 'q', started_at_epoch_ms = NULL", Standing::Open(Status::Enqueued)),
            ("status = 'CANCELLED', completed_at = 1", Standing::Ended(Outcome::Cancelled)),
        ] {
            let fence = start(&store, "w").await;
            client.run(&format!("UPDATE dbos.workflow_status SET {change}"));
            for unit in [Unit::by(&fence).step(step(0)), Unit::by(&fence).outcome(success())] {
                let reply = store.unit(unit).await.expect("judged");
                assert_eq!(reply, UnitReply::Superseded { by: by.clone() }, "{change}");
            }
            assert_eq!(count(&mut client, "operation_outputs", "w"), "0");
            client.run("DELETE FROM dbos.workflow_status");
        }
    });
}
