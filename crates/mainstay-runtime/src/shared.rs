//! What all parts of one engine share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use mainstay_env::{Env, Tasks};
use mainstay_queue::Dispatch;
use mainstay_store::{AppName, Bounds, Payload, StepName, Store, VersionName, WorkflowId, wire};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::codec::{self, CodecPart, Codecs, Strictness};
use crate::ctx::Ctx;
use crate::error::{Error, ErrorTypes, Result};
use crate::execution::Execution;
use crate::hub::Hub;
use crate::recorder::Recorder;
use crate::registry::{Registry, StoredInput};

/// Most bytes that an error shows of an id that is too long.
const MAX_SHOWN: usize = 64;

/// The parts of one engine. Executions and handles hold it; it holds none of their futures.
pub(crate) struct Shared {
    pub(crate) env: Env,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) app: AppName,
    pub(crate) version: VersionName,
    pub(crate) registry: Registry,
    pub(crate) errors: ErrorTypes,
    pub(crate) strictness: Strictness,
    pub(crate) codecs: Codecs,
    pub(crate) bounds: Bounds,
    pub(crate) recorder: Recorder,
    pub(crate) hub: Hub,
    /// Where bodies run: the runtime of the caller that launched the engine.
    pub(crate) bodies: Tasks,
    pub(crate) serials: AtomicU64,
    pub(crate) stopping: AtomicBool,
    /// Set once the caller's runtime has been seen to have ended.
    pub(crate) bodies_lost: AtomicBool,
    /// Set when a shutdown is through.
    pub(crate) stopped: watch::Sender<bool>,
    dispatch: OnceLock<Dispatch>,
    running: Mutex<BTreeMap<WorkflowId, Arc<Execution>>>,
}

/// What an engine is made of.
pub(crate) struct Parts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) app: AppName,
    pub(crate) version: VersionName,
    pub(crate) registry: Registry,
    pub(crate) errors: ErrorTypes,
    pub(crate) strictness: Strictness,
    pub(crate) codecs: Codecs,
    pub(crate) bounds: Bounds,
    pub(crate) recorder: Recorder,
    pub(crate) hub: Hub,
    pub(crate) bodies: Tasks,
}

impl Shared {
    pub(crate) fn new(parts: Parts) -> Arc<Self> {
        let Parts { store, app, version, registry, errors, strictness, codecs, bounds, recorder, hub, bodies } = parts;
        Arc::new(Self {
            env: store.env().clone(),
            store,
            app,
            version,
            registry,
            errors,
            strictness,
            codecs,
            bounds,
            recorder,
            hub,
            bodies,
            serials: AtomicU64::new(1),
            stopping: AtomicBool::new(false),
            bodies_lost: AtomicBool::new(false),
            stopped: watch::Sender::new(false),
            dispatch: OnceLock::new(),
            running: Mutex::default(),
        })
    }

    pub(crate) fn launched(&self, dispatch: Dispatch) {
        // Set once, by the launch.
        let _ = self.dispatch.set(dispatch);
    }

