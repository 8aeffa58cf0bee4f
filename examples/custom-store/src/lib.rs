//! An engine on a store of one's own, from a crate that knows the facade and the store's contract alone.

mod trailed;

pub use trailed::{Entry, Trailed};
