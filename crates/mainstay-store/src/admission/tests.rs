//! Admission over a whole grid of small numbers, and over random large ones.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

const LIMITS: [Option<u32>; 7] = [None, Some(0), Some(1), Some(2), Some(3), Some(4), Some(5)];
const USED: [u32; 7] = [0, 1, 2, 3, 4, 5, 6];
const PERIOD: Duration = Duration::from_secs(60);
const OPENS: Duration = Duration::from_secs(7);

fn rate(starts: Option<u32>) -> Option<Rate> {
    starts.map(|starts| Rate { starts, period: PERIOD })
}

fn starts(count: u32) -> Starts {
    Starts { count, opens_in: (count > 0).then_some(OPENS) }
}

/// What each limit leaves, written the long way round.
fn remaining(limit: Option<u32>, used: u32) -> u32 {
    match limit {
        None => u32::MAX,
        Some(limit) if used >= limit => 0,
        Some(limit) => limit - used,
    }
}

/// One point: three limits, what is used of each, and a budget.
struct Point {
    limits: [Option<u32>; 3],
    used: [u32; 3],
    budget: u32,
}

impl Point {
    fn limits(&self) -> Limits {
        let [worker_concurrency, starts, concurrency] = self.limits;
        Limits { worker_concurrency, rate: rate(starts), concurrency, ..Limits::default() }
    }

    fn counts(&self) -> Counts {
        Counts { running: self.used[2], starts: starts(self.used[1]), keys: Vec::new() }
    }

    fn check(&self) {
        let (limits, local) = (self.limits(), Local { running: self.used[0], keys: BTreeMap::new() });
        let admission = Admission { limits: &limits, local: &local, budget: self.budget };
        let left: Vec<u32> = self.limits.iter().zip(self.used).map(|(limit, used)| remaining(*limit, used)).collect();
        let (process, window, fleet) = (left[0], left[1], left[2]);
        let needs = admission.needs();
        assert_eq!(needs.room, self.budget.min(process));
        assert_eq!(needs.running, limits.concurrency.filter(|_| needs.room > 0));
        assert_eq!(needs.starts, limits.rate.filter(|_| needs.room > 0));

        let allowance = admission.decide(&self.counts());
        assert_eq!(allowance.total, self.budget.min(process).min(window).min(fleet), "exactly what is left");
        let expected = match allowance.total {
            n if n == process => Stop::Limit(Reach::Process),
            n if n == window && self.used[1] > 0 => Stop::RateIn(OPENS),
            n if n == window => Stop::RateIn(PERIOD),
            n if n == fleet => Stop::Limit(Reach::Fleet),
            _ => Stop::More,
        };
        assert_eq!(allowance.full, expected);

        let bounded = Counts {
            running: self.used[2].min(limits.concurrency.unwrap_or(0)),
            starts: starts(self.used[1].min(limits.rate.map_or(0, |rate| rate.starts))),
            keys: Vec::new(),
        };
        assert_eq!(admission.decide(&bounded).total, allowance.total, "a count up to its bound is enough");
    }
}

#[test]
fn a_queue_is_admitted_exactly_what_its_limits_leave() {
    let mut points = 0u32;
    for a in LIMITS {
        for b in LIMITS {
            for c in LIMITS {
                for (x, y, z) in triples() {
                    for budget in [1, 2, 3, 6, 64, u32::MAX] {
                        Point { limits: [a, b, c], used: [x, y, z], budget }.check();
                        points += 1;
                    }
                }
            }
        }
    }
    assert!(points >= 700_000, "{points}");
}

fn triples() -> impl Iterator<Item = (u32, u32, u32)> {
    USED.into_iter().flat_map(|x| USED.into_iter().flat_map(move |y| USED.into_iter().map(move |z| (x, y, z))))
}

#[test]
fn a_key_is_admitted_exactly_what_its_limits_leave() {
    let mut points = 0u32;
    for fleet in LIMITS {
        for process in LIMITS {
            for window in LIMITS {
                for (local, running, started) in triples() {
                    key(fleet, process, window, (local, running, started));
                    points += 1;
                }
            }
        }
    }
    assert!(points >= 100_000, "{points}");
}

fn key(fleet: Option<u32>, process: Option<u32>, window: Option<u32>, (local, running, started): (u32, u32, u32)) {
    let limits = Limits {
        partition_concurrency: fleet,
        partition_worker_concurrency: process,
        partition_rate: rate(window),
        ..Limits::default()
    };
    let local = Local { running: local, keys: [("k".into(), local)].into() };
    let counts =
        Counts { keys: vec![KeyCounts { key: "k".into(), running, starts: starts(started) }], ..Counts::default() };
    let allowance = Admission { limits: &limits, local: &local, budget: 9 }.decide(&counts);
    let slots = remaining(fleet, running).min(remaining(process, local.running));
    let cap = slots.min(remaining(window, started));
    assert_eq!(allowance.keys, [("k".into(), cap)]);
    let by_window = remaining(window, started) < slots;
    let opening = if started > 0 { OPENS } else { PERIOD };
    let expected = if by_window { Stop::RateIn(opening) } else { Stop::Limit(Reach::Key) };
    assert_eq!((allowance.total, allowance.short), (9, expected));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn more_in_use_never_admits_more(
        limits in prop::array::uniform3(prop::option::of(0u32..1_000_000)),
        used in prop::array::uniform3(0u32..1_000_000),
        more in prop::array::uniform3(0u32..1_000_000),
        budget in 1u32..10_000,
    ) {
        let total = |used: [u32; 3]| {
            let point = Point { limits, used, budget };
            point.check();
            let (limits, local) = (point.limits(), Local { running: used[0], keys: BTreeMap::new() });
            Admission { limits: &limits, local: &local, budget }.decide(&point.counts()).total
        };
        let busier = [used[0] + more[0], used[1] + more[1], used[2] + more[2]];
        prop_assert!(total(busier) <= total(used));
    }

    #[test]
    fn a_busier_neighbour_key_changes_nothing(
        cap in 0u32..20,
        mine in 0u32..20,
        theirs in prop::array::uniform2(0u32..20),
    ) {
        let limits = Limits { partition_concurrency: Some(cap), ..Limits::default() };
        let local = Local::default();
        let admission = Admission { limits: &limits, local: &local, budget: 64 };
        let of = |neighbour: u32| {
            let count = |key: &str, running| KeyCounts { key: key.into(), running, starts: Starts::default() };
            let counts = Counts { keys: vec![count("a", neighbour), count("b", mine)], ..Counts::default() };
            admission.decide(&counts).keys[1].clone()
        };
        prop_assert_eq!(of(theirs[0]), of(theirs[1]));
        prop_assert_eq!(of(theirs[0]).1, cap.saturating_sub(mine));
    }
}
