//! The suite that defines a mainstay store backend: named cases, a history checker and random comparison with memory.
//!
//! A backend's crate has a test binary of its own (`harness = false`) that calls [`run`] with a factory of [`Backend`]s.
//! Cases are skipped by capability, or for trouble that a backend cannot be brought into; the list of names is the same for
//! every backend. The contract that they hold a
//! backend to is `docs/writing-a-backend.md`.
//!
//! ```no_run
//! # use mainstay_conformance::Backend;
//! # fn mine() -> Box<dyn Backend> { unreachable!("shown for its shape") }
//! fn main() -> std::process::ExitCode {
//!     mainstay_conformance::run("mine", mine)
//! }
//! ```

mod backend;
#[macro_use]
mod case;
#[cfg(test)]
mod broken;
mod clients;
mod desk;
mod groups;
mod history;
#[cfg(test)]
mod names;
mod pass;
mod random;
mod run;
mod trouble;

pub use backend::{Backend, Subject};
pub use case::{Case, Lack, Verdict, cases};
pub use run::{run, trials};
pub use trouble::{Lasting, Trouble};
