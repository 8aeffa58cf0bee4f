//! The store's clock.

use std::time::Duration;

use mainstay_memory::Trouble;
use mainstay_store::{Fence, Outcome, Place, StepOutput, StepRow, Submit, Unit, WorkflowStore, WriteExt, WriteStore};

use crate::support::{World, created};

fn started(world: &World, id: &str) -> Fence {
    let submit = Submit::new(id, "checkout", format!("of {id}"), Place::Run("one~1".into()));
    let reply = world.run(async |memory| memory.submit(submit).await);
    created(&reply).fence.clone().expect("a start has a fence")
}

#[test]
fn a_clock_set_back_never_takes_the_store_behind_what_it_has_stored() {
    let world = World::new(Trouble::none());
    let fence = started(&world, "w");
    world.sim.clock().advance(Duration::from_secs(5));
    let step = Unit::by(&fence).step(StepRow::new(0, "charge", StepOutput::Nothing));
    let stepped = world.run(async |memory| memory.commit(&[step]).await).now;
    world.sim.clock().skew_wall(-60_000);
    let ended = world.run(async |memory| memory.commit(&[Unit::by(&fence).outcome(Outcome::Cancelled)]).await);
    assert_eq!(ended.now, stepped, "a checkpoint's stamp counts too");
    assert_eq!(world.memory.rows()[0].completed_at, Some(stepped));
    assert_eq!(world.memory.check_invariants(), Ok(()));
}

#[test]
fn moments_in_the_future_do_not_move_the_clock() {
    let world = World::new(Trouble::none());
    let fence = started(&world, "w");
    let now = mainstay_env::Clock::now(world.sim.clock());
    let hour = Duration::from_secs(3600);
    let delayed = Place::Queue { name: "orders".into(), key: None, delay: Some(hour.into()) };
    let unit = Unit::by(&fence)
        .effect(Submit::new("later", "checkout", "of later", delayed).deadline(hour * 2))
        .step(StepRow::new(0, "sleep", StepOutput::WakeIn(hour)));
    assert_eq!(world.run(async |memory| memory.commit(&[unit]).await).now, now);
    assert_eq!(world.run(async |memory| memory.commit(&[]).await).now, now);
}

#[test]
fn a_refused_unit_leaves_no_stamp() {
    let world = World::new(Trouble::none());
    let before = world.run(async |memory| memory.commit(&[]).await).now;
    world.sim.clock().advance(Duration::from_secs(5));
    let submit = Submit::new("new", "checkout", "of new", Place::queue("orders"));
    let unit = Unit::new().effect(submit).effect(Submit::new("lost", "checkout", "t", Place::Run("gone~1".into())));
    let reply = world.run(async |memory| memory.unit(unit).await);
    assert!(!reply.is_done(), "{reply:?}");
    world.sim.clock().skew_wall(-5_000);
    assert_eq!(world.run(async |memory| memory.commit(&[]).await).now, before);
    let rows = world.run(async |memory| memory.workflow_rows(&["new".into(), "lost".into()]).await);
    assert_eq!(rows, [None, None]);
}
