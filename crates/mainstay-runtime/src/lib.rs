//! The workflow runtime of mainstay: workflows as async functions whose finished steps are never run again.
//!
//! [`Engine::builder`] takes a store, queues and workflows; [`Builder::launch`] starts the queue engine below it and gives
//! an [`Engine`]. A body gets a [`Ctx`], through which everything durable goes: steps, sleeps, children, branches, races.
//! A durable call takes its position when it is made. It has two halves: the first yields a value and rows that are not
//! written yet, the second commits them as one unit; awaiting a call does both, a race commits for its winner.
//!
//! An execution is one task on the caller's runtime: its driver polls the body under a guard that knows whose code runs,
//! asks the pure `Journal` what a call does, and hands units to the recorder, which commits those of all
//! workflows together. Waiting for other workflows goes through one hub. Everything else, such as claims, leases and
//! take-over, is the queue engine's, which hands rows over through its `Launcher`.

mod args;
mod attempt;
mod branch;
mod builder;
mod call;
mod codec;
mod ctx;
mod driver;
mod engine;
mod error;
mod execution;
mod guard;
mod handle;
mod hub;
mod invocation;
mod journal;
mod launcher;
#[doc(hidden)]
pub mod private;
mod queue;
mod race;
mod recorder;
mod registry;
mod retry;
mod shared;
mod sleep;
mod start;
mod step;
mod workflow;

pub use args::Args;
pub use attempt::{Attempt, CallBody, StepBody};
pub use branch::Spawned;
pub use builder::Builder;
pub use call::Call;
pub use codec::{Codec, CodecPart};
pub use ctx::Ctx;
pub use engine::{Engine, IntoStore};
pub use error::{Error, ErrorKind, Result};
pub use handle::{Handle, Wait};
pub use invocation::{Invocation, Named, Target};
pub use mainstay_queue::{Config as Settings, Stats};
pub use mainstay_store::{Collect, ExecutorId, Status, Store, WorkflowId, WorkflowRow};
pub use queue::Queue;
pub use race::Race;
pub use registry::{Finished, IntoRegistration, Registration, Value, WorkflowClosure};
pub use sleep::Sleep;
pub use start::{Run, Start};
pub use step::StepCall;
pub use workflow::Workflow;
