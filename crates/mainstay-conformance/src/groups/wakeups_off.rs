//! Group `wakeups_off`: a hint is a hint. Cases of the other groups again, on a store whose hints nobody hears.

use crate::case::Case;
use crate::desk::{Desk, Opening};
use crate::pass;

const SILENT: Opening = Opening { wrap: pass::silent, ..Opening::MANUAL };

cases! { "wakeups_off", SILENT;
    no_hint_is_heard;
}

/// One flow of each kind that a hint follows, and those of many clients.
const AGAIN: &[&str] = &[
    "workflows::a_resumed_row_goes_on_from_its_steps",
    "workflows::a_forced_resume_takes_a_pending_row",
    "workflows::a_forked_row_runs_from_the_copied_steps",
    "workflows::a_row_given_back_for_later_is_delayed",
    "units::a_step_and_its_child_commit_together",
    "fence::a_take_over_voids_it",
    "fence::a_passed_deadline_voids_it",
    "claim::a_delayed_row_is_released_when_it_is_due",
    "claim::a_tick_cancels_rows_past_their_deadline",
    "claim::a_repeat_answers_the_same_rows",
    "claim::a_promotion_moves_unversioned_rows",
    "limits::a_tick_gives_the_queues_when_they_changed",
    "limits::an_outcome_frees_a_fleet_slot",
    "limits::a_window_leaves_out_its_first_moment",
    "order::one_at_a_time_is_first_in_first_out",
    "lease::what_was_taken_over_runs_elsewhere",
    "isolation::no_row_is_claimed_twice",
    "isolation::no_enqueue_is_lost",
    "isolation::a_random_history_under_take_overs_has_an_order",
];

/// The cases of the group, made from those of the others.
pub(crate) fn cases(others: &[Case]) -> Vec<Case> {
    let again = |name: &&str| {
        let case = others.iter().find(|case| case.name() == *name);
        case.unwrap_or_else(|| panic!("there is no case {name}")).group("wakeups_off").opening(SILENT)
    };
    CASES.iter().copied().chain(AGAIN.iter().map(again)).collect()
}

async fn no_hint_is_heard(d: &Desk) {
    let mut heard = d.store().wakeups().subscribe();
    let fence = d.claimed("w").await;
    d.settle(&fence, crate::desk::success("end")).await;
    d.register("new", mainstay_store::Limits::default()).await;
    assert_eq!(heard.ready(), None);
}
