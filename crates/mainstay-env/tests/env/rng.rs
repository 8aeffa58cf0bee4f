//! The tree of random sources.

use mainstay_env::Rng;
use std::collections::BTreeSet;
use std::time::Duration;

fn draws(rng: &Rng) -> Vec<u64> {
    (0..8).map(|_| rng.u64()).collect()
}

#[test]
fn a_seed_gives_the_same_numbers_again_and_another_seed_others() {
    assert_eq!(draws(&Rng::seeded(1)), draws(&Rng::seeded(1)));
    assert_ne!(draws(&Rng::seeded(1)), draws(&Rng::seeded(2)));
}

#[test]
fn the_numbers_of_a_seed_are_fixed_for_good() {
    // A seed in a bug report must replay on every machine and build.
    let rng = Rng::seeded(7).child("queue").child("3");
    assert_eq!(rng.seed(), 8_008_716_477_522_274_268);
    assert_eq!([rng.u64(), rng.u64()], [11_742_375_423_296_325_731, 15_871_691_604_288_176_944]);
}

#[test]
fn a_child_depends_on_the_names_on_the_way_alone() {
    let (fresh, used) = (Rng::seeded(9), Rng::seeded(9));
    draws(&used);
    draws(&used.child("other"));
    assert_eq!(draws(&fresh.child("a").child("b")), draws(&used.child("a").child("b")));
    let seeds: BTreeSet<u64> = [
        fresh.child("a").child("b"),
        fresh.child("b").child("a"),
        fresh.child("ab"),
        fresh.child(""),
        fresh.clone(),
        Rng::seeded(10).child("ab"),
    ]
    .iter()
    .map(Rng::seed)
    .collect();
    assert_eq!(seeds.len(), 6, "every path has a seed of its own");
}

#[test]
fn clones_share_one_stream() {
    let (rng, reference) = (Rng::seeded(4), Rng::seeded(4));
    let clone = rng.clone();
    let mixed: Vec<u64> = (0..8).map(|i| if i % 2 == 0 { rng.u64() } else { clone.u64() }).collect();
    assert_eq!(mixed, draws(&reference));
}

#[test]
fn bounds_hold_and_are_reached() {
    let rng = Rng::seeded(5);
    let below: BTreeSet<u64> = (0..200).map(|_| rng.below(3)).collect();
    assert_eq!(below, BTreeSet::from([0, 1, 2]));
    let between: BTreeSet<i64> = (0..200).map(|_| rng.between(-1, 1)).collect();
    assert_eq!(between, BTreeSet::from([-1, 0, 1]));
    let (lo, hi) = (Duration::from_nanos(5), Duration::from_nanos(7));
    let durations: BTreeSet<Duration> = (0..200).map(|_| rng.between(lo, hi)).collect();
    assert_eq!(durations, BTreeSet::from([lo, Duration::from_nanos(6), hi]));
    assert_eq!((rng.below(0), rng.index(0), rng.between(9, 2)), (0, 0, 9), "empty ranges have an answer");
    assert!(rng.between(Duration::ZERO, Duration::MAX) <= Duration::MAX);
}

#[test]
fn a_chance_is_never_at_zero_always_at_one_and_about_right_between() {
    let rng = Rng::seeded(6);
    assert!((0..1_000).all(|_| !rng.chance(0.0) && rng.chance(1.0)));
    let hits = (0..10_000).filter(|_| rng.chance(0.2)).count();
    assert!((1_800..2_200).contains(&hits), "{hits} of 10,000");
}

#[test]
fn jitter_stays_within_its_factors_and_saturates() {
    let rng = Rng::seeded(8);
    let base = Duration::from_secs(100);
    let drawn: Vec<Duration> = (0..500).map(|_| rng.jitter(base, 0.95, 1.05)).collect();
    assert!(drawn.iter().all(|d| (Duration::from_secs(95)..=Duration::from_secs(105)).contains(d)));
    assert!(drawn.iter().any(|d| *d < base) && drawn.iter().any(|d| *d > base));
    assert_eq!(rng.jitter(Duration::MAX, 1.5, 2.0), Duration::MAX);
}

#[test]
fn a_shuffle_keeps_the_items_and_a_pick_is_one_of_them() {
    let rng = Rng::seeded(3);
    let mut items: Vec<u32> = (0..50).collect();
    rng.shuffle(&mut items);
    assert_ne!(items, (0..50).collect::<Vec<_>>());
    assert!(items.contains(rng.pick(&items).unwrap()));
    items.sort_unstable();
    assert_eq!(items, (0..50).collect::<Vec<_>>());
    assert_eq!(rng.pick::<u32>(&[]), None);
}

#[test]
fn entropy_differs_from_source_to_source() {
    assert_ne!(Rng::from_entropy().seed(), Rng::from_entropy().seed());
}
