//! The store contract of mainstay: rows and rules as plain data, nine small traits, units, admission and wrappers.
//!
//! A backend implements the traits of [`contract`] over the types of [`model`] and [`unit`](mod@unit); it takes its decisions about
//! limits from [`admission`]. No driver type appears here, and nothing here reads a clock or a random source.
//! `docs/writing-a-backend.md` is the guide; `mainstay-conformance` is the suite that a backend must pass.

#[macro_use]
mod record;

pub mod admission;
pub mod contract;
pub mod error;
pub mod ext;
pub mod fence;
pub mod model;
mod pass_on;
pub mod unit;
pub mod wakeups;
pub mod wrap;

pub use admission::{Admission, Allowance, Counts, KeyCounts, Local, Needs, Reach, Starts, Stop};
pub use contract::*;
pub use error::{ErrorKind, FieldError, Result, StoreError};
pub use ext::WriteExt;
pub use fence::Fence;
pub use mainstay_env::{Env, Timestamp};
pub use model::*;
pub use unit::{
    Created, Effect, EffectReply, Fork, Joining, Mail, OnExisting, OnHeld, Place, Refusal, Schedule, Submit, Unit,
    UnitReply,
};
pub use wakeups::{Subscription, Wakeup, Wakeups};

/// What the code that [`pass_on!`] writes refers to.
#[doc(hidden)]
pub mod __private {
    pub use async_trait::async_trait;
}
