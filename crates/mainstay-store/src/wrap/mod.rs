//! Wrappers around a store, in fixed order: trace, retry, deadline, faults.
