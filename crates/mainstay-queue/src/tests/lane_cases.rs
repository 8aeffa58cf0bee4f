//! What a lane does in single situations, with its figures.

use std::time::Duration;

use mainstay_env::Monotonic;
use mainstay_store::{ErrorKind, Queue, Reach, Revision, Stop};

use crate::{Due, Lane, LaneEffect, LaneInput, LaneOutput, Pace, Plan, Room};

const MILLI: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// A lane that has just claimed, with its clock and its room.
struct Bench {
    lane: Lane,
    now: Monotonic,
    room: Room,
}

impl Bench {
    fn claimed() -> Self {
        let plan = Plan { revision: Some(Revision(1)), worker: Some(10), polling: SECOND };
        let lane = Lane::new(Pace { batch: 4, cooldown: 5 * MILLI }, plan);
        let mut bench = Self { lane, now: Monotonic(100 * SECOND), room: Room { process: 100, running: 0 } };
        assert_eq!(bench.step(LaneInput::Look).effects, [LaneEffect::Probe]);
        assert_eq!(bench.step(LaneInput::Probed(Due::Yes)).effects, [claim(4)]);
        bench
    }

    fn step(&mut self, input: LaneInput) -> LaneOutput {
        self.lane.step(self.now, self.room, 0.5, input)
    }

    fn after(&mut self, time: Duration, input: LaneInput) -> LaneOutput {
        self.now = self.now + time;
        self.step(input)
    }

    fn wait(&self, output: &LaneOutput) -> Option<Duration> {
        output.until.map(|until| until.since(self.now))
    }
}

fn claim(budget: u32) -> LaneEffect {
    LaneEffect::Claim { budget, repeat: false }
}

#[test]
fn a_full_batch_is_followed_by_the_next_after_the_cooldown() {
    let mut bench = Bench::claimed();
    let output = bench.after(2 * MILLI, LaneInput::Replied(Stop::More));
    assert_eq!((output.effects.as_slice(), bench.wait(&output)), (&[][..], Some(3 * MILLI)));
    assert_eq!(bench.after(3 * MILLI, LaneInput::Look).effects, [claim(4)]);
}

#[test]
fn a_drained_queue_is_left_to_the_poll_timer() {
    let mut bench = Bench::claimed();
    let output = bench.after(MILLI, LaneInput::Replied(Stop::Drained));
    assert_eq!(bench.wait(&output), Some(SECOND));
    assert!(bench.step(LaneInput::Freed).effects.is_empty(), "a freed slot brings no rows");
    assert_eq!(bench.after(SECOND, LaneInput::Look).effects, [LaneEffect::Probe]);
    let output = bench.step(LaneInput::Probed(Due::No));
    assert_eq!((output.effects.as_slice(), bench.wait(&output)), (&[][..], Some(SECOND)));
}

#[test]
fn a_full_queue_claims_when_a_slot_comes_free_and_for_that_slot() {
    let mut bench = Bench::claimed();
    bench.room.running = 10;
    let output = bench.after(MILLI, LaneInput::Replied(Stop::Limit(Reach::Process)));
    assert_eq!(output.until, None, "only a slot or a new limit changes anything");
    bench.room.running = 9;
    assert_eq!(bench.after(SECOND, LaneInput::Freed).effects, [claim(1)]);
}

#[test]
fn a_fleet_limit_waits_for_a_slot_or_a_hint() {
    for (input, claims) in [(LaneInput::Freed, true), (LaneInput::Wakeup, true), (LaneInput::Look, false)] {
        let mut bench = Bench::claimed();
        bench.step(LaneInput::Replied(Stop::Limit(Reach::Fleet)));
        let output = bench.after(10 * MILLI, input);
        assert_eq!(output.effects == [claim(4)], claims);
    }
}

#[test]
fn a_slot_freed_while_a_claim_is_out_is_not_forgotten() {
    let mut bench = Bench::claimed();
    bench.step(LaneInput::Freed);
    assert_eq!(bench.after(9 * MILLI, LaneInput::Replied(Stop::Limit(Reach::Fleet))).effects, [claim(4)]);
}

#[test]
fn a_full_window_sets_an_exact_timer_that_hints_do_not_shorten() {
    let mut bench = Bench::claimed();
    let output = bench.step(LaneInput::Replied(Stop::RateIn(1_234 * MILLI)));
    assert_eq!(bench.wait(&output), Some(1_234 * MILLI));
    let output = bench.after(234 * MILLI, LaneInput::Wakeup);
    assert_eq!((output.effects.as_slice(), bench.wait(&output)), (&[][..], Some(SECOND)));
    assert_eq!(bench.after(SECOND, LaneInput::Look).effects, [claim(4)]);
}

#[test]
fn a_raised_limit_takes_effect_at_once() {
    let mut bench = Bench::claimed();
    bench.step(LaneInput::Replied(Stop::RateIn(3600 * SECOND)));
    let plan = Plan { revision: Some(Revision(2)), worker: Some(20), polling: SECOND };
    assert_eq!(bench.after(SECOND, LaneInput::Published(Some(plan))).effects, [claim(4)]);
}

