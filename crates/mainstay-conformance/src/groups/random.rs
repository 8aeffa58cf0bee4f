//! Group `random`: lists of random operations, one case for each part of the contract that they press on.

use crate::desk::Desk;
use crate::random::{Weights, agrees};

cases! { "random";
    submits_and_moves_agree_with_memory;
    units_of_executions_agree_with_memory;
    batches_agree_with_memory;
    claims_agree_with_memory;
    limits_agree_with_memory;
    leases_agree_with_memory;
    delays_and_deadlines_agree_with_memory;
    a_registry_under_change_agrees_with_memory;
    a_jumping_clock_agrees_with_memory;
    everything_agrees_with_memory;
}

const EVEN: Weights = Weights {
    time: 4,
    skew: 0,
    submits: 12,
    units: 10,
    batches: 3,
    claims: 10,
    leases: 1,
    ticks: 3,
    registry: 1,
    reads: 2,
};

async fn submits_and_moves_agree_with_memory(d: &Desk) {
    let weights = Weights { units: 20, claims: 6, ..EVEN };
    agrees(d, "random::submits_and_moves_agree_with_memory", weights);
}

async fn units_of_executions_agree_with_memory(d: &Desk) {
    let weights = Weights { units: 24, claims: 14, registry: 0, ..EVEN };
    agrees(d, "random::units_of_executions_agree_with_memory", weights);
}

async fn batches_agree_with_memory(d: &Desk) {
    let weights = Weights { batches: 24, units: 2, registry: 0, ..EVEN };
    agrees(d, "random::batches_agree_with_memory", weights);
}

async fn claims_agree_with_memory(d: &Desk) {
    let weights = Weights { claims: 24, submits: 16, registry: 2, ..EVEN };
    agrees(d, "random::claims_agree_with_memory", weights);
}

async fn limits_agree_with_memory(d: &Desk) {
    let weights = Weights { claims: 20, submits: 16, registry: 8, time: 8, ..EVEN };
    agrees(d, "random::limits_agree_with_memory", weights);
}

async fn leases_agree_with_memory(d: &Desk) {
    let weights = Weights { leases: 10, claims: 20, ..EVEN };
    agrees(d, "random::leases_agree_with_memory", weights);
}

async fn delays_and_deadlines_agree_with_memory(d: &Desk) {
    let weights = Weights { ticks: 14, time: 10, ..EVEN };
    agrees(d, "random::delays_and_deadlines_agree_with_memory", weights);
}

async fn a_registry_under_change_agrees_with_memory(d: &Desk) {
    let weights = Weights { registry: 20, claims: 10, ticks: 8, ..EVEN };
    agrees(d, "random::a_registry_under_change_agrees_with_memory", weights);
}

async fn a_jumping_clock_agrees_with_memory(d: &Desk) {
    let weights = Weights { skew: 8, time: 6, ticks: 6, ..EVEN };
    agrees(d, "random::a_jumping_clock_agrees_with_memory", weights);
}

async fn everything_agrees_with_memory(d: &Desk) {
    agrees(d, "random::everything_agrees_with_memory", Weights { skew: 1, registry: 3, reads: 6, ..EVEN });
}
