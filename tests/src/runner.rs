//! One process of a test of the whole runtime: an engine on a SQLite file, with bodies that wait, block or kill it.
//!
//! What the bodies do goes into a file of marks, a line each: the process, what it does, and the workflow. What the engine
//! warns of goes to the standard error. `SIGTERM` shuts the process down.

use std::fs::{File, OpenOptions};
use std::io::{self, Write, stderr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use mainstay::{Builder, Ctx, Engine, Queue, Registration, Result, Settings};
use mainstay_env::Env;
use tokio::signal::unix::{SignalKind, signal};

use crate::warnings;

/// The application.
pub const APP: &str = "shop";

/// The queue that it serves, with [`PROCESS`] places a process.
pub const JOBS: &str = "jobs";

/// Running at once in one process on [`JOBS`].
pub const PROCESS: u32 = 20;

/// Executions of a row of `poison`.
pub const ATTEMPTS: u32 = 3;

/// Threads that bodies run on.
pub const THREADS: usize = 2;

/// How long a standing lease counts as alive, far below the usual 10 s.
pub const TTL: Duration = Duration::from_secs(2);

/// Settings under which a death is noticed soon.
#[must_use]
pub fn settings(config: Settings) -> Settings {
    config.tick(Duration::from_millis(200)).beat(Duration::from_millis(250)).ttl(TTL)
}

/// What a process is told, as arguments of its command line.
#[derive(Clone, Debug)]
pub struct Orders {
    /// The store's file.
    pub file: PathBuf,
    /// The file of marks.
    pub marks: PathBuf,
    /// Name of the process.
    pub name: String,
    /// How long a shutdown waits for what runs.
    pub drain: Duration,
}

impl Orders {
    /// The arguments that say this.
    #[must_use]
    pub fn to_args(&self) -> Vec<String> {
        let Self { file, marks, name, drain } = self;
        vec![file.display().to_string(), marks.display().to_string(), name.clone(), drain.as_millis().to_string()]
    }

    fn from_args(mut args: impl Iterator<Item = String>) -> Option<Self> {
        let (file, marks, name) = (args.next()?.into(), args.next()?.into(), args.next()?);
        Some(Self { file, marks, name, drain: Duration::from_millis(args.next()?.parse().ok()?) })
    }
}

/// Appends to the file of marks, a line a write.
#[derive(Clone, Debug)]
struct Marks {
    file: Arc<File>,
    process: Arc<str>,
}

impl Marks {
    fn open(path: &Path, process: &str) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file: Arc::new(file), process: process.into() })
    }

    fn mark(&self, what: &str, ctx: &Ctx) -> io::Result<()> {
        (&*self.file).write_all(format!("{} {what} {}\n", self.process, ctx.workflow_id()).as_bytes())
    }
}

/// Runs a process until it is told to end.
#[must_use]
pub fn main() -> ExitCode {
    let Some(orders) = Orders::from_args(std::env::args().skip(1)) else {
        say("file, marks, name and drain are needed");
        return ExitCode::FAILURE;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
    let ended = match runtime {
        Ok(runtime) => {
            let ended = runtime.block_on(run(&orders));
            // A body that blocks a thread must not keep the process.
            runtime.shutdown_background();
            ended
        }
        Err(error) => Err(error.into()),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(error.message());
            ExitCode::FAILURE
        }
    }
}

fn say(text: &str) {
    // Nothing can be said on an output that is closed.
    let _ = writeln!(stderr(), "{text}");
}

async fn run(orders: &Orders) -> Result<()> {
    warnings::tell(say)?;
    let mut told = signal(SignalKind::terminate())?;
    let store = mainstay::open(&format!("sqlite:{}", orders.file.display())).await?;
    let marks = Marks::open(&orders.marks, &orders.name)?;
    let engine = bodies(Engine::builder(store.clone()), store.env(), &marks)
        .app(APP)
        .executor(orders.name.clone())
        .queue(Queue::new(JOBS).worker_concurrency(PROCESS))
        .settings(settings)
        .launch()
        .await?;
    told.recv().await;
    engine.shutdown(orders.drain).await
}

/// The workflows of the tests.
fn bodies(builder: Builder, env: &Env, marks: &Marks) -> Builder {
    let (env, marks) = (env.clone(), marks.clone());
    let with = move || (env.clone(), marks.clone());
    let (held, block, poison, quick) = (with.clone(), with.clone(), with.clone(), with);
    builder
        .function("held", move |ctx: Ctx, millis: u64| held_for(ctx, millis, held()))
        .function("block", move |ctx: Ctx, millis: u64| {
            let (env, marks) = block();
            async move {
                ctx.step("blocks", || async {
                    marks.mark("begins", &ctx)?;
                    // As code does that knows nothing of tasks.
                    mainstay_env::block_on(env.sleep(Duration::from_millis(millis)));
                    Ok(marks.mark("ends", &ctx)?)
                })
                .await
            }
        })
        .register(
            Registration::function("poison", move |ctx: Ctx| {
                let (_, marks) = poison();
                async move {
                    ctx.step("kills", || async {
                        marks.mark("begins", &ctx)?;
                        std::process::abort();
                        #[allow(unreachable_code, reason = "a step has a value")]
                        Ok(())
                    })
                    .await
                }
            })
            .max_attempts(ATTEMPTS),
        )
        .function("quick", move |ctx: Ctx| {
            let (_, marks) = quick();
            async move { ctx.step("one", || async { Ok(marks.mark("quick", &ctx)?) }).await }
        })
}

/// A step that takes so long, and another one; gives the name of the process.
async fn held_for(ctx: Ctx, millis: u64, (env, marks): (Env, Marks)) -> Result<String> {
    ctx.step("one", || async {
        marks.mark("begins", &ctx)?;
        env.sleep(Duration::from_millis(millis)).await;
        Ok(marks.mark("ends", &ctx)?)
    })
    .await?;
    ctx.step("two", || async { Ok(marks.mark("goes on", &ctx)?) }).await?;
    Ok(marks.process.to_string())
}