#[test]
fn a_missed_lock_is_tried_again_eight_times_and_then_left_to_the_timer() {
    let mut bench = Bench::claimed();
    for _ in 0..8 {
        let output = bench.step(LaneInput::Replied(Stop::Contended));
        let wait = bench.wait(&output).unwrap();
        assert!((5 * MILLI..50 * MILLI).contains(&wait), "{wait:?}");
        assert_eq!(bench.after(wait, LaneInput::Look).effects, [claim(4)]);
    }
    let output = bench.step(LaneInput::Replied(Stop::Contended));
    assert_eq!(bench.wait(&output), Some(2 * SECOND), "the timer is stretched");
    assert_eq!(bench.after(10 * MILLI, LaneInput::Wakeup).effects, [claim(4)], "a hint does not care for the timer");
}

#[test]
fn a_stale_plan_is_replaced_and_the_claim_sent_again_at_once() {
    let mut bench = Bench::claimed();
    let mut queue = Queue::new("q", Revision(7));
    queue.stored.worker_concurrency = Some(2);
    assert_eq!(bench.step(LaneInput::Replied(Stop::Stale(Box::new(queue)))).effects, [claim(2)]);
    assert_eq!(bench.lane.plan().unwrap().revision, Some(Revision(7)));
}

#[test]
fn a_store_that_answers_stale_for_ever_is_not_asked_without_pause() {
    let mut bench = Bench::claimed();
    let queue = Queue::new("q", Revision(1));
    let output = bench.step(LaneInput::Replied(Stop::Stale(Box::new(queue))));
    assert_eq!((output.effects.as_slice(), bench.wait(&output)), (&[][..], Some(5 * MILLI)));
}

#[test]
fn a_lost_answer_is_asked_for_again_and_never_replaced() {
    for kind in [ErrorKind::Unavailable, ErrorKind::Timeout] {
        let mut bench = Bench::claimed();
        let output = bench.step(LaneInput::Failed(kind));
        assert_eq!((output.effects.as_slice(), bench.wait(&output)), (&[][..], Some(100 * MILLI)));
        assert!(bench.step(LaneInput::Wakeup).effects.is_empty());
        let repeat = LaneEffect::Claim { budget: 4, repeat: true };
        assert_eq!(bench.after(100 * MILLI, LaneInput::Look).effects, [repeat]);
        let output = bench.step(LaneInput::Failed(kind));
        assert_eq!(bench.wait(&output), Some(200 * MILLI));
        assert_eq!(bench.after(SECOND, LaneInput::Published(None)).effects, [repeat], "even when the queue is gone");
        assert_eq!(bench.step(LaneInput::Replied(Stop::NoQueue)).effects, [LaneEffect::End]);
    }
}

#[test]
fn a_refused_claim_backs_off_the_timer_and_holds_hints_off_briefly() {
    let mut bench = Bench::claimed();
    let output = bench.step(LaneInput::Failed(ErrorKind::Denied));
    assert_eq!(bench.wait(&output), Some(2 * SECOND));
    let output = bench.step(LaneInput::Wakeup);
    assert_eq!((output.effects.as_slice(), bench.wait(&output)), (&[][..], Some(100 * MILLI)));
}

#[test]
fn a_process_without_a_place_waits_for_one() {
    let mut bench = Bench::claimed();
    bench.room.process = 0;
    let output = bench.step(LaneInput::Replied(Stop::More));
    bench.now = bench.now + SECOND;
    let waiting = bench.step(LaneInput::Look);
    assert_eq!((output.effects.len(), waiting.until, waiting.standing), (0, None, crate::Standing::Wait));
    bench.room.process = 3;
    assert_eq!(bench.step(LaneInput::Look).effects, [claim(3)]);
}

#[test]
fn a_lost_lease_asks_for_a_new_one_and_claims_under_it() {
    let mut bench = Bench::claimed();
    assert_eq!(bench.step(LaneInput::Replied(Stop::Unleased)).effects, [LaneEffect::Renew]);
    assert!(bench.after(SECOND, LaneInput::Wakeup).effects.is_empty());
    assert_eq!(bench.step(LaneInput::Renewed).effects, [claim(4)]);
}

#[test]
fn a_queue_that_left_the_set_ends_its_lane_after_the_claim_that_is_out() {
    let mut bench = Bench::claimed();
    assert!(bench.step(LaneInput::Published(None)).effects.is_empty());
    assert_eq!(bench.step(LaneInput::Replied(Stop::More)).effects, [LaneEffect::End]);
}

#[test]
fn after_the_stop_no_claim_begins_not_even_a_repeat() {
    let mut bench = Bench::claimed();
    bench.step(LaneInput::Failed(ErrorKind::Unavailable));
    assert_eq!(bench.step(LaneInput::Stop).effects, [LaneEffect::End]);
    for input in [LaneInput::Wakeup, LaneInput::Renewed, LaneInput::Look] {
        assert_eq!(
            bench.after(SECOND, input),
            LaneOutput { effects: vec![], until: None, standing: crate::Standing::Leave }
        );
    }
}

#[test]
fn polls_within_half_an_interval_join_a_probe_that_goes_out() {
    let mut bench = Bench::claimed();
    bench.step(LaneInput::Replied(Stop::Drained));
    assert!(!bench.lane.join(bench.now + 400 * MILLI, bench.room));
    assert!(bench.lane.join(bench.now + 600 * MILLI, bench.room));
    assert!(bench.lane.is_probing());
}
