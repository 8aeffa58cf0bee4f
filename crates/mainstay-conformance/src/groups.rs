//! The groups of cases. A group may have several files; its name is the first part of its cases' names.

mod bounds;
mod capabilities;
mod claim;
mod claim_edges;
mod collection;
mod drops;
mod eligible;
mod errors;
mod fence;
mod forks;
mod hints_more;
mod histories;
mod isolation;
mod lease;
mod lease_edges;
mod limits;
mod moves;
mod order;
mod random;
mod reads;
mod registry;
mod restart;
mod seeds;
mod server_time;
mod stamps;
mod steps;
mod submit;
mod tick;
mod time;
mod units;
mod upkeep;
mod wakeups;
mod wakeups_off;
mod whole_rows;
mod windows;

use crate::case::Case;

/// Every case, in order of groups.
pub(crate) fn all() -> Vec<Case> {
    let mut all = [
        reads::CASES,
        submit::CASES,
        moves::CASES,
        whole_rows::CASES,
        forks::CASES,
        collection::CASES,
        units::CASES,
        steps::CASES,
        bounds::CASES,
        fence::CASES,
        claim::CASES,
        eligible::CASES,
        claim_edges::CASES,
        tick::CASES,
        upkeep::CASES,
        registry::CASES,
        limits::CASES,
        windows::CASES,
        order::CASES,
        lease::CASES,
        lease_edges::CASES,
        time::CASES,
        server_time::CASES,
        stamps::CASES,
        restart::CASES,
        isolation::CASES,
        histories::CASES,
        drops::CASES,
        seeds::CASES,
        random::CASES,
        wakeups::CASES,
        hints_more::CASES,
        capabilities::CASES,
    ]
    .concat();
    all.extend(errors::cases());
    all.extend(wakeups_off::cases(&all));
    all
}
