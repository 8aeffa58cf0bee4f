//! The virtual clock on its own.

use crate::support::Lines;
use mainstay_env::{BoxFuture, Clock, Monotonic, Sim, SimClock, Timestamp};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

struct Named(&'static str, Lines);

impl Wake for Named {
    fn wake(self: Arc<Self>) {
        self.1.push(self.0);
    }
}

fn poll(sleep: &mut BoxFuture<'static, ()>, name: &'static str, lines: &Lines) -> Poll<()> {
    let waker = Waker::from(Arc::new(Named(name, lines.clone())));
    sleep.as_mut().poll(&mut Context::from_waker(&waker))
}

fn clock() -> SimClock {
    SimClock::new(Timestamp::from_millis(1_000))
}

fn at(secs: u64) -> Monotonic {
    Monotonic(Duration::from_secs(secs))
}

#[test]
fn waiters_wake_in_due_order_whatever_the_order_they_came_in() {
    let (clock, lines) = (clock(), Lines::default());
    let mut sleeps = [(3, "third"), (1, "first"), (2, "second"), (3, "fourth"), (9, "late")]
        .map(|(secs, name)| (clock.sleep_until(at(secs)), name));
    for (sleep, name) in &mut sleeps {
        assert_eq!(poll(sleep, name, &lines), Poll::Pending);
    }
    clock.advance(Duration::from_millis(999));
    assert_eq!(lines.take(), [""; 0]);
    clock.advance(Duration::from_secs(4));
    assert_eq!(lines.take(), ["first", "second", "third", "fourth"]);
    assert_eq!((clock.waiters(), clock.next_due()), (1, Some(at(9))));
    assert_eq!(poll(&mut sleeps[1].0, "first", &lines), Poll::Ready(()));
    assert_eq!(poll(&mut sleeps[4].0, "late", &lines), Poll::Pending);
}

#[test]
fn a_dropped_sleep_leaves_no_waiter() {
    let (clock, lines) = (clock(), Lines::default());
    let mut sleep = clock.sleep_until(at(1));
    assert_eq!(poll(&mut sleep, "x", &lines), Poll::Pending);
    assert_eq!(clock.waiters(), 1);
    drop(sleep);
    assert_eq!((clock.waiters(), clock.next_due(), clock.advance_to_next()), (0, None, false));
    clock.advance(Duration::from_secs(2));
    assert_eq!(lines.take(), [""; 0]);
}

#[test]
fn a_sleep_polled_again_wakes_its_latest_waker_alone() {
    let (clock, lines) = (clock(), Lines::default());
    let mut sleep = clock.sleep_until(at(1));
    assert_eq!(poll(&mut sleep, "old", &lines), Poll::Pending);
    assert_eq!(poll(&mut sleep, "new", &lines), Poll::Pending);
    assert_eq!(clock.waiters(), 1);
    assert!(clock.advance_to_next());
    assert_eq!((lines.take(), clock.monotonic()), (vec!["new".to_owned()], at(1)));
}

#[test]
fn a_sleep_until_now_or_the_past_is_ready_at_once() {
    let (clock, lines) = (clock(), Lines::default());
    clock.advance(Duration::from_secs(5));
    assert_eq!(poll(&mut clock.sleep_until(at(5)), "x", &lines), Poll::Ready(()));
    assert_eq!(poll(&mut clock.sleep_until(at(1)), "x", &lines), Poll::Ready(()));
}

#[test]
fn a_far_away_sleep_never_ends_and_is_nobodys_next_due() {
    let (clock, lines) = (clock(), Lines::default());
    let far = Monotonic(Duration::from_millis(u64::MAX));
    for instant in [Monotonic::NEVER, far, clock.monotonic() + Duration::MAX] {
        let mut sleep = clock.sleep_until(instant);
        assert_eq!(poll(&mut sleep, "x", &lines), Poll::Pending);
        assert_eq!(clock.next_due(), None);
    }
}

#[test]
fn a_skew_moves_the_wall_alone_and_clones_share_all() {
    let clock = clock();
    let clone = clock.clone();
    clone.advance(Duration::from_secs(10));
    clone.skew_wall(-500);
    clone.skew_wall(-5_000);
    assert_eq!((clock.now(), clock.monotonic()), (Timestamp::from_millis(5_500), at(10)));
    clock.advance_until(at(4));
    assert_eq!(clone.monotonic(), at(10), "monotonic time does not go back");
}

#[test]
fn a_wakers_own_use_of_the_clock_does_not_lock_up() {
    struct Reads(SimClock, Lines);
    impl Wake for Reads {
        fn wake(self: Arc<Self>) {
            self.1.push(self.0.now().to_string());
        }
    }
    let (clock, lines) = (clock(), Lines::default());
    let waker = Waker::from(Arc::new(Reads(clock.clone(), lines.clone())));
    let mut sleep = clock.sleep_until(at(1));
    assert!(sleep.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    clock.advance(Duration::from_secs(1));
    assert_eq!(lines.take(), ["2000"]);
}

#[test]
fn a_killed_process_leaves_no_waiter_on_the_clock() {
    let sim = Sim::new(1);
    let env = sim.env("a");
    env.tasks().spawn("nap", env.sleep(Duration::from_secs(60)));
    sim.run_until_stalled();
    assert_eq!(sim.clock().waiters(), 1);
    sim.kill("a");
    assert_eq!(sim.clock().waiters(), 0);
}
