//! Building an engine: what it runs, where, and under which names.

use std::fmt;
use std::sync::Arc;

use mainstay_env::Tasks;
use mainstay_queue::{Config, Dispatch};
use mainstay_store::{AppName, Bounds, CodecName, QueueName, Store, VersionName, VersionReply, wrap};
use serde::Serialize;

use crate::codec::{Codec, Codecs, Strictness};
use crate::engine::Engine;
use crate::error::{Error, ErrorTypes, Result};
use crate::hub::{self, Hub};
use crate::launcher::Bodies;
use crate::queue::Queue;
use crate::recorder::Recorder;
use crate::registry::{IntoRegistration, Registration, Registry, WorkflowClosure};
use crate::shared::{Parts, Shared};

/// Lanes of the recorder.
const LANES: usize = 1;

/// An engine that is not launched yet. Nothing is written before the launch.
///
/// ```
/// # use mainstay::prelude::*;
/// # use std::time::Duration;
/// # #[workflow]
/// # async fn double(_ctx: Ctx, number: u64) -> Result<u64> {
/// #     Ok(2 * number)
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let engine = Engine::builder(mainstay::memory())
///     .app("shop")
///     .queue(Queue::new("orders").worker_concurrency(8))
///     .register(double)
///     .launch()
///     .await?;
/// assert_eq!(engine.start(double(4)).queue("orders").await?.result().await?, 8);
/// # engine.shutdown(Duration::from_secs(5)).await
/// # }
/// ```
#[must_use = "an engine does nothing until it is launched"]
pub struct Builder {
    store: Arc<dyn Store>,
    app: Option<AppName>,
    version: Option<VersionName>,
    executor: String,
    queues: Vec<Queue>,
    registrations: Vec<Registration>,
    errors: ErrorTypes,
    strictness: Strictness,
    codecs: Vec<Arc<dyn Codec>>,
    writes: Option<CodecName>,
    bounds: Bounds,
    listen: Option<Vec<QueueName>>,
    max_running: Option<u32>,
    settings: Option<Box<dyn FnOnce(Config) -> Config + Send>>,
}

