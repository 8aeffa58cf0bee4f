//! Building an engine: what it runs, where, and under which names.

use std::fmt;
use std::sync::Arc;

use mainstay_env::Tasks;
use mainstay_queue::{Config, Dispatch};
use mainstay_store::{AppName, QueueName, Store, VersionName, VersionReply, wrap};
use serde::Serialize;

use crate::codec::Strictness;
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
            listen: None,
            max_running: None,
            settings: None,
        }
    }

    /// Name of the application, which owns workflows and queues. Required.
    pub fn app(mut self, name: impl Into<AppName>) -> Self {
        self.app = Some(name.into());
        self
    }

    /// Binds workflows to a version of the code: only processes of the same version continue them.
    ///
    /// Without it the version is `<app>@1`, and new builds continue old work. Unique in the store.
    pub fn version(mut self, version: impl Into<VersionName>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// Name of this process in what it owns; `local` unless set. A part that is new at every launch is added to it.
    pub fn executor(mut self, name: impl Into<String>) -> Self {
        self.executor = name.into();
        self
    }

    /// Registers a queue at launch.
    pub fn queue(mut self, queue: Queue) -> Self {
        self.queues.push(queue);
        self
    }

    /// Registers a workflow: a `#[workflow]` function, a value that implements [`Workflow`](crate::Workflow), or a
    /// [`Registration`] with options.
    pub fn register<M>(mut self, workflow: impl IntoRegistration<M>) -> Self {
        self.registrations.push(workflow.registration());
        self
    }

    /// Registers a closure of a [`Ctx`](crate::Ctx) and up to eight arguments under a name.
    pub fn function<M>(mut self, name: &str, body: impl WorkflowClosure<M>) -> Self {
        self.registrations.push(Registration::function(name, body));
        self
    }

    /// Keeps the data of an error type when it is turned into an [`Error`] by `?`.
    pub fn error<E: std::error::Error + Serialize + 'static>(mut self) -> Self {
        self.errors.register::<E>();
        self
    }

    /// Refuses integers that JavaScript would round: a step or workflow that gives one has failed.
    pub fn strict_portable(mut self) -> Self {
        self.strictness = Strictness::Portable;
        self
    }

    /// Serves these queues only, and the internal one.
    pub fn listen_queues<Q: Into<QueueName>>(mut self, queues: impl IntoIterator<Item = Q>) -> Self {
        self.listen = Some(queues.into_iter().map(Into::into).collect());
        self
    }

    /// Most executions of this process that do not wait in a durable call; 1,024 unless set.
    pub fn max_running(mut self, most: u32) -> Self {
        self.max_running = Some(most);
        self
    }

    /// Changes the settings of the queue engine: intervals, lease, batch.
    pub fn settings(mut self, change: impl FnOnce(Config) -> Config + Send + 'static) -> Self {
        self.settings = Some(Box::new(change));
        self
    }

    /// Checks everything, registers version and queues, and starts to work.
    ///
    /// Bodies run on the tokio runtime of the caller. Errors: `Refused` for a setting, before anything is written;
    /// `Conflict` for a version or queue of another application; `Unavailable`.
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
        let mut config = Config::new(app.clone(), version.clone(), self.executor);
        if let Some(most) = self.max_running {
            config.max_running = most;
        }
        config.listen = self.listen;
        if let Some(change) = self.settings {
            config = change(config);
        }
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
        let parts = (app, version, registry, self.errors, self.strictness);
        start(store, parts, config).await
    }
}

type Named = (AppName, VersionName, Registry, ErrorTypes, Strictness);

/// Starts the tasks of an engine; they are ended again when the lease cannot be had.
async fn start(store: Arc<dyn Store>, named: Named, config: Config) -> Result<Engine> {
    let (app, version, registry, errors, strictness) = named;
    let env = store.env().clone();
    let tasks = env.tasks().group("runtime");
    let bodies = env.tasks().group("workflow").on_caller();
    let hints = store.wakeups().subscribe();
    let launcher = Bodies::new(registry.registered());
    let hub = Hub::new();
    let recorder = Recorder::start(store.clone(), &tasks, LANES);
    let parts = Parts { store: store.clone(), app, version, registry, errors, strictness, recorder, hub, bodies };
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
