//! The groups of cases. A group may have several files; its name is the first part of its cases' names.

mod capabilities;
mod fence;
mod steps;
mod units;

use crate::case::Case;

/// Every case, in order of groups.
pub(crate) fn all() -> Vec<Case> {
    [units::CASES, steps::CASES, fence::CASES, capabilities::CASES].concat()
}
