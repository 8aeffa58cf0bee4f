//! A primary that becomes read-only, and the standby that takes its place.

use std::time::Duration;

use mainstay_env::block_on;
use mainstay_pgkit::{Client, Options};
use mainstay_store::Place;

use super::support::{
    self, Marks, ORDERS, count, database_on, fresh_database, ids, launch, own_server, shop, submit, until,
};

/// Rows of a test.
const ROWS: usize = 120;

#[test]
fn case_o15_workflows_wait_while_their_database_is_read_only_and_none_fails() {
    let Some(database) = fresh_database() else { return };
    block_on(async {
        let marks = Marks::default();
        let store = support::open(&database.url(), |config| config).await;
        let env = store.env().clone();
        let engine = launch(shop(&store, &marks, Duration::from_millis(30)).max_running(8)).await;
        submit(&store, &ids("w", ROWS), || Place::queue(ORDERS)).await;
        until(&env, "some have run", || marks.len() > 10).await;
        let alter = |what: &str| {
            let mut admin = database.server().client();
            admin.run(&format!("ALTER DATABASE {} {what}", database.name()));
        };
        alter("SET default_transaction_read_only = on");
        database.terminate_sessions();
        env.sleep(Duration::from_secs(1)).await;
        let mut client = database.client();
        let before = count(&mut client, "status = 'SUCCESS'");
        env.sleep(Duration::from_millis(500)).await;
        assert_eq!(count(&mut client, "status = 'SUCCESS'"), before, "nothing can be written meanwhile");
        assert!(before < ROWS, "all had ended before");
        // Sessions that are open stay read-only: those that met it must have been given up.
        alter("RESET default_transaction_read_only");
        let took = until(&env, "all run", || count(&mut client, "status = 'SUCCESS'") == ROWS).await;
        assert_eq!((marks.len(), marks.doubles()), (ROWS, Vec::new()), "no step ran twice; resumed within {took:?}");
        assert_eq!(engine.stats().renewals, 0, "nobody lost a lease");
        engine.shutdown(Duration::from_secs(5)).await.expect("an end");
    });
}

#[test]
fn case_o15_workflows_go_on_at_the_standby_that_was_promoted() {
    let Some(primary) = own_server(Options::new()) else { return };
    let database = database_on(&primary);
    let standby = primary.standby().expect("a standby");
    let url = format!(
        "postgres://postgres@127.0.0.1:{},127.0.0.1:{}/{}?target_session_attrs=read-write",
        primary.port(),
        standby.port(),
        database.name()
    );
    block_on(async {
        let marks = Marks::default();
        let store = support::open(&url, |config| config).await;
        let env = store.env().clone();
        let engine = launch(shop(&store, &marks, Duration::from_millis(30)).max_running(8)).await;
        submit(&store, &ids("w", ROWS), || Place::queue(ORDERS)).await;
        until(&env, "some have run", || marks.len() > 10).await;
        // The old primary stays up, and takes no more writes.
        let mut old = primary.client();
        old.run("ALTER SYSTEM SET default_transaction_read_only = on");
        // No session is ended: each that the store has left must be given up by it, once it is refused a write.
        old.run("SELECT pg_reload_conf()");
        caught_up(&env, &mut old, &mut standby.client()).await;
        standby.promote().expect("a primary");
        let mut client = standby.try_client(database.name()).expect("a client");
        let took = until(&env, "all run", || count(&mut client, "status = 'SUCCESS'") == ROWS).await;
        let mut old = database.client();
        assert!(count(&mut old, "status = 'SUCCESS'") < ROWS, "the rest ended at the new primary");
        assert_eq!(count(&mut client, "status NOT IN ('SUCCESS')"), 0, "none failed; resumed within {took:?}");
        assert_eq!((marks.len(), marks.doubles()), (ROWS, Vec::new()), "no step ran twice");
        engine.shutdown(Duration::from_secs(5)).await.expect("an end");
    });
}

/// Waits until the standby has what the primary has, which writes nothing more.
async fn caught_up(env: &mainstay_env::Env, old: &mut Client, standby: &mut Client) {
    let mut last = String::new();
    until(env, "the standby has caught up", || {
        let written = old.value("SELECT pg_current_wal_lsn()");
        let has = standby.value(&format!("SELECT pg_last_wal_replay_lsn() >= '{written}'::pg_lsn"));
        std::mem::replace(&mut last, written.clone()) == written && has == "t"
    })
    .await;
}
