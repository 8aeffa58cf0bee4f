//! What the functions of the shared schema do, for those who call them in SQL.

use mainstay_postgres::schema_testing::How;
use tokio_postgres::Client;

use crate::schema::support::{rows, value, with_database};

async fn refused(client: &Client, ask: &str) -> (String, String, String) {
    let error = client.simple_query(ask).await.expect_err(ask);
    let db = error.as_db_error().expect("the server's answer");
    (db.code().code().into(), db.message().into(), db.detail().unwrap_or_default().into())
}

#[test]
fn s3_functions_run_with_the_callers_rights_and_heed_no_schema_of_the_caller() {
    with_database(|lab| async move {
        let client = lab.client().await;
        // Everything that a function might name, made to fail when it is met.
        let hostile = "CREATE SCHEMA hostile; SET search_path = hostile, public, pg_catalog";
        client.batch_execute(hostile).await.expect("set");
        for shadow in [
            "now() RETURNS timestamptz",
            "gen_random_uuid() RETURNS uuid",
            "floor(float8) RETURNS float8",
            "floor(numeric) RETURNS numeric",
            "json_typeof(json) RETURNS text",
            "json_build_object(VARIADIC \"any\") RETURNS json",
            "pg_notify(text, text) RETURNS void",
        ] {
            for space in ["hostile", "public"] {
                let body = if shadow.contains("any") {
                    format!("CREATE FUNCTION {space}.json_build_object(text, json[], text, json) RETURNS json")
                } else {
                    format!("CREATE FUNCTION {space}.{shadow}")
                };
                let body = format!("{body} LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hostile'; END $$");
                client.batch_execute(&body).await.unwrap_or_else(|error| panic!("{body}: {error:?}"));
            }
        }
        let mut client = client;
        mainstay_postgres::schema_testing::ready(&mut client, "dbos", How::Up, &lab.env)
            .await
            .expect("made in a hostile session");
        assert_eq!(value(&client, "SELECT dbos.enqueue_workflow('f', 'q', workflow_id => 'w')").await, "w");
        client.batch_execute("SELECT dbos.send_message('w', '1')").await.expect("a message");
        client.batch_execute("INSERT INTO dbos.queues (name) VALUES ('q')").await.expect("defaults");
        let pins = rows(&client, "SELECT proname, prosecdef, proconfig FROM pg_catalog.pg_proc WHERE pronamespace = 'dbos'::pg_catalog.regnamespace ORDER BY 1").await;
        let pin = |name: &str| {
            vec![Some(name.to_owned()), Some("f".into()), Some("{\"search_path=pg_catalog, pg_temp\"}".into())]
        };
        assert_eq!(pins, ["enqueue_workflow", "notifications_function", "send_message"].map(pin));
        let public = "SELECT count(*) FROM pg_catalog.pg_class WHERE relnamespace = 'public'::pg_catalog.regnamespace";
        assert_eq!(value(&client, public).await, "0");
    });
}

