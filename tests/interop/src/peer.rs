//! Processes of other SDKs: each is asked by a JSON line and answers with one.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::plan::Sdk;

/// Longest wait for an answer: a program that polls once a second needs a few.
const PATIENCE: Duration = Duration::from_secs(40);

/// Folder of the peers' programs, where this crate was built.
const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peers");

/// One process of an SDK. It ends with its input, or is killed with this.
pub(crate) struct Peer {
    sdk: Sdk,
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

/// Who an executor is.
pub(crate) struct Executor<'a> {
    pub(crate) app: &'a str,
    pub(crate) version: &'a str,
    pub(crate) queue: &'a str,
}

/// How a workflow ended, as a peer tells it.
#[derive(Debug, PartialEq)]
pub(crate) enum Told {
    Value(Value),
    Error { name: String, message: String, code: Value, data: Value },
}

fn command(sdk: Sdk, sdks: &Path) -> Command {
    let folder = sdks.join(sdk.folder());
    match sdk {
        Sdk::Python3 | Sdk::Python2 => {
            let mut command = Command::new(folder.join("venv/bin/python"));
            command.arg(format!("{PROGRAMS}/python/peer.py"));
            command
        }
        Sdk::TypeScript5 | Sdk::TypeScript4 => {
            let mut command = Command::new("node");
            command.arg("--no-deprecation").arg(format!("{PROGRAMS}/typescript/peer.mjs"));
            command
        }
        Sdk::Rust0 => Command::new(folder.join("debug/peer")),
    }
}

impl Peer {
    /// A client.
    pub(crate) async fn client(sdk: Sdk, sdks: &Path, url: &str) -> Result<Self, String> {
        Self::start(sdk, sdks, json!({ "url": url, "app": "client", "version": "none" })).await
    }

    /// An executor, which is a client too. It makes the database's tables, or brings them up to date.
    pub(crate) async fn executor(sdk: Sdk, sdks: &Path, url: &str, who: Executor<'_>) -> Result<Self, String> {
        let Executor { app, version, queue } = who;
        Self::start(sdk, sdks, json!({ "url": url, "app": app, "version": version, "queue": queue })).await
    }

    async fn start(sdk: Sdk, sdks: &Path, mut given: Value) -> Result<Self, String> {
        given["sdk"] = json!(sdks.join(sdk.folder()));
        let mut command = command(sdk, sdks);
        command.arg(given.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.kill_on_drop(true).spawn().map_err(|error| format!("{sdk}: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(format!("{sdk}: no pipes"));
        };
        let mut peer = Self { sdk, child, input, output: BufReader::new(output).lines() };
        let ready = peer.answer().await?;
        if ready["ready"] == true { Ok(peer) } else { Err(format!("{sdk}: {ready}")) }
    }

    async fn answer(&mut self) -> Result<Value, String> {
        let sdk = self.sdk;
        loop {
            let line = timeout(PATIENCE, self.output.next_line()).await.map_err(|_| format!("{sdk}: no answer"))?;
            match line.map_err(|error| format!("{sdk}: {error}"))? {
                // What is no object is a remark of the SDK's own.
                Some(line) if !line.starts_with('{') => {}
                Some(line) => return serde_json::from_str(&line).map_err(|error| format!("{sdk}: {error}: {line}")),
                None => return Err(format!("{sdk}: it has ended")),
            }
        }
    }

    /// Asks, and gives the answer as it is.
    pub(crate) async fn ask(&mut self, asked: &Value) -> Result<Value, String> {
        let failed = |error: std::io::Error| format!("the process takes no question: {error}");
        self.input.write_all(format!("{asked}\n").as_bytes()).await.map_err(failed)?;
        self.input.flush().await.map_err(failed)?;
        let answer = self.answer().await?;
        match answer.get("failed") {
            Some(why) => Err(format!("{}: {asked}: {why}", self.sdk)),
            None => Ok(answer),
        }
    }

    /// Enqueues what `asked` says, and gives the id.
    pub(crate) async fn enqueue(&mut self, mut asked: Value) -> Result<String, String> {
        asked["do"] = json!("enqueue");
        let answer = self.ask(&asked).await?;
        answer["id"].as_str().map(str::to_owned).ok_or_else(|| format!("{}: no id in {answer}", self.sdk))
    }

    /// Waits for the end of a workflow.
    pub(crate) async fn result(&mut self, id: &str) -> Result<Told, String> {
        let mut answer = self.ask(&json!({ "do": "result", "id": id })).await?;
        if let Some(value) = answer.get_mut("value") {
            return Ok(Told::Value(value.take()));
        }
        let mut error = answer["error"].take();
        let (Some(name), Some(message)) = (error["name"].as_str(), error["message"].as_str()) else {
            return Err(format!("{}: neither value nor error", self.sdk));
        };
        let (name, message) = (name.to_owned(), message.to_owned());
        Ok(Told::Error { name, message, code: error["code"].take(), data: error["data"].take() })
    }

    /// Lets it end by itself.
    pub(crate) async fn end(self) -> Result<(), String> {
        let Self { sdk, mut child, input, .. } = self;
        drop(input);
        let status = timeout(PATIENCE, child.wait()).await.map_err(|_| format!("{sdk}: it does not end"))?;
        let status = status.map_err(|error| format!("{sdk}: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("{sdk}: it ended with {status}")) }
    }

    /// Kills it where it stands.
    pub(crate) async fn kill(mut self) -> Result<(), String> {
        self.child.kill().await.map_err(|error| format!("{}: {error}", self.sdk))
    }
}
