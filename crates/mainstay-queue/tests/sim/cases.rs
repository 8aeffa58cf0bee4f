//! Faults that users of other systems reported.

use crate::plan::Member;
use crate::tools::{check, ends, row, runs, secs, shop};
use crate::world::World;
use mainstay_store::{Limits, Place, Refusal, Status, Submit, UnitReply};
use proptest::prelude::*;

/// O02: a row that fails to start must not take its whole batch with it.
#[test]
fn case_o02_nine_of_ten_start_when_the_launch_of_the_third_panics() {
    check(20, (any::<u64>(), 0..10usize), |(seed, bad)| {
        let mut world = World::kind(seed);
        world.queue("red", Limits::default());
        let ids = world.enqueue_many("w", 10, "red", runs(50));
        let process = world.add(shop());
        world.launch(process);
        let up = world.up(process).cloned().expect("it is up");
        up.launcher.poison(&ids[bad]);
        let others: Vec<_> = ids.iter().filter(|id| **id != ids[bad]).cloned().collect();
        assert!(world.until(secs(3), |world| world.launched().len() == 9), "the other nine start");
        let at = world.launched()[0].at;
        assert!(world.launched().iter().all(|launched| launched.at == at), "in one go");
        world.ended(&others, secs(1));
        assert!(world.starts(&ids[bad]).is_empty());
        // The bad one is back on its queue within moments, and runs once its launch succeeds.
        world.ended(&ids, secs(5));
        assert_eq!(world.row(&ids[bad]).map(|row| (row.status, row.attempts)), Some((Status::Success, 2)));
        assert_eq!(world.engine(process).stats().launch_panics, 1);
        world.assert_sound();
    });
}

/// O02: one whose launch always panics is parked after its attempts, and its neighbours never notice.
#[test]
fn case_o02_a_row_whose_launch_always_panics_ends_parked() {
    let mut world = World::kind(2);
    world.queue("red", Limits::default());
    let process = world.serve(shop());
    let up = world.up(process).cloned().expect("it is up");
    (0..20).for_each(|_| up.launcher.poison(&"bad".into()));
    let bad = world.enqueue(row("bad", "red"), runs(1));
    for batch in 0..5 {
        let ids = world.enqueue_many(&format!("w{batch}"), 3, "red", runs(5));
        world.ended(&ids, secs(2));
    }
    world.ended(std::slice::from_ref(&bad), secs(60));
    assert_eq!(world.status(&bad), Some(Status::Parked));
    world.assert_sound();
}

/// O26: one id for two functions: the second is refused, and a crash still recovers the first.
#[test]
fn case_o26_a_second_function_under_one_id_is_refused_and_the_first_recovers() {
    check(20, (any::<u64>(), any::<bool>()), |(seed, before_its_start)| {
        let mut world = World::kind(seed);
        world.queue("red", Limits::default());
        let process = world.add(shop());
        let first = Submit::new("x", "alpha", "t1", Place::queue("red"));
        let second = Submit::new("x", "beta", "t2", Place::queue("red"));
        let conflict = |world: &mut World| {
            let reply = world.submit(second.clone());
            let conflict = Refusal::Conflict { id: "x".into(), name: "alpha".into(), class: None, config: None };
            assert_eq!(reply, UnitReply::Refused { effect: 0, why: conflict });
        };
        let id = world.enqueue(first, ends(0, crate::plan::End::Never));
        if before_its_start {
            conflict(&mut world);
        }
        world.launch(process);
        assert!(world.until(secs(3), |world| world.running("red") == 1));
        conflict(&mut world);
        world.crash(process);
        let other = world.serve(Member { names: 0b011, ..shop() });
        conflict(&mut world);
        assert!(world.until(secs(15), |world| world.running("red") == 1), "the first recovers elsewhere");
        conflict(&mut world);
        world.seen.calm();
        world.ended(std::slice::from_ref(&id), secs(2));
        let last = world.launched().pop().expect("a launch");
        assert_eq!((last.claimed.row.name.as_str(), &*last.run.0), ("alpha", &*format!("p{other}#1")));
        assert_eq!(world.status(&id), Some(Status::Success));
        world.assert_sound();
    });
}
