//! One process of the published Rust crate: an executor where a queue is named, and a client always.
//!
//! Its one argument is a JSON object of url, app, version and queue. It answers each JSON line with one.

use std::time::Duration;

use dbos::{Client, ClientConfig, Config, DBOS, EnqueueOptions, Error, QueueConflict, QueueOptions, WorkflowHandle};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

/// An application's error.
#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
struct Declined {
    name: String,
    message: String,
}

#[derive(Deserialize)]
struct Given {
    url: String,
    app: String,
    version: String,
    queue: Option<String>,
}

async fn launch(given: &Given, queue: &str) -> dbos::Result<DBOS> {
    let dbos = DBOS::new(Config {
        app_version: Some(given.version.clone()),
        listen_queues: Some(vec![queue.to_owned()]),
        ..Config::new(&given.app, &given.url)
    });
    dbos.register_workflow("echo", |value: Value| async move { Ok::<Value, Error>(value) })?;
    dbos.register_workflow("nothing", |()| async move { Ok::<(), Error>(()) })?;
    dbos.register_workflow("refuse", |reason: String| async move {
        let declined = Declined { name: "Declined".to_owned(), message: reason };
        Err::<(), _>(Error::Application(declined))
    })?;
    dbos.register_workflow("hold", |seconds: u64| async move {
        dbos::sleep(Duration::from_secs(seconds)).await?;
        Ok::<_, Error>("held".to_owned())
    })?;
    dbos.launch().await?;
    let options = QueueOptions { polling_interval: Duration::from_millis(50), ..QueueOptions::default() };
    dbos.register_queue(queue, options, QueueConflict::UpdateIfLatestVersion).await?;
    Ok(dbos)
}

fn text<'a>(asked: &'a Value, key: &str) -> Option<&'a str> {
    asked.get(key).and_then(Value::as_str)
}

async fn answer(client: &Client, asked: &Value) -> Result<Value, Box<dyn std::error::Error>> {
    let id = text(asked, "id");
    match text(asked, "do") {
        Some("enqueue") => {
            let options = EnqueueOptions {
                workflow_id: id,
                class_name: text(asked, "class"),
                config_name: text(asked, "instance"),
                app_name: text(asked, "app"),
                app_version: text(asked, "version"),
                ..EnqueueOptions::new(text(asked, "queue").ok_or("no queue")?)
            };
            // The crate knows one parameter alone.
            let input = asked["args"].get(0).cloned().unwrap_or_default();
            let name = text(asked, "workflow").ok_or("no workflow")?;
            let handle: WorkflowHandle<Value, Declined> = client.enqueue_with(name, input, options).await?;
            Ok(json!({ "id": handle.workflow_id() }))
        }
        Some("result") => {
            let handle: WorkflowHandle<Value, Declined> = client.retrieve_workflow(id.ok_or("no id")?);
            Ok(match handle.result().await {
                Ok(value) => json!({ "value": value }),
                Err(Error::Application(Declined { name, message })) => {
                    json!({ "error": { "name": name, "message": message, "code": null, "data": null } })
                }
                Err(error) => {
                    json!({ "error": { "name": "Error", "message": error.to_string(), "code": null, "data": null } })
                }
            })
        }
        Some("status") => {
            let status = client.workflow_status(id.ok_or("no id")?).await?.ok_or("no such workflow")?;
            Ok(json!({ "status": status.to_string() }))
        }
        _ => Err("not a question".into()),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let given: Given = serde_json::from_str(&std::env::args().nth(1).ok_or("no argument")?)?;
    let executor = match &given.queue {
        Some(queue) => Some(launch(&given, queue).await?),
        None => None,
    };
    let client = Client::connect(ClientConfig::new(&given.url)).await?;
    println!("{}", json!({ "ready": true }));
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let asked: Value = serde_json::from_str(&line)?;
        match answer(&client, &asked).await {
            Ok(answer) => println!("{answer}"),
            Err(error) => println!("{}", json!({ "failed": error.to_string() })),
        }
    }
    client.close().await;
    if let Some(executor) = executor {
        executor.shutdown().await;
    }
    Ok(())
}
