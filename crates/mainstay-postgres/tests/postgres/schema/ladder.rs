//! Every number by itself, and from every number to the newest.

use mainstay_migrations::POSTGRES;
use mainstay_postgres::schema_testing::{self as runner, How};

use crate::schema::support::{Lab, assert_at, is_full, recorded, value, with_database};

#[test]
fn golden_each_number_makes_the_catalog_that_the_other_sdks_have_there() {
    with_database(|lab| async move {
        let client = lab.client().await;
        client
            .batch_execute("CREATE SCHEMA dbos; CREATE TABLE dbos.dbos_migrations (version bigint PRIMARY KEY)")
            .await
            .expect("made");
        for step in POSTGRES.iter().filter(|step| !step.sql.is_empty()) {
            client
                .batch_execute(&runner::statements(step, "dbos"))
                .await
                .unwrap_or_else(|error| panic!("{}: {error:?}", step.number));
            let found = runner::facts_of(&client, "dbos").await.expect("a catalog");
            assert_eq!(found, runner::facts_at(step.number), "number {}", step.number);
        }
    });
}

/// Opens a schema at each of some numbers, and demands the catalog of a fresh one.
async fn from_each(lab: &Lab, numbers: impl Iterator<Item = u32>) {
    for number in numbers {
        let schema = format!("from_{number}");
        let client = lab.schema_at(number, &schema).await;
        assert_at(&client, &schema, number, "before").await;
        lab.ready(&schema, How::Up).await.unwrap_or_else(|error| panic!("from {number}: {error}"));
        assert_at(&client, &schema, 125, &format!("from {number}")).await;
    }
}

#[test]
fn golden_from_each_older_number_the_catalog_is_that_of_a_fresh_one() {
    with_database(|lab| async move {
        // The step before an online one, a function that changes its signature, and what is before the empty ones.
        let some = |number: &u32| is_full() || [1, 20, 26, 47].contains(number);
        from_each(&lab, recorded().filter(|number| *number < 125).filter(some)).await;
    });
}

#[test]
fn acceptance_02_from_each_number_of_100_to_124_the_catalog_is_that_of_a_fresh_one() {
    with_database(|lab| async move {
        let numbers: Vec<u32> = recorded().filter(|number| (100..125).contains(number)).collect();
        assert_eq!(numbers.len(), 25);
        from_each(&lab, numbers.into_iter()).await;
    });
}

#[test]
fn an_empty_schema_that_somebody_else_has_made_is_used() {
    with_database(|lab| async move {
        let client = lab.client().await;
        client
            .batch_execute("CREATE SCHEMA given; CREATE TABLE given.dbos_migrations (version bigint PRIMARY KEY)")
            .await
            .expect("made");
        lab.ready("given", How::Up).await.expect("opened");
        assert_at(&client, "given", 125, "given").await;
    });
}

#[test]
fn two_installations_share_a_database_and_our_own_tables() {
    with_database(|lab| async move {
        lab.ready("one", How::Up).await.expect("the first");
        lab.ready("two", How::UpTo108).await.expect("the second");
        let client = lab.client().await;
        assert_at(&client, "one", 125, "the first").await;
        assert_at(&client, "two", 108, "the second").await;
        let tables = "SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class
            WHERE relnamespace = 'mainstay'::regnamespace AND relkind = 'r'";
        assert_eq!(value(&client, tables).await, "claims leases migrations starts");
        assert_eq!(value(&client, "SELECT string_agg(version::text, ' ') FROM mainstay.migrations").await, "1");
    });
}
