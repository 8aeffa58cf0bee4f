//! Who may run a row: version, application and function; and what a repeated submit changes.

use crate::plan::{Member, New};
use crate::tools::{check, ms, name, row, runs, secs, shop};
use crate::world::World;
use mainstay_store::{Limits, Place, Status, Submit, Unit, VersionName, When, WorkflowId};
use proptest::collection::vec;
use proptest::prelude::*;

fn promote(world: &mut World, version: &'static str) {
    let store = world.client.clone();
    let call = async move {
        let version = VersionName::from(version);
        store.version_register(&"shop".into(), &version).await?;
        store.version_promote(&"shop".into(), &version).await
    };
    world.call(call).expect("promoted");
}

/// The process and version that ran a row.
fn runner(world: &World, id: &WorkflowId) -> Option<String> {
    world.launched().iter().find(|launched| launched.claimed.row.id == *id).map(|launched| launched.run.0.to_string())
}

#[test]
fn versioned_rows_run_on_their_version_and_the_others_on_the_latest() {
    let rows = vec((0..3u8, 0..300u64), 1..20);
    check(40, (any::<u64>(), rows, any::<bool>()), |(seed, rows, second)| {
        let mut world = World::kind(seed);
        world.queue("red", Limits::default());
        // Promotions in the same millisecond are ordered by name alone.
        promote(&mut world, if second { "v1" } else { "v2" });
        world.advance(ms(5));
        promote(&mut world, if second { "v2" } else { "v1" });
        world.serve(Member { version: 0, ..shop() });
        world.serve(Member { version: 1, ..shop() });
        let latest = if second { "p1#1" } else { "p0#1" };
        for (number, (version, gap)) in rows.into_iter().enumerate() {
            world.advance(ms(gap));
            let submit = row(&format!("w{number:02}"), "red");
            let (submit, expected) = match version {
                0 => (submit.version("v1"), "p0#1"),
                1 => (submit.version("v2"), "p1#1"),
                _ => (submit, latest),
            };
            let id = world.enqueue(submit, runs(5));
            world.ended(std::slice::from_ref(&id), secs(5));
            assert_eq!(runner(&world, &id).as_deref(), Some(expected), "{id}");
        }
        world.assert_sound();
    });
}

#[test]
fn a_promotion_moves_unversioned_rows_alone() {
    let mut world = World::kind(12);
    world.queue("red", Limits::default());
    promote(&mut world, "v2");
    world.serve(Member { version: 0, ..shop() });
    let bound = world.enqueue(row("bound", "red").version("v2"), runs(1));
    let free = world.enqueue(row("free", "red"), runs(1));
    world.advance(secs(5));
    assert_eq!((world.status(&bound), world.status(&free)), (Some(Status::Enqueued), Some(Status::Enqueued)));
    promote(&mut world, "v1");
    world.ended(std::slice::from_ref(&free), secs(3));
    world.advance(secs(5));
    assert_eq!(world.status(&bound), Some(Status::Enqueued));
    assert_eq!(world.row(&free).and_then(|row| row.version.clone()), Some(VersionName::from("v1")), "it is bound now");
    world.assert_sound();
}

#[test]
fn an_unowned_row_becomes_its_first_claimers_and_stays_so() {
    check(30, (any::<u64>(), 0..40u64), |(seed, wait)| {
        let mut world = World::kind(seed);
        let internal = mainstay_store::wire::INTERNAL_QUEUE;
        let (one, two) = (world.serve(shop()), world.serve(Member { app: 1, ..shop() }));
        world.advance(ms(wait));
        let submit = Submit::new("free", "alpha", "t", Place::queue(internal));
        let free = world.enqueue(submit, crate::tools::ends(0, crate::plan::End::Never));
        assert!(world.until(secs(3), |world| world.starts(&free).len() == 1));
        let owner = world.row(&free).and_then(|row| row.app.clone()).expect("an owner");
        let winner = if owner == *"shop" { one } else { two };
        world.crash(winner);
        world.advance(secs(40));
        assert_eq!(world.starts(&free).len(), 1, "the other application leaves it alone");
        world.launch(winner);
        assert!(world.until(secs(15), |world| world.starts(&free).len() == 2));
        assert_eq!(world.row(&free).and_then(|row| row.app.clone()), Some(owner));
        world.assert_sound();
    });
}

#[test]
fn a_function_that_only_some_know_is_claimed_by_those_alone() {
    check(30, (any::<u64>(), vec(0..3u8, 1..15)), |(seed, names)| {
        let mut world = World::kind(seed);
        world.queue("red", Limits::default());
        for bit in 0..3 {
            world.serve(Member { names: 1 << bit, ..shop() });
        }
        for (number, bit) in names.into_iter().enumerate() {
            let (id, token) = (format!("w{number:02}"), format!("t{number}"));
            let submit = Submit::new(id, crate::plan::NAMES[usize::from(bit)], token, Place::queue("red"));
            let id = world.enqueue(submit, runs(5));
            world.ended(std::slice::from_ref(&id), secs(3));
            assert_eq!(runner(&world, &id), Some(format!("p{bit}#1")));
        }
        world.assert_sound();
    });
}

#[test]
fn a_submit_that_is_repeated_changes_nothing_and_lengthens_no_delay() {
    check(60, (any::<u64>(), 0..3000u64, 0..4000u64), |(seed, delay, wait)| {
        let mut world = World::kind(seed);
        world.queue("red", Limits::default());
        world.serve(shop());
        let delayed = (delay > 0).then(|| When::In(ms(delay)));
        let place = Place::Queue { name: name("red"), key: None, delay: delayed };
        let submit = Submit::new("a", "alpha", "t", place).app("shop");
        let id = world.enqueue(submit.clone(), runs(100));
        let due = world.now() + ms(delay);
        world.advance(ms(wait));
        let before = world.row(&id).cloned().expect("it is there");
        // The same call again, as after a lost answer: the world runs on meanwhile, but time stands still.
        let memory = world.memory.clone();
        let unit = [Unit::new().effect(submit)];
        let reply = crate::world::instantly(mainstay_store::WriteStore::commit(&memory, &unit)).expect("committed");
        assert!(reply.units[0].as_ref().is_ok_and(|unit| unit.is_done()));
        let mut after = memory.rows().into_iter().find(|row| row.id == id).expect("it is there");
        after.updated_at = before.updated_at;
        assert_eq!(after, before);
        world.ended(std::slice::from_ref(&id), secs(8));
        assert!(world.starts(&id).len() == 1 && world.starts(&id)[0] >= due);
        assert!(world.starts(&id)[0].since(due) <= secs(2), "the delay was not begun anew");
        world.assert_sound();
    });
}

/// Keeps the vocabulary of the random sequences honest: every part of a new row can be drawn and read back.
#[test]
fn rows_of_the_random_sequences_cover_every_owner() {
    let body = runs(1);
    let new = |app, version| New {
        queue: 0,
        name: 0,
        priority: 0,
        delay_ms: 0,
        version,
        app,
        dedup: 0,
        key: 0,
        timeout_ms: 0,
        body,
    };
    assert_eq!(new(0, 1).version(), Some(VersionName::from("v2")));
    assert_eq!((new(1, 1).version(), new(3, 3).app()), (None, None), "a version belongs to one application");
    assert_eq!(new(2, 3).app().expect("an application").as_str(), "absent");
}