impl Builder {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            app: None,
            version: None,
            executor: "local".to_owned(),
            queues: Vec::new(),
            registrations: Vec::new(),
            errors: ErrorTypes::default(),
            strictness: Strictness::default(),
            codecs: Vec::new(),
            writes: None,
            bounds: Bounds::default(),
            listen: None,
            max_running: None,
            settings: None,
        }
    }

    /// Name of the application, which owns workflows and queues. Required.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let nameless = Engine::builder(mainstay::memory()).launch().await.unwrap_err();
    /// assert_eq!(nameless.kind(), ErrorKind::Refused);
    /// let engine = Engine::builder(mainstay::memory()).app("shop").launch().await?;
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn app(mut self, name: impl Into<AppName>) -> Self {
        self.app = Some(name.into());
        self
    }

    /// Binds workflows to a version of the code: only processes of the same version continue them.
    ///
    /// Without it the version is `<app>@1`, and new builds continue old work. Unique in the store.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[workflow]
    /// # async fn double(_ctx: Ctx, number: u64) -> Result<u64> {
    /// #     Ok(2 * number)
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let engine = Engine::builder(mainstay::memory()).app("shop").version("v2").register(double).launch().await?;
    /// let row = engine.start(double(4)).await?.row().await?;
    /// assert_eq!(row.version.unwrap(), "v2");
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn version(mut self, version: impl Into<VersionName>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// Name of this process in what it owns; `local` unless set. A part that is new at every launch is added to it.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let engine = Engine::builder(mainstay::memory()).app("shop").executor("web-1").launch().await?;
    /// assert!(engine.executor_id().as_str().starts_with("web-1~"));
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn executor(mut self, name: impl Into<String>) -> Self {
        self.executor = name.into();
        self
    }

    /// Registers a queue at launch.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[workflow]
    /// # async fn double(_ctx: Ctx, number: u64) -> Result<u64> {
    /// #     Ok(2 * number)
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let orders = Queue::new("orders").concurrency(4);
    /// let engine = Engine::builder(mainstay::memory()).app("shop").queue(orders).register(double).launch().await?;
    /// assert_eq!(engine.start(double(4)).queue("orders").await?.result().await?, 8);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn queue(mut self, queue: Queue) -> Self {
        self.queues.push(queue);
        self
    }

    /// Registers a workflow: a `#[workflow]` function, a value that implements [`Workflow`](crate::Workflow), or a
    /// [`Registration`] with options.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// #[workflow]
    /// async fn greet(_ctx: Ctx, name: String) -> Result<String> {
    ///     Ok(format!("hello, {name}"))
    /// }
    /// let engine = Engine::builder(mainstay::memory()).app("shop").register(greet).launch().await?;
    /// assert_eq!(engine.start(greet("ada".to_owned())).await?.result().await?, "hello, ada");
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn register<M>(mut self, workflow: impl IntoRegistration<M>) -> Self {
        self.registrations.push(workflow.registration());
        self
    }

    /// Registers a closure of a [`Ctx`](crate::Ctx) and up to eight arguments under a name.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let greet = |ctx: Ctx, name: String| async move {
    ///     ctx.step("greet", || async { Ok(format!("hello, {name}")) }).await
    /// };
    /// let engine = Engine::builder(mainstay::memory()).app("shop").function("greet", greet).launch().await?;
    /// let call = Invocation::named("greet").arg("ada").returning::<String>();
    /// assert_eq!(engine.start(call).await?.result().await?, "hello, ada");
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn function<M>(mut self, name: &str, body: impl WorkflowClosure<M>) -> Self {
        self.registrations.push(Registration::function(name, body));
        self
    }

    /// Keeps the data of an error type when it is turned into an [`Error`] by `?`.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    /// struct SoldOut {
    ///     left: u32,
    /// }
    /// # impl std::fmt::Display for SoldOut {
    /// #     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { write!(f, "{} left", self.left) }
    /// # }
    /// # impl std::error::Error for SoldOut {}
    /// #[workflow]
    /// async fn buy(_ctx: Ctx) -> Result<()> {
    ///     Ok(Err(SoldOut { left: 3 })?)
    /// }
    /// let engine = Engine::builder(mainstay::memory()).app("shop").error::<SoldOut>().register(buy).launch().await?;
    /// let error = engine.start(buy()).await?.result().await.unwrap_err();
    /// assert_eq!(error.decode::<SoldOut>(), Some(SoldOut { left: 3 }));
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn error<E: std::error::Error + Serialize + 'static>(mut self) -> Self {
        self.errors.register::<E>();
        self
    }

    /// Refuses integers that JavaScript would round, beyond 2^53 - 1: a step or workflow that gives one has failed
    /// ([`BadOutput`](crate::ErrorKind::BadOutput)), also when it is in the code or the data of its error; a start with one in
    /// its arguments or attributes is refused. What another program wrote is read, and recorded by a wait, as it is.
    /// Without it integers are written exactly, those of 128 bits too; other languages, and types of no certain width such
    /// as `serde_json::Value`, read those beyond 64 bits as floats.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// #[workflow]
    /// async fn large(_ctx: Ctx) -> Result<u64> {
    ///     Ok(1 << 60)
    /// }
    /// let engine = Engine::builder(mainstay::memory()).app("shop").strict_portable().register(large).launch().await?;
    /// let error = engine.start(large()).await?.result().await.unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::BadOutput);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn strict_portable(mut self) -> Self {
        self.strictness = Strictness::Portable;
        self
    }

    /// Adds a codec: what is stored under its name can be read. See [`Codec`].
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # use mainstay::{Codec, CodecPart};
    /// # struct Reversed;
    /// # impl Codec for Reversed {
    /// #     fn name(&self) -> &str { "reversed" }
    /// #     fn encode(&self, _: CodecPart, json: &str) -> Result<String> { Ok(json.chars().rev().collect()) }
    /// #     fn decode(&self, _: CodecPart, text: &str) -> Result<String> { Ok(text.chars().rev().collect()) }
    /// # }
    /// # #[workflow]
    /// # async fn double(_ctx: Ctx, number: u64) -> Result<u64> { Ok(2 * number) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let builder = Engine::builder(mainstay::memory()).app("shop").codec(Reversed).register(double);
    /// let engine = builder.launch().await?;
    /// let handle = engine.start(double(4)).codec("reversed").await?;
    /// assert_eq!(handle.result().await?, 8);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn codec(mut self, codec: impl Codec) -> Self {
        self.codecs.push(Arc::new(codec));
        self
    }

    /// Writes inputs and steps with the codec of this name, and with it the outcomes of what is started here;
    /// `portable_json`, which every language reads, unless set.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let unknown = Engine::builder(mainstay::memory()).app("shop").write_with("sealed").launch().await;
    /// assert_eq!(unknown.unwrap_err().kind(), ErrorKind::Refused);
    /// # Ok(())
    /// # }
    /// ```
    pub fn write_with(mut self, codec: impl Into<CodecName>) -> Self {
        self.writes = Some(codec.into());
        self
    }

    /// Most bytes of one input, result or error as it is stored; 16 MiB unless set. What is larger is refused before it is
    /// sent. A store has a cap of its own.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[workflow]
    /// # async fn length(_ctx: Ctx, text: String) -> Result<usize> { Ok(text.len()) }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let builder = Engine::builder(mainstay::memory()).app("shop").max_payload(1024).register(length);
    /// let engine = builder.launch().await?;
    /// let error = engine.start(length("x".repeat(2048))).await.unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Refused);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn max_payload(mut self, bytes: u64) -> Self {
        self.bounds = self.bounds.payload_bytes(bytes);
        self
    }

    /// Serves these queues only, and the internal one.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[workflow]
    /// # async fn double(_ctx: Ctx, number: u64) -> Result<u64> {
    /// #     Ok(2 * number)
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let engine = Engine::builder(mainstay::memory())
    ///     .app("shop")
    ///     .queue(Queue::new("orders"))
    ///     .queue(Queue::new("mail"))
    ///     .listen_queues(["mail"])
    ///     .register(double)
    ///     .launch()
    ///     .await?;
    /// let waiting = engine.start(double(1)).queue("orders").await?;
    /// assert_eq!(engine.start(double(4)).queue("mail").await?.result().await?, 8);
    /// assert_eq!(waiting.status().await?, mainstay::Status::Enqueued);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn listen_queues<Q: Into<QueueName>>(mut self, queues: impl IntoIterator<Item = Q>) -> Self {
        self.listen = Some(queues.into_iter().map(Into::into).collect());
        self
    }

    /// Most executions of this process that do not wait in a durable call; 1,024 unless set.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[workflow]
    /// # async fn double(_ctx: Ctx, number: u64) -> Result<u64> {
    /// #     Ok(2 * number)
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let engine = Engine::builder(mainstay::memory()).app("shop").max_running(1).register(double).launch().await?;
    /// let (first, second) = (engine.start(double(4)).await?, engine.start(double(5)).await?);
    /// assert_eq!((first.result().await?, second.result().await?), (8, 10));
    /// assert!(engine.stats().active <= 1);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn max_running(mut self, most: u32) -> Self {
        self.max_running = Some(most);
        self
    }

    /// Changes the settings of the queue engine: intervals, lease, batch.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[workflow]
    /// # async fn double(_ctx: Ctx, number: u64) -> Result<u64> {
    /// #     Ok(2 * number)
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let engine = Engine::builder(mainstay::memory())
    ///     .app("shop")
    ///     .settings(|settings| settings.batch(8).tick(Duration::from_millis(200)))
    ///     .register(double)
    ///     .launch()
    ///     .await?;
    /// assert_eq!(engine.start(double(4)).await?.result().await?, 8);
    ///
    /// let wrong = Engine::builder(mainstay::memory()).app("shop").settings(|settings| settings.ttl(Duration::ZERO));
    /// assert_eq!(wrong.launch().await.unwrap_err().kind(), ErrorKind::Refused);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub fn settings(mut self, change: impl FnOnce(Config) -> Config + Send + 'static) -> Self {
        self.settings = Some(Box::new(change));
        self
    }

    /// Checks everything, registers version and queues, and starts to work.
    ///
    /// Bodies run on the tokio runtime of the caller. Errors: `Refused` for a setting, before anything is written;
    /// `Conflict` for a version or queue of another application; `Unavailable`.
    ///
    /// ```
    /// # use mainstay::prelude::*;
    /// # use std::time::Duration;
    /// # #[workflow]
    /// # async fn double(_ctx: Ctx, number: u64) -> Result<u64> {
    /// #     Ok(2 * number)
    /// # }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// let twice = Engine::builder(mainstay::memory()).app("shop").register(double).register(double);
    /// assert_eq!(twice.launch().await.unwrap_err().kind(), ErrorKind::Refused);
    ///
    /// let engine = Engine::builder(mainstay::memory()).app("shop").register(double).launch().await?;
    /// assert_eq!(engine.start(double(4)).await?.result().await?, 8);
    /// # engine.shutdown(Duration::from_secs(5)).await
    /// # }
    /// ```
    pub async fn launch(self) -> Result<Engine> {
        let Some(app) = self.app else {
            return Err(Error::refused("app: an application needs a name: `.app(\"shop\")`".to_owned()));
        };
        let version = self.version.unwrap_or_else(|| format!("{app}@1").into());
        let mut registry = Registry::default();
        for registration in self.registrations {
            registry.add(registration)?;
        }
        for queue in &self.queues {
            queue.check(&app)?;
        }
        let mut codecs = Codecs::default();
        for codec in self.codecs {
            codecs.add(codec)?;
        }
        if let Some(name) = self.writes {
            codecs.write_with(name)?;
        }
        let mut config = Config::new(app.clone(), version.clone(), self.executor);
        if let Some(change) = self.settings {
            let named = config.clone();
            config = change(config);
            // Who this is was said elsewhere, and holds for the runtime too.
            (config.app, config.version, config.executor) = (named.app, named.version, named.executor);
        }
        config.max_running = self.max_running.unwrap_or(config.max_running);
        config.listen = self.listen.or(config.listen);
        config.check().map_err(|error| Error::refused(error.to_string()))?;
        let store = wrap::standard(self.store);
        if let VersionReply::Owned(owner) = store.version_register(&app, &version).await.map_err(Error::store)? {
            return Err(Error::conflict(format!("version {version} belongs to the application {owner}")));
        }
        for queue in self.queues {
            queue.register(&*store, &app, &version).await?;
        }
        if registry.keys().next().is_none() {
            tracing::warn!(%app, "no workflow is registered: this process starts and awaits, and runs none");
        }
        let writing = (self.errors, self.strictness, codecs, self.bounds);
        let parts = (app, version, registry, writing);
        start(store, parts, config).await
    }
}

