//! The store in memory: the reference backend of mainstay, and the executable form of its store contract.
//!
//! Ordered maps under one mutex, strict on purpose: what `docs/writing-a-backend.md` forbids is refused here, and no
//! order is ever that of insertion unless the contract says so. [`Memory::open`] is for programs, [`Memory::strict`] for
//! tests: it yields at every call, misses claims and loses hints by seed.
//!
//! A method locks the state, reads the clock once, and does its whole work without a wait; an operation that is refused
//! leaves nothing behind.

mod check;
mod claim;
mod commit;
mod damage;
mod effects;
mod history;
mod index;
mod lease;
mod memory;
mod moves;
mod operation;
mod queue;
#[cfg(test)]
mod random;
mod reads;
mod registry;
mod select;
mod starts;
mod state;
mod submit;
mod tick;
mod tools;
mod trouble;

pub use damage::{Failing, Unreadable};
pub use history::{Flip, FlipKind};
pub use memory::Memory;
pub use trouble::Trouble;
