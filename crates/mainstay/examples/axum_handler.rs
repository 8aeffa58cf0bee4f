//! A web handler that starts a workflow and answers with its id at once; another one tells how it stands.
//!
//! ```text
//! cargo run -p mainstay --example axum_handler -- --serve
//! ```
//!
//! Without `--serve` the program makes one request to itself on a port of its own, and ends.

#![allow(clippy::print_stdout, reason = "a program talks to its user")]

use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use mainstay::prelude::*;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[derive(Serialize, Deserialize)]
struct Order {
    id: String,
    cents: u64,
}

#[workflow]
async fn checkout(ctx: Ctx, order: Order) -> Result<String> {
    let cents = order.cents;
    let payment = ctx.step("charge", || async move { Ok(format!("paid {cents} cents")) }).await?;
    Ok(format!("{}: {payment}", order.id))
}

/// The order's id is the workflow's, so that a request that is sent twice starts one checkout.
async fn start(State(engine): State<Engine>, Json(order): Json<Order>) -> Result<String, (StatusCode, String)> {
    let id = order.id.clone();
    let handle = engine.start(checkout(order)).id(id).await.map_err(refused)?;
    Ok(handle.id().to_string())
}

async fn result(State(engine): State<Engine>, Path(id): Path<String>) -> Result<String, (StatusCode, String)> {
    engine.handle(checkout, id).result().timeout(Duration::from_secs(5)).await.map_err(refused)
}

fn refused(error: Error) -> (StatusCode, String) {
    let status = match error.kind() {
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Timeout | ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::Refused | ErrorKind::BadInput => StatusCode::BAD_REQUEST,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, error.message().to_owned())
}

#[tokio::main]
async fn main() -> Result<()> {
    let engine = Engine::builder(mainstay::memory()).app("shop").register(checkout).launch().await?;
    let routes = Router::new().route("/orders", post(start)).route("/orders/{id}", get(result));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    println!("serving on http://{address}");
    let server = axum::serve(listener, routes.with_state(engine.clone()));
    if std::env::args().any(|argument| argument == "--serve") {
        server.await?;
    } else {
        tokio::select! {
            served = server => served?,
            answers = try_it(&address) => answers?,
        }
    }
    engine.shutdown(Duration::from_secs(5)).await
}

/// Orders something, and asks what became of it.
async fn try_it(address: &str) -> Result<()> {
    let order = r#"{"id":"order-42","cents":995}"#;
    println!("started {}", request(address, "POST /orders", order).await?);
    println!("{}", request(address, "GET /orders/order-42", "").await?);
    Ok(())
}

/// One request over one connection; the body of the answer, or an error that tells its status.
async fn request(address: &str, line: &str, body: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let head = format!(
        "{line} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.lines().next().unwrap_or_default();
    if status.contains(" 200 ") { Ok(body.to_owned()) } else { Err(Error::new(format!("{line}: {status}: {body}"))) }
}
