//! The groups of cases. A group may have several files; its name is the first part of its cases' names.

mod bounds;
mod capabilities;
mod claim;
mod drops;
mod eligible;
mod fence;
mod forks;
mod histories;
mod isolation;
mod lease;
mod limits;
mod moves;
mod order;
mod random;
mod reads;
mod registry;
mod restart;
mod seeds;
mod server_time;
mod steps;
mod submit;
mod tick;
mod time;
mod units;
mod wakeups;
mod wakeups_off;

use crate::case::Case;

/// Every case, in order of groups.
pub(crate) fn all() -> Vec<Case> {
    let mut all = [
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
        tick::CASES,
        registry::CASES,
        limits::CASES,
        order::CASES,
        lease::CASES,
        time::CASES,
        server_time::CASES,
        restart::CASES,
        isolation::CASES,
        histories::CASES,
        drops::CASES,
        seeds::CASES,
        random::CASES,
        wakeups::CASES,
        capabilities::CASES,
    ]
    .concat();
    all.extend(wakeups_off::cases(&all));
    all
}
