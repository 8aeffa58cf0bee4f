//! Trouble by seed.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use mainstay_memory::Trouble;
use mainstay_store::{Status, Stop, Store, Wakeup, WriteExt};

use crate::support::{World, enqueued, heard};

/// For each of so many claims, whether it was missed.
fn misses(seed: u64, trouble: Trouble, claims: usize) -> Vec<bool> {
    let world = World::seeded(seed, trouble);
    (0..claims).map(|at| world.claim(&format!("claim {at}")).stop == Stop::Contended).collect()
}

/// For each of so many enqueued rows, how often its hint was heard.
fn echoes(seed: u64, trouble: Trouble, rows: usize) -> Vec<usize> {
    let world = World::seeded(seed, trouble);
    let mut hints = world.memory.wakeups().subscribe();
    let heard_of = |at: usize, hints: &mut _| {
        world.enqueue(&format!("w{at}"));
        let heard = heard(hints);
        assert!(heard.iter().all(|hint| *hint == Wakeup::Queue("orders".into())), "{heard:?}");
        heard.len()
    };
    (0..rows).map(|at| heard_of(at, &mut hints)).collect()
}

#[test]
fn the_same_seed_makes_the_same_trouble_and_another_one_other() {
    let trouble = Trouble::default();
    assert_eq!(misses(5, trouble, 400), misses(5, trouble, 400));
    assert_ne!(misses(5, trouble, 400), misses(6, trouble, 400));
    assert_eq!(echoes(5, trouble, 100), echoes(5, trouble, 100));
    assert_ne!(echoes(5, trouble, 100), echoes(6, trouble, 100));
}

#[test]
fn each_trouble_comes_about_as_often_as_it_is_set() {
    let trouble = Trouble { contended: 0.2, lost: 0.1, doubled: 0.3, yields: true };
    let missed = misses(3, trouble, 1000).into_iter().filter(|missed| *missed).count();
    assert!((150..250).contains(&missed), "{missed} of 1000 claims were missed");
    let echoes = echoes(3, trouble, 1000);
    let times = |wanted: usize| echoes.iter().filter(|heard| **heard == wanted).count();
    assert!((70..130).contains(&times(0)), "{} of 1000 hints were lost", times(0));
    assert!((220..320).contains(&times(2)), "{} of 1000 hints came twice", times(2));
}

#[test]
fn without_trouble_no_claim_is_missed_and_every_hint_comes_once() {
    assert!(misses(3, Trouble::none(), 300).iter().all(|missed| !missed));
    assert!(echoes(3, Trouble::none(), 300).iter().all(|heard| *heard == 1));
    assert!(echoes(3, Trouble::silent(), 300).iter().all(|heard| *heard == 0));
}

#[test]
fn a_missed_claim_takes_nothing() {
    let world = World::new(Trouble { contended: 1.0, ..Trouble::none() });
    world.enqueue("w");
    let claimed = world.claim("c");
    assert_eq!((claimed.stop, claimed.rows.len()), (Stop::Contended, 0));
    assert_eq!(world.memory.rows()[0].status, Status::Enqueued);
}

#[test]
fn a_call_that_is_dropped_has_happened_whole_or_not_at_all() {
    for (polls, rows) in [(1, 0), (2, 1)] {
        let world = World::new(Trouble { lost: 0.0, ..Trouble::default() });
        let mut hints = world.memory.wakeups().subscribe();
        {
            let mut call = pin!(world.memory.submit(enqueued("w")));
            let mut cx = Context::from_waker(Waker::noop());
            for _ in 0..polls {
                assert!(call.as_mut().poll(&mut cx).is_pending(), "it yields before and after its work");
            }
        }
        assert_eq!(world.memory.rows().len(), rows, "after {polls} polls");
        assert_eq!(heard(&mut hints).is_empty(), rows == 0, "what has happened is hinted at");
        assert_eq!(world.memory.check_invariants(), Ok(()));
    }
}
