//! Group `fence`: what an execution may write, and that nothing of it can be written once it is over.

use mainstay_store::{Effect, Fence, Outcome, Standing, Status, Unit};

use crate::desk::{APP, Desk, E1, E2, Q, ids, ms, rows, step, success};

cases! { "fence";
    an_outcome_voids_it;
    a_cancel_voids_it;
    a_forced_resume_voids_it;
    a_take_over_voids_it;
    a_give_back_voids_it;
    a_delete_voids_it;
    a_passed_deadline_voids_it;
    parking_voids_it;
    a_late_outcome_changes_nothing;
    a_late_outcome_does_not_touch_the_next_execution;
    a_late_step_changes_nothing;
    a_late_effect_changes_nothing;
    a_late_give_back_changes_nothing;
    a_late_execution_learns_how_the_next_one_ended;
    a_repeated_outcome_is_answered_with_itself;
    a_take_over_voids_a_direct_start;
    executions_of_a_row_never_share_one;
    a_repeat_that_takes_its_row_again_has_another_one;
    a_resumed_row_does_not_go_back_to_an_earlier_one;
    a_row_made_anew_does_not_know_the_old_one;
    an_invented_one_is_void;
    one_of_an_unknown_workflow_finds_it_gone;
    it_lasts_as_long_as_its_execution;
    it_works_after_it_was_written_down_and_read;
    start_stamps_of_a_row_grow_while_the_clock_stands_still;
    another_executor_takes_the_row_with_another_one;
}

/// A claimed row `w` with a recorded step 0.
async fn running(d: &Desk) -> Fence {
    let fence = d.claimed("w").await;
    d.record(&fence, 0, "first").await;
    fence
}

/// Nothing can be written with a fence: neither a step nor an outcome nor an effect.
async fn is_void(d: &Desk, fence: &Fence, by: &Standing) {
    let child = Unit::by(fence).effect(d.job("child"));
    let units = [Unit::by(fence).step(step(7, "late")), Unit::by(fence).outcome(success("late")), child];
    for unit in units {
        assert_eq!(&d.superseded(unit).await, by);
    }
    assert_eq!(d.find("child").await, None, "an effect of a void fence was written");
}

async fn an_outcome_voids_it(d: &Desk) {
    let fence = running(d).await;
    d.settle(&fence, success("end")).await;
    is_void(d, &fence, &Standing::Ended(success("end"))).await;
}

async fn a_cancel_voids_it(d: &Desk) {
    let fence = running(d).await;
    d.cancel("w").await;
    is_void(d, &fence, &Standing::Ended(Outcome::Cancelled)).await;
}

async fn a_forced_resume_voids_it(d: &Desk) {
    let fence = running(d).await;
    d.moved(Effect::Resume { ids: ids(&["w"]), queue: None, force: true }).await;
    is_void(d, &fence, &Standing::Open(Status::Enqueued)).await;
}

async fn a_take_over_voids_it(d: &Desk) {
    let fence = running(d).await;
    assert_eq!(d.take_over(E1).await, ["w"]);
    is_void(d, &fence, &Standing::Open(Status::Enqueued)).await;
}

async fn a_give_back_voids_it(d: &Desk) {
    let fence = running(d).await;
    d.done(Unit::by(&fence).effect(Effect::GiveBack { delay: Some(ms(5)), begun: true })).await;
    is_void(d, &fence, &Standing::Open(Status::Delayed)).await;
}

async fn a_delete_voids_it(d: &Desk) {
    let fence = running(d).await;
    d.delete("w").await;
    is_void(d, &fence, &Standing::Gone).await;
}

async fn a_passed_deadline_voids_it(d: &Desk) {
    d.put(d.job("w").timeout(ms(50))).await;
    let fence = d.take_one().await.fence;
    d.pass(100);
    d.tick().await;
    is_void(d, &fence, &Standing::Ended(Outcome::Cancelled)).await;
}

async fn parking_voids_it(d: &Desk) {
    let fence = running(d).await;
    let parked = Outcome::Parked("\"cannot be replayed\"".into());
    d.settle(&fence, parked.clone()).await;
    is_void(d, &fence, &Standing::Ended(parked)).await;
}

async fn a_late_outcome_changes_nothing(d: &Desk) {
    let fence = running(d).await;
    d.cancel("w").await;
    let before = d.row("w").await;
    d.pass(10);
    assert_eq!(d.superseded(Unit::by(&fence).outcome(success("late"))).await, Standing::Ended(Outcome::Cancelled));
    assert_eq!(d.row("w").await, before);
    assert_eq!(d.standing("w").await, Standing::Ended(Outcome::Cancelled));
}

async fn a_late_outcome_does_not_touch_the_next_execution(d: &Desk) {
    let first = running(d).await;
    d.give_back(&first).await;
    let second = d.take_one().await.fence;
    assert_eq!(d.superseded(Unit::by(&first).outcome(success("late"))).await, Standing::Open(Status::Pending));
    assert_eq!(d.status("w").await, Status::Pending);
    d.settle(&second, success("second")).await;
    assert_eq!(d.standing("w").await, Standing::Ended(success("second")));
}

async fn a_late_step_changes_nothing(d: &Desk) {
    let first = running(d).await;
    d.give_back(&first).await;
    let second = d.take_one().await.fence;
    d.superseded(Unit::by(&first).step(step(1, "late"))).await;
    d.record(&second, 1, "second").await;
    assert_eq!(d.values("w").await, [(0, "first".to_owned()), (1, "second".to_owned())]);
}

