//! A server that goes away while the work of a dead process is taken over.

use std::time::Duration;

use mainstay_env::block_on;
use mainstay_pgkit::Options;
use mainstay_store::{Beat, Place};

use super::support::{self, APP, Marks, count, database_on, ids, launch, own_server, shop, until};

/// Rows of the dead process.
const ROWS: usize = 250;

/// When the server goes away, counted from the first row that is taken over.
const INTO: Duration = Duration::from_millis(200);

#[test]
fn case_o03_a_recovery_goes_on_by_itself_after_a_restart_of_the_server() {
    let Some(server) = own_server(Options::new().durable()) else { return };
    let database = database_on(&server);
    block_on(async {
        let marks = Marks::default();
        let store = support::open(&database.url(), |config| config).await;
        let env = store.env().clone();
        store.lease_beat(Beat::new("dead~1", APP, 1_u64)).await.expect("a lease");
        support::submit(&store, &ids("w", ROWS), || Place::Run("dead~1".into())).await;
        // Few at a time, so that recovery takes longer than the server stays.
        let engine = launch(shop(&store, &marks, Duration::from_millis(60)).max_running(20)).await;
        until(&env, "a row is taken over", || marks.len() > 0).await;
        env.sleep(INTO).await;
        server.stop_immediate();
        let begun = marks.len();
        assert!(begun < ROWS, "all had begun before the server went away");
        server.start_again().expect("a server");
        let mut client = database.client();
        let took = until(&env, "all run", || count(&mut client, "status = 'SUCCESS'") == ROWS).await;
        assert_eq!(count(&mut client, "executor_id LIKE 'dead~%'"), 0, "nothing is left with the dead one");
        let leases = store.lease_list(&APP.into()).await.expect("a list").leases;
        assert_eq!(leases.iter().filter(|lease| lease.executor.as_str() == "dead~1").count(), 0, "{leases:?}");
        assert_eq!(marks.doubles(), Vec::new(), "no step ran twice; recovered {took:?} after the restart");
        assert_eq!((marks.len(), engine.stats().renewals), (ROWS, 0), "an outage costs no lease");
        engine.shutdown(Duration::from_secs(5)).await.expect("an end");
    });
}
