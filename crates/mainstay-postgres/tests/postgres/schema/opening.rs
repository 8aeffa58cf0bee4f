//! What the configuration of a store makes of the schema.

use mainstay_postgres::{Config, Postgres};
use mainstay_store::{ErrorKind, StoreClock};

use crate::schema::support::{Lab, assert_at, text, value, with_database};

async fn open(lab: &Lab, set: impl FnOnce(Config) -> Config) -> mainstay_store::Result<Postgres> {
    Postgres::open(&lab.env, set(Config::new(lab.database.url())), StoreClock::Server).await
}

#[test]
fn a_store_that_verifies_and_holds_at_108_opens_108_and_more_and_changes_nothing() {
    with_database(|lab| async move {
        // Our own tables have to be there, which the opening of another schema brings.
        drop(open(&lab, |config| config.schema("other")).await.expect("made"));
        let client = lab.schema_at(108, "dbos").await;
        let refused = open(&lab, Config::verify_only).await.expect_err("it is not held");
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
        assert!(text(&refused).contains("number 108") && text(&refused).contains("125"), "{refused}");
        drop(open(&lab, |config| config.verify_only().hold_at_108()).await.expect("held"));
        assert_at(&client, "dbos", 108, "verified").await;
        drop(open(&lab, |config| config.schema("other").verify_only().hold_at_108()).await.expect("a higher one"));
        assert_at(&client, "other", 125, "verified").await;

        drop(lab.schema_at(107, "older").await);
        let refused = open(&lab, |config| config.schema("older").verify_only().hold_at_108()).await.expect_err("107");
        assert!(text(&refused).contains("number 107") && text(&refused).contains("108"), "{refused}");
        assert_eq!(value(&client, "SELECT version FROM older.dbos_migrations").await, "107");
    });
}
