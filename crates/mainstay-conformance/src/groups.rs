//! The groups of cases. A group may have several files; its name is the first part of its cases' names.

mod bounds;
mod capabilities;
mod claim;
mod eligible;
mod fence;
mod forks;
mod moves;
mod order;
mod reads;
mod steps;
mod submit;
mod units;

use crate::case::Case;

/// Every case, in order of groups.
pub(crate) fn all() -> Vec<Case> {
    [
        reads::CASES,
        submit::CASES,
        moves::CASES,
        forks::CASES,
        units::CASES,
        steps::CASES,
        bounds::CASES,
        fence::CASES,
        claim::CASES,
        eligible::CASES,
        order::CASES,
        capabilities::CASES,
    ]
    .concat()
}