async fn a_late_effect_changes_nothing(d: &Desk) {
    let fence = running(d).await;
    d.enqueue("other").await;
    d.cancel("w").await;
    let cancel = Effect::Cancel { ids: ids(&["other"]), children: false };
    d.superseded(Unit::by(&fence).effect(d.job("child")).effect(cancel)).await;
    assert_eq!((d.find("child").await, d.status("other").await), (None, Status::Enqueued));
}

async fn a_late_give_back_changes_nothing(d: &Desk) {
    let first = running(d).await;
    d.give_back(&first).await;
    d.take_one().await;
    let by = d.superseded(Unit::by(&first).effect(Effect::GiveBack { delay: None, begun: true })).await;
    assert_eq!((by, d.status("w").await), (Standing::Open(Status::Pending), Status::Pending));
}

async fn a_late_execution_learns_how_the_next_one_ended(d: &Desk) {
    let first = running(d).await;
    d.take_over(E1).await;
    let second = d.take(d.claim_by(E2)).await.rows.remove(0).fence;
    d.settle(&second, success("second")).await;
    let late = Unit::by(&first).step(step(1, "late")).outcome(success("first"));
    assert_eq!(d.superseded(late).await, Standing::Ended(success("second")));
    assert_eq!(d.values("w").await.len(), 1);
}

async fn a_repeated_outcome_is_answered_with_itself(d: &Desk) {
    let fence = running(d).await;
    let unit = Unit::by(&fence).outcome(success("end"));
    d.done(unit.clone()).await;
    assert_eq!(d.superseded(unit).await, Standing::Ended(success("end")));
}

async fn a_take_over_voids_a_direct_start(d: &Desk) {
    let fence = d.start("w").await;
    assert_eq!(d.take_over(E1).await, ["w"]);
    is_void(d, &fence, &Standing::Open(Status::Enqueued)).await;
}

async fn executions_of_a_row_never_share_one(d: &Desk) {
    d.enqueue("w").await;
    let mut seen: Vec<Fence> = Vec::new();
    for _ in 0..8 {
        let fence = d.take_one().await.fence;
        assert!(!seen.contains(&fence), "{fence:?} was issued twice");
        d.give_back(&fence).await;
        seen.push(fence);
    }
    for fence in &seen {
        is_void(d, fence, &Standing::Open(Status::Enqueued)).await;
    }
}

/// A claim sent again takes rows anew when it holds none: its token comes twice, and its fence must not.
async fn a_repeat_that_takes_its_row_again_has_another_one(d: &Desk) {
    d.enqueue("w").await;
    let claim = d.claim();
    let first = d.take(claim.clone()).await.rows.remove(0).fence;
    d.give_back(&first).await;
    let second = d.take(claim.repeat(true)).await.rows.remove(0).fence;
    assert_ne!(first, second);
    is_void(d, &first, &Standing::Open(Status::Pending)).await;
    d.settle(&second, success("end")).await;
}

async fn a_resumed_row_does_not_go_back_to_an_earlier_one(d: &Desk) {
    let first = d.claimed("w").await;
    d.moved(Effect::Resume { ids: ids(&["w"]), queue: Some(Q.into()), force: true }).await;
    let second = d.take_one().await;
    assert_eq!(second.row.attempts, 1, "a resume counts attempts from 0");
    assert_ne!(first, second.fence);
    is_void(d, &first, &Standing::Open(Status::Pending)).await;
}

async fn a_row_made_anew_does_not_know_the_old_one(d: &Desk) {
    let first = d.start("w").await;
    d.delete("w").await;
    d.pass(1);
    let second = d.start("w").await;
    assert_ne!(first, second);
    is_void(d, &first, &Standing::Open(Status::Pending)).await;
}

async fn an_invented_one_is_void(d: &Desk) {
    running(d).await;
    for raw in ["", "nonsense", "0"] {
        is_void(d, &Fence::issue("w".into(), raw), &Standing::Open(Status::Pending)).await;
    }
}

async fn one_of_an_unknown_workflow_finds_it_gone(d: &Desk) {
    let fence = running(d).await;
    is_void(d, &Fence::issue("nobody".into(), fence.raw()), &Standing::Gone).await;
}

async fn it_lasts_as_long_as_its_execution(d: &Desk) {
    let fence = running(d).await;
    for position in 1..4 {
        d.pass(86_400_000);
        d.tick().await;
        d.record(&fence, position, "more").await;
    }
    d.settle(&fence, success("end")).await;
}

async fn it_works_after_it_was_written_down_and_read(d: &Desk) {
    let fence = running(d).await;
    let text = serde_json::to_string(&fence).expect("written");
    let read: Fence = serde_json::from_str(&text).expect("read");
    assert_eq!(read, fence);
    d.settle(&read, success("end")).await;
}

async fn start_stamps_of_a_row_grow_while_the_clock_stands_still(d: &Desk) {
    d.enqueue("w").await;
    let mut last = d.row("w").await.created_at;
    for _ in 0..5 {
        let claimed = d.take_one().await;
        let started = claimed.row.started_at.expect("a start stamp");
        assert!(started > last, "{started} is not after {last}");
        assert_eq!(claimed.row.updated_at, started);
        d.give_back(&claimed.fence).await;
        last = started;
    }
}

async fn another_executor_takes_the_row_with_another_one(d: &Desk) {
    let first = running(d).await;
    d.give_back(&first).await;
    let claimed = d.take(d.claim_by(E2)).await;
    assert_eq!(rows(&claimed), ["w"]);
    assert_ne!(claimed.rows[0].fence, first);
    assert_eq!(claimed.rows[0].row.app, Some(APP.into()));
    d.settle(&claimed.rows[0].fence, success("end")).await;
}
