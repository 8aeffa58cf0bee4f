//! The SQL function enqueues for our executor; their client reads the result.

use serde_json::json;

use super::{Place, declined, expect, expect_value};
use crate::ours::{self, APP, QUEUE};

pub(crate) async fn sql_function(place: &Place<'_>) -> Result<(), String> {
    let (engine, mut peer) = place.client().await?;
    let url = place.url.to_owned();
    let calls = [
        format!("'nothing', '{QUEUE}', workflow_id => 'sql-1'"),
        format!(
            "'join', '{QUEUE}', ARRAY['\"a\\u0000é\"'::json, '7'], workflow_id => 'sql-2', application_name => '{APP}'"
        ),
        format!("'join', '{QUEUE}', ARRAY['\"b\"'::json], '{{\"number\": 7}}', workflow_id => 'sql-3'"),
        format!("'echo', '{QUEUE}', ARRAY['18446744073709551615'::json], workflow_id => 'sql-4'"),
        format!("'open', '{QUEUE}', ARRAY['\"x\"'::json], NULL, 'Desk', 'east', 'sql-5'"),
        format!("'refuse', '{QUEUE}', ARRAY['\"no\"'::json], workflow_id => 'sql-6'"),
    ];
    let enqueue = move || -> Result<(), String> {
        let mut client = mainstay_pgkit::Client::connect(&url).map_err(|error| error.to_string())?;
        for call in calls {
            client
                .query(&format!("SELECT dbos.enqueue_workflow({call})"))
                .map_err(|error| format!("{call}: {error}"))?;
        }
        Ok(())
    };
    tokio::task::spawn_blocking(enqueue).await.map_err(|error| error.to_string())??;
    let largest = if place.sdk.is_exact() { json!(u64::MAX) } else { json!(18_446_744_073_709_551_616.0) };
    for (id, expected) in [
        ("sql-1", json!(null)),
        ("sql-2", json!("a\u{0}é7")),
        ("sql-3", json!("b7")),
        ("sql-4", largest),
        ("sql-5", json!("east:x")),
    ] {
        expect_value(id, peer.result(id).await?, &expected)?;
    }
    expect("sql-6", &peer.result("sql-6").await?, &declined("no"))?;
    peer.end().await?;
    ours::end(engine).await
}
