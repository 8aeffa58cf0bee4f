//! What the tables hold after a write, beyond what the store itself reads back: the other SDKs go by it.

use mainstay_pgkit::Client;
use mainstay_postgres::Postgres;
use mainstay_store::{
    Effect, Limits, OnConflict, Outcome, Place, QueueReply, QueueStore, RegisterQueue, Registered, Registry, Standing,
    Status, Submit, Unit, UnitReply, WorkflowStore, WriteExt,
};

use crate::store::claim::{APP, E1, Q, WORK, claim, lease, register};
use crate::store::support::with_store;

fn job(id: &str) -> Submit {
    Submit::new(id, WORK, format!("of {id}"), Place::queue(Q)).app(APP).input("[1]")
}

fn outputs(client: &mut Client, id: &str) -> String {
    client.value(&format!("SELECT count(*) FROM dbos.workflow_output WHERE workflow_uuid = '{id}'"))
}

async fn standing(store: &Postgres, id: &str) -> Standing {
    store.workflow_standing(&[id.into()]).await.expect("read").remove(0)
}

#[test]
fn a_queue_is_stored_as_one_with_priorities_however_it_came_there() {
    with_store(async |store, database| {
        let mut client = database.client();
        let flag = "SELECT priority_enabled FROM dbos.queues WHERE name = 'q'";
        register(&store, Limits::default()).await;
        assert_eq!(client.value(flag), "t", "the other SDKs would take its rows in another order");
        client.run("UPDATE dbos.queues SET priority_enabled = false");
        let limits = Limits { concurrency: Some(3), ..Limits::default() };
        let again = RegisterQueue::new(Q, APP).limits(limits).on_conflict(OnConflict::Update);
        let reply = store.queue_register(again).await.expect("registered");
        assert!(matches!(reply, QueueReply::Updated(_)), "{reply:?}");
        assert_eq!(client.value(flag), "t");
    });
}

#[test]
fn an_input_is_kept_from_the_time_of_its_row_on() {
    with_store(async |store, database| {
        store.submit(job("w")).await.expect("submitted");
        // What collects old payloads by their own stamp would take an earlier one with its workflow still to run.
        let kept = "SELECT i.retention_timestamp = w.created_at FROM dbos.workflow_input i JOIN dbos.workflow_status w
            USING (workflow_uuid)";
        assert_eq!(database.client().value(kept), "t");
    });
}

#[test]
fn parking_an_inline_row_removes_the_outcome_that_an_earlier_life_left_elsewhere() {
    with_store(async |store, database| {
        let mut client = database.client();
        lease(&store, E1).await;
        register(&store, Limits::default()).await;
        client.run(
            "INSERT INTO dbos.workflow_status (workflow_uuid, status, name, queue_name, application_name, inputs,
                recovery_attempts, created_at, updated_at) VALUES ('w', 'ENQUEUED', 'work', 'q', 'shop', '[1]', 9, 1, 1);
            INSERT INTO dbos.workflow_output (workflow_uuid, error) VALUES ('w', 'stale')",
        );
        let known = Registered { max_attempts: 1, ..Registered::new(WORK) };
        let claimed = store.queue_claim(claim(&store, E1).names(vec![known])).await.expect("a claim");
        assert_eq!(claimed.parked, ["w"]);
        assert_eq!(outputs(&mut client, "w"), "0");
        assert_eq!(standing(&store, "w").await, Standing::Ended(Outcome::out_of_attempts(9)));
    });
}

/// A workflow that was parked, its reason in the table of outcomes.
async fn parked(store: &Postgres, client: &mut Client) {
    lease(store, E1).await;
    register(store, Limits::default()).await;
    store.submit(job("w")).await.expect("submitted");
    let fence = store.queue_claim(claim(store, E1)).await.expect("a claim").rows.remove(0).fence;
    let outcome = Outcome::Parked("\"stale\"".into());
    assert_eq!(store.settle(&fence, outcome).await.expect("settled"), UnitReply::done());
    assert_eq!(outputs(client, "w"), "1");
}

#[test]
fn a_resume_removes_the_reason_for_which_a_row_was_parked() {
    with_store(async |store, database| {
        let mut client = database.client();
        parked(&store, &mut client).await;
        let resume = Effect::Resume { ids: vec!["w".into()], queue: Some(Q.into()), force: false };
        assert!(store.unit(Unit::new().effect(resume)).await.expect("resumed").is_done());
        assert_eq!(outputs(&mut client, "w"), "0", "the other SDKs read an outcome wherever it stands");
        assert_eq!(standing(&store, "w").await, Standing::Open(Status::Enqueued));
    });
}

#[test]
fn a_cancellation_removes_the_reason_for_which_a_row_was_parked() {
    with_store(async |store, database| {
        let mut client = database.client();
        parked(&store, &mut client).await;
        let cancel = Effect::Cancel { ids: vec!["w".into()], children: false };
        assert!(store.unit(Unit::new().effect(cancel)).await.expect("cancelled").is_done());
        assert_eq!(outputs(&mut client, "w"), "0");
        assert_eq!(standing(&store, "w").await, Standing::Ended(Outcome::Cancelled));
    });
}