type Named = (AppName, VersionName, Registry, Writing);
type Writing = (ErrorTypes, Strictness, Codecs, Bounds);

/// Starts the tasks of an engine; they are ended again when the lease cannot be had.
async fn start(store: Arc<dyn Store>, named: Named, config: Config) -> Result<Engine> {
    let (app, version, registry, (errors, strictness, codecs, bounds)) = named;
    let env = store.env().clone();
    let tasks = env.tasks().group("runtime");
    let bodies = env.tasks().group("workflow").on_caller();
    let hints = store.wakeups().subscribe();
    let launcher = Bodies::new(registry.registered());
    let hub = Hub::new();
    let recorder = Recorder::start(store.clone(), &tasks, LANES);
    let store_of = store.clone();
    let parts =
        Parts { store: store_of, app, version, registry, errors, strictness, codecs, bounds, recorder, hub, bodies };
    let shared = Shared::new(parts);
    launcher.attach(&shared);
    let hub_task = hub::run(shared.hub.clone(), shared.clone(), store.clone(), env, hints);
    drop(tasks.spawn("hub", hub_task));
    let mut unfinished = Unfinished { tasks: tasks.clone(), finished: false };
    let dispatch = Dispatch::launch(store, launcher, config).await.map_err(Error::store)?;
    unfinished.finished = true;
    shared.launched(dispatch);
    Ok(Engine::new(shared, tasks))
}

/// Ends the tasks of a launch that fails or is dropped on its way.
struct Unfinished {
    tasks: Tasks,
    finished: bool,
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.finished {
            self.tasks.close();
            self.tasks.abort_all();
        }
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("app", &self.app)
            .field("registrations", &self.registrations)
            .field("queues", &self.queues)
            .finish_non_exhaustive()
    }
}