    /// The queue engine; none before the launch is through.
    pub(crate) fn dispatch(&self) -> Option<&Dispatch> {
        self.dispatch.get()
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<WorkflowId, Arc<Execution>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters an execution, and gives the one of the same workflow that was there.
    pub(crate) fn enter(&self, exec: &Arc<Execution>) -> Option<Arc<Execution>> {
        self.running().insert(exec.id.clone(), exec.clone())
    }

    /// Removes an execution, unless a later one has its place.
    pub(crate) fn leave(&self, exec: &Execution) {
        let left = {
            let mut running = self.running();
            let own = running.get(&exec.id).is_some_and(|other| other.serial == exec.serial);
            own.then(|| running.remove(&exec.id)).flatten()
        };
        if left.is_some() {
            self.hub.left(&exec.id, self.env.monotonic());
        }
        drop(left);
    }

    pub(crate) fn running_here(&self, id: &WorkflowId) -> Option<Arc<Execution>> {
        self.running().get(id).cloned()
    }

    /// All executions, in order of id.
    pub(crate) fn all_running(&self) -> Vec<Arc<Execution>> {
        self.running().values().cloned().collect()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Encodes a value; the error is that of the step or workflow that gave it.
    pub(crate) fn encode<T: Serialize + ?Sized>(&self, value: &T) -> Result<Payload> {
        let payload =
            codec::encode_with(value, self.strictness).map_err(|error| Error::bad_output(error.to_string()))?;
        self.bounds.payload("output", &payload).map_err(|error| Error::bad_output(error.to_string()))?;
        Ok(payload)
    }

    /// Encodes a value and reads it back, as it will be read from the store; `what` names it in the error.
    pub(crate) fn round_trip<T>(&self, what: impl FnOnce() -> String, value: &T) -> Result<(Payload, T)>
    where
        T: Serialize + DeserializeOwned,
    {
        let refused =
            |error: &dyn std::fmt::Display| Error::bad_output(format!("{} cannot be stored: {error}", what()));
        match codec::round_trip(value, self.strictness) {
            Ok((payload, value)) => match self.bounds.payload("size", &payload) {
                Ok(()) => Ok((payload, value)),
                Err(error) => Err(refused(&error)),
            },
            Err(error) => Err(refused(&error)),
        }
    }

    /// As [`Shared::round_trip`], for a step: in the codec that this engine writes with.
    pub(crate) fn step_value<T>(&self, what: impl Fn() -> String, value: &T) -> Result<(Payload, T)>
    where
        T: Serialize + DeserializeOwned,
    {
        let (json, value) = self.round_trip(&what, value)?;
        let stored = self.codecs.stored(Some(&self.codecs.own()), CodecPart::Value, json)?;
        let refused = |error| Error::bad_output(format!("{} cannot be stored: {error}", what()));
        self.bounds.payload("size", &stored).map_err(refused)?;
        Ok((stored, value))
    }

    /// The stored form of a step's recorded error.
    pub(crate) fn step_error(&self, json: Payload) -> Payload {
        self.codecs.stored_error(Some(&self.codecs.own()), json)
    }

    /// An input as JSON, and the codec that it has then.
    pub(crate) fn input(&self, (payload, codec): StoredInput) -> Result<StoredInput> {
        self.codecs.input(payload, codec)
    }

    /// The stored form of an error in portable JSON.
    pub(crate) fn record(&self, error: &Error) -> Payload {
        let unportable = match self.strictness {
            Strictness::Exact => None,
            Strictness::Portable => error.unportable(&self.errors),
        };
        unportable.as_ref().unwrap_or(error).record(&self.errors)
    }

    /// Whether there may be a workflow of this id: what no row can have is not asked of the store, where it would spoil
    /// the read of all that are asked for with it. Errors: `Refused`.
    pub(crate) fn check_id(&self, id: &WorkflowId) -> Result<()> {
        self.bounds.name("id", id.as_str()).map_err(|error| {
            let text = id.as_str();
            let short = &text[..text.floor_char_boundary(MAX_SHOWN)];
            let shown = if short.len() < text.len() { format!("{short}…") } else { text.to_owned() };
            Error::refused(format!("workflow {shown:?}: its id {}", error.detail))
        })
    }

    /// Whether a step may have this name.
    pub(crate) fn check_step_name(&self, name: &StepName) -> Result<()> {
        self.bounds.name("step", name.as_str()).map_err(|error| Error::refused(error.to_string()))?;
        if name.as_str().starts_with(wire::RESERVED_PREFIX) {
            let prefix = wire::RESERVED_PREFIX;
            return Err(Error::refused(format!("step {name:?}: names that begin with {prefix} are the engine's own")));
        }
        Ok(())
    }
}

impl Ctx {
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.exec.shared
    }
}
