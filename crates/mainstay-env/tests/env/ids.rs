//! UUIDv7 texts and nonces.

use mainstay_env::{Env, Rng, Sim, SimClock, Timestamp};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

fn ids(env: &Env, count: usize) -> Vec<String> {
    (0..count).map(|_| env.ids().uuid()).collect()
}

fn assert_increasing(ids: &[String]) {
    for pair in ids.windows(2) {
        assert!(pair[0] < pair[1], "{} is not below {}", pair[0], pair[1]);
    }
}

#[test]
fn an_id_is_a_version_7_uuid_of_the_clocks_millisecond() {
    let sim = Sim::starting_at(1, Timestamp::from_millis(0x0123_4567_89ab));
    for id in ids(&sim.env("a"), 100) {
        assert_eq!((id.len(), &id[..15], &id[18..19], &id[23..24]), (36, "01234567-89ab-7", "-", "-"), "{id}");
        assert!(matches!(&id[19..20], "8" | "9" | "a" | "b"), "variant of {id}");
        let digits = id.bytes().filter(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')).count();
        assert_eq!(digits, 32, "{id}");
    }
}

#[test]
fn ids_grow_while_the_clock_stands_still_goes_back_and_moves_on() {
    let sim = Sim::new(2);
    let env = sim.env("a");
    let mut all = ids(&env, 3_000);
    sim.clock().skew_wall(-86_400_000);
    all.extend(ids(&env, 3_000));
    sim.clock().skew_wall(2 * 86_400_000);
    all.extend(ids(&env, 24));
    for _ in 0..24 {
        sim.clock().advance(Duration::from_millis(1));
        all.extend(ids(&env, 24));
    }
    assert_increasing(&all);
}

#[test]
fn a_clock_before_the_epoch_still_gives_growing_ids() {
    let sim = Sim::starting_at(3, Timestamp::from_millis(-5_000));
    let all = ids(&sim.env("a"), 100);
    assert!(all[0].starts_with("00000000-0000-7"), "{}", all[0]);
    assert_increasing(&all);
}

#[test]
fn clones_with_another_clock_or_source_stay_in_one_order_without_doubles() {
    let sim = Sim::new(4);
    let env = sim.env("a");
    let clocked = env.with_clock(Arc::new(SimClock::new(Timestamp::from_millis(5))));
    let seeded = env.with_rng(Rng::seeded(99));
    let all: Vec<String> = (0..300).map(|i| [&env, &clocked, &seeded][i % 3].ids().uuid()).collect();
    assert_increasing(&all);
    let nonces: BTreeSet<String> = (0..300).map(|i| [&env, &clocked, &seeded][i % 3].nonce()).collect();
    assert_eq!(nonces.len(), 300);
}

#[test]
fn two_processes_and_two_incarnations_have_different_ids_and_nonces() {
    let sim = Sim::new(5);
    let mut seen = BTreeSet::new();
    for process in ["a", "b", "a", "b"] {
        let env = sim.env(process);
        seen.extend(ids(&env, 10));
        seen.insert(env.nonce());
        sim.kill(process);
    }
    assert_eq!(seen.len(), 44);
}

#[test]
fn the_same_seed_gives_the_same_ids() {
    let run = |seed| {
        let env = Sim::new(seed).env("a");
        (ids(&env, 5), env.nonce())
    };
    assert_eq!(run(6), run(6));
    assert_ne!(run(6), run(7));
}

#[test]
fn a_nonce_is_twelve_characters_of_base_32() {
    let env = Sim::new(8).env("a");
    let nonces: Vec<String> = (0..500).map(|_| env.nonce()).collect();
    let used: BTreeSet<char> = nonces.iter().flat_map(|nonce| nonce.chars()).collect();
    assert!(nonces.iter().all(|nonce| nonce.len() == 12));
    assert_eq!(used.into_iter().collect::<String>(), "0123456789abcdefghjkmnpqrstvwxyz");
}

#[test]
fn ids_grow_across_threads_of_the_real_process() {
    let env = Env::system("ids").unwrap();
    let mut threads = Vec::new();
    for _ in 0..4 {
        let env = env.clone();
        threads.push(std::thread::spawn(move || ids(&env, 5_000)));
    }
    let lists: Vec<Vec<String>> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    lists.iter().for_each(|list| assert_increasing(list));
    let distinct: BTreeSet<&String> = lists.iter().flatten().collect();
    assert_eq!(distinct.len(), 20_000);
}