#[test]
fn enqueue_workflow_writes_the_row_that_every_sdk_can_claim() {
    with_database(|lab| async move {
        lab.ready("dbos", How::Up).await.expect("made");
        let client = lab.client().await;
        client.batch_execute("SELECT dbos.enqueue_workflow('f', 'q', workflow_id => 'w')").await.expect("enqueued");
        let row = "SELECT status, w.inputs, i.inputs, serialization, recovery_attempts, owner_xid IS NOT NULL, creator_xid, executor_id,
            priority, i.retention_timestamp = created_at AND created_at = updated_at, request, attributes
            FROM dbos.workflow_status w JOIN dbos.workflow_input i USING (workflow_uuid)";
        let expected = [
            Some("ENQUEUED"),
            None,
            Some(r#"{"positionalArgs" : [], "namedArgs" : {}}"#),
            Some("portable_json"),
            Some("0"),
            Some("t"),
            None,
            None,
            Some("0"),
            Some("t"),
            None,
            None,
        ];
        let found = rows(&client, row).await;
        assert_eq!(found[0].iter().map(Option::as_deref).collect::<Vec<_>>(), expected);

        let inputs = |id: &str| format!("SELECT inputs FROM dbos.workflow_input WHERE workflow_uuid = '{id}'");
        client
            .batch_execute("SELECT dbos.enqueue_workflow('f', 'q', NULL, NULL, workflow_id => 'n')")
            .await
            .expect("enqueued");
        assert_eq!(value(&client, &inputs("n")).await, r#"{"positionalArgs" : null, "namedArgs" : null}"#);
        client.batch_execute("SELECT dbos.enqueue_workflow('f', 'q', ARRAY['1', '{\"a\": 2}']::json[], '{\"k\": 3}', workflow_id => 'a')").await.expect("enqueued");
        assert_eq!(value(&client, &inputs("a")).await, r#"{"positionalArgs" : [1,{"a": 2}], "namedArgs" : {"k": 3}}"#);
        client.batch_execute("SELECT dbos.enqueue_workflow('f', 'q', workflow_id => 'd', delay_until_epoch_ms => 0, priority => 7, application_name => 'shop')").await.expect("delayed");
        let delayed = "SELECT concat_ws(' ', status, delay_until_epoch_ms, priority, application_name) FROM dbos.workflow_status WHERE workflow_uuid = 'd'";
        assert_eq!(value(&client, delayed).await, "DELAYED 0 7 shop");
    });
}

#[test]
fn enqueue_workflow_keeps_what_an_id_has_and_refuses_what_cannot_be() {
    with_database(|lab| async move {
        lab.ready("dbos", How::Up).await.expect("made");
        let client = lab.client().await;
        client
            .batch_execute("SELECT dbos.enqueue_workflow('f', 'q', workflow_id => 'w', deduplication_id => 'd')")
            .await
            .expect("enqueued");
        // The same id again, and one whose inputs are in the older place.
        assert_eq!(
            value(&client, "SELECT dbos.enqueue_workflow('g', 'q', ARRAY['1']::json[], workflow_id => 'w')").await,
            "w"
        );
        client
            .batch_execute("INSERT INTO dbos.workflow_status (workflow_uuid, inputs) VALUES ('old', 'kept')")
            .await
            .expect("a row");
        client
            .batch_execute("SELECT dbos.enqueue_workflow('g', 'q', ARRAY['1']::json[], workflow_id => 'old')")
            .await
            .expect("the id");
        let kept = "SELECT string_agg(concat_ws(' ', w.workflow_uuid, name, w.inputs, i.inputs), '; ' ORDER BY w.workflow_uuid)
            FROM dbos.workflow_status w LEFT JOIN dbos.workflow_input i USING (workflow_uuid)";
        assert_eq!(value(&client, kept).await, r#"old kept; w f {"positionalArgs" : [], "namedArgs" : {}}"#);

        let again = "SELECT dbos.enqueue_workflow('f', 'q', workflow_id => 'x', deduplication_id => 'd')";
        let detail = "Workflow x with queue q and deduplication ID d already exists";
        assert_eq!(refused(&client, again).await, ("23505".into(), "DBOS queue duplicated".into(), detail.into()));
        for (arguments, message) in [
            ("'', 'q'", "Workflow name cannot be null or empty"),
            ("NULL, 'q'", "Workflow name cannot be null or empty"),
            ("'f', ''", "Queue name cannot be null or empty"),
            ("'f', 'q', named_args => '[]'", "Named args must be a JSON object"),
            ("'f', 'q', workflow_id => ''", "Workflow ID cannot be an empty string if provided."),
            ("'f', 'q', delay_until_epoch_ms => -1", "delay_until_epoch_ms must be >= 0"),
        ] {
            let ask = format!("SELECT dbos.enqueue_workflow({arguments})");
            assert_eq!(refused(&client, &ask).await, ("P0001".into(), message.into(), String::new()));
        }
        assert_eq!(value(&client, "SELECT count(*) FROM dbos.workflow_input").await, "1");
    });
}

#[test]
fn send_message_is_told_on_the_channel_and_needs_a_workflow() {
    with_database(|lab| async move {
        lab.ready("dbos", How::Up).await.expect("made");
        let client = lab.client().await;
        client.batch_execute("SELECT dbos.enqueue_workflow('f', 'q', workflow_id => 'w')").await.expect("a workflow");
        client.batch_execute("SELECT dbos.send_message('w', '{\"a\":1}', message_id => 'm'); SELECT dbos.send_message('w', '2', 't', 'm')").await.expect("sent");
        let sent =
            "SELECT concat_ws(' ', message_uuid, topic, message, serialization, consumed) FROM dbos.notifications";
        assert_eq!(value(&client, sent).await, r#"m __null__topic__ {"a":1} portable_json f"#);
        let detail = "Destination workflow nobody does not exist";
        assert_eq!(
            refused(&client, "SELECT dbos.send_message('nobody', '1')").await,
            ("23503".into(), "DBOS non-existent workflow".into(), detail.into())
        );
    });
}
