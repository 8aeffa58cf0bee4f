//! Properties of the lane over random inputs.

use super::lane_model::Judged;
use super::property::{Word, sequences};

#[test]
fn a_due_lane_with_room_has_one_claim_out_for_exactly_that_room() {
    let seen = std::sync::Mutex::new((0, 0, 0));
    sequences(8_000, 1_000_000, |words| {
        let mut judged = Judged::new();
        for word in words {
            judged.act(Word(*word));
        }
        let mut seen = seen.lock().unwrap();
        *seen = (seen.0 + judged.claims, seen.1 + judged.repeats, seen.2 + judged.probes);
    });
    let (claims, repeats, probes) = seen.into_inner().unwrap();
    assert!(
        claims > 50_000 && repeats > 2_000 && probes > 5_000,
        "{claims} claims, {repeats} repeats, {probes} probes"
    );
}
