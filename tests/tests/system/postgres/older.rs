//! Rows as older programs of the shared schema have left them.

use std::time::Duration;

use mainstay::{Ctx, Engine, Queue};
use mainstay_env::block_on;

use super::support::{self, APP, ORDERS, launch};

/// Payloads inline, names with an empty class or none, a checkpoint, and ends of both kinds.
const ROWS: &str = r#"
    INSERT INTO dbos.workflow_status (workflow_uuid, status, name, class_name, config_name, queue_name, application_name,
        serialization, inputs, created_at, updated_at) VALUES
        ('empty', 'ENQUEUED', 'sum', '', '', 'orders', 'shop', 'portable_json', '{"positionalArgs":[1,2]}', 1, 1),
        ('half', 'ENQUEUED', 'sum', '', NULL, 'orders', 'shop', 'portable_json', '{"positionalArgs":[1,3]}', 2, 2),
        ('none', 'ENQUEUED', 'sum', NULL, NULL, 'orders', NULL, 'portable_json', '{"positionalArgs":[1,4]}', 3, 3),
        ('begun', 'ENQUEUED', 'sum', '', '', 'orders', 'shop', 'portable_json', '{"positionalArgs":[1,5]}', 4, 4);
    INSERT INTO dbos.operation_outputs (workflow_uuid, function_id, function_name, output, serialization)
        VALUES ('begun', 0, 'add', '40', 'portable_json');
    INSERT INTO dbos.workflow_status (workflow_uuid, status, name, class_name, application_name, serialization, output,
        error, created_at, updated_at) VALUES
        ('ended', 'SUCCESS', 'sum', '', 'shop', 'portable_json', '7', NULL, 5, 5),
        ('failed', 'ERROR', 'sum', '', 'shop', 'portable_json', NULL, '{"name":"Odd","message":"no such sum"}', 6, 6)
"#;

#[test]
fn rows_of_older_forms_are_run_and_read() {
    let Some(database) = support::fresh_database() else { return };
    database.client().run(ROWS);
    block_on(async {
        let store = support::open(&database.url(), |config| config).await;
        let builder = Engine::builder(store).app(APP).queue(Queue::new(ORDERS));
        let sum = |ctx: Ctx, a: i64, b: i64| async move { ctx.step("add", || async { Ok(a + b) }).await };
        let engine = launch(builder.function("sum", sum)).await;
        for (id, value) in [("empty", 3), ("half", 4), ("none", 5), ("begun", 40), ("ended", 7)] {
            let handle = engine.handle_by_id::<i64>(id);
            let result = handle.result().timeout(Duration::from_secs(30)).await;
            assert_eq!(result.unwrap_or_else(|error| panic!("{id}: {}", error.message())), value, "{id}");
        }
        let error = engine.handle_by_id::<i64>("failed").result().await.expect_err("it has failed");
        assert_eq!((error.name(), error.message()), ("Odd", "no such sum"));
        engine.shutdown(Duration::from_secs(5)).await.expect("an end");
    });
}
