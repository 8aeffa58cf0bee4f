//! Properties of the lease observer.

use std::collections::BTreeMap;
use std::time::Duration;

use mainstay_env::Monotonic;
use mainstay_store::{ExecutorId, Lease};

use super::property::{Word, sequences};
use crate::Watch;

const TTL: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_secs(1);

fn lease(executor: &str, beat: u64) -> Lease {
    Lease::new(executor, "shop", beat)
}

/// The successful reads since a beat last moved.
#[derive(Default)]
struct Still {
    beat: u64,
    reads: Vec<Monotonic>,
}

#[test]
fn only_a_beat_that_stood_still_through_one_ttl_of_own_reads_is_dead() {
    sequences(800, 120_000, |words| {
        let own = ExecutorId::from("own");
        let mut watch = Watch::new(TTL, TICK);
        let mut now = Monotonic(Duration::from_secs(1));
        let mut beats: BTreeMap<ExecutorId, u64> = ["own", "a", "b", "c"].map(|name| (name.into(), 1)).into();
        let mut still: BTreeMap<ExecutorId, Still> = BTreeMap::new();
        for word in words {
            let mut word = Word(*word);
            // An outage or a pause of this process now and then.
            let gap =
                if word.below(12) == 0 { 60_000 * u64::from(word.below(30)) } else { 950 + u64::from(word.below(100)) };
            now = now + Duration::from_millis(gap);
            for (executor, beat) in &mut beats {
                *beat += u64::from(*executor != own && word.below(9) == 0);
            }
            let leases: Vec<_> = beats.iter().map(|(name, beat)| lease(name.as_str(), *beat)).collect();
            let dead = watch.read(now, &own, &leases);
            for (executor, beat) in &beats {
                let seen = still.entry(executor.clone()).or_default();
                if seen.beat != *beat {
                    *seen = Still { beat: *beat, reads: Vec::new() };
                }
                seen.reads.push(now);
                let is_dead = dead.iter().any(|dead| dead.executor == *executor && dead.beat == *beat);
                let gaps = seen.reads.windows(2).map(|pair| pair[1].since(pair[0]).min(2 * TICK));
                let through: Duration = gaps.sum();
                assert_eq!(is_dead, *executor != own && through >= TTL, "{executor} at {through:?}");
            }
        }
    });
}

#[test]
fn an_hour_of_outage_kills_nobody() {
    let own = ExecutorId::from("own");
    let mut watch = Watch::new(TTL, TICK);
    assert!(watch.read(Monotonic(TICK), &own, &[lease("a", 5)]).is_empty());
    let later = Monotonic(Duration::from_secs(3600));
    assert!(watch.read(later, &own, &[lease("a", 5)]).is_empty());
    assert!(watch.read(later + TICK, &own, &[lease("a", 6)]).is_empty());
}

#[test]
fn a_proved_death_and_an_unfinished_take_over_count_at_once() {
    let mut watch = Watch::new(TTL, TICK);
    let leases =
        [lease("proved", 3).dead(true), lease("ended", 4).ended(true), lease("own", 1).dead(true), lease("new", 9)];
    let dead = watch.read(Monotonic(TICK), &"own".into(), &leases);
    let named: Vec<_> = dead.iter().map(|dead| (dead.executor.as_str(), dead.beat)).collect();
    assert_eq!(named, [("proved", 3), ("ended", 4)]);
}
