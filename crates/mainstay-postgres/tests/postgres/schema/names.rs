//! Odd names of schemas.

use mainstay_postgres::schema_testing::How;

use crate::schema::support::{assert_at, is_full, quote, value, with_database};

/// What is odd in the others, in one name: those go up the whole ladder in the long runs only.
const ALL_AT_ONCE: &str = "1-U $body0$ sché;--{{schema}}\"'\\";

#[test]
fn case_o47_odd_schema_names_work_in_tables_functions_triggers_and_online_steps() {
    let long = "x".repeat(63);
    let names = [
        "My-Schema",
        "user",
        "1abc",
        "schéma",
        "with space",
        "qu\"ote",
        "it's",
        "back\\slash",
        "a$body0$b",
        "{{schema}}",
        "a;b--c",
        ALL_AT_ONCE,
        &long,
    ];
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    with_database(|lab| async move {
        for name in names {
            let client = lab.client().await;
            lab.ready(&name, How::Up).await.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_at(&client, &name, 125, &name).await;
            works(&client, &quote(&name)).await;
            client.batch_execute(&format!("DROP SCHEMA {} CASCADE", quote(&name))).await.expect("dropped");
            if !is_full() && name != ALL_AT_ONCE && name.len() < 63 {
                continue;
            }
            // The guarded key, both kinds of online steps, and an unfinished index to drop.
            let client = lab.schema_at(9, &name).await;
            let broken = format!(
                "CREATE INDEX idx_workflow_status_pending ON {}.workflow_status (name);
                UPDATE pg_index SET indisvalid = false WHERE indexrelid = (SELECT oid FROM pg_class
                    WHERE relname = 'idx_workflow_status_pending')",
                quote(&name)
            );
            client.batch_execute(&broken).await.expect("an unfinished index");
            lab.ready(&name, How::Up).await.unwrap_or_else(|error| panic!("{name} from 9: {error}"));
            assert_at(&client, &name, 125, &name).await;
            client.batch_execute(&format!("DROP SCHEMA {} CASCADE", quote(&name))).await.expect("dropped");
        }
    });
}

async fn works(client: &tokio_postgres::Client, quoted: &str) {
    let id = value(client, &format!("SELECT {quoted}.enqueue_workflow('f', 'q', workflow_id => 'w')")).await;
    assert_eq!(id, "w");
    client.batch_execute(&format!("SELECT {quoted}.send_message('w', '1')")).await.expect("a message");
    assert_eq!(value(client, &format!("SELECT message FROM {quoted}.notifications")).await, "1");
}
