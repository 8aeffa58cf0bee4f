//! Properties of the audit's rhythm.

use std::collections::BTreeSet;
use std::time::Duration;

use mainstay_env::Monotonic;
use mainstay_store::{AuditCursor, Fence, HeldRow, Timestamp, Token};

use super::property::{Word, sequences};
use crate::{AuditInput, AuditPlan, AuditStep, Tally, lost_rows};

const LEAST: Duration = Duration::from_secs(5);

#[test]
fn an_audit_costs_a_hundredth_of_a_connection_and_comes_round_all_the_same() {
    sequences(800, 120_000, |words| {
        let mut now = Monotonic(Duration::from_secs(1));
        let mut plan = AuditPlan::new(now, LEAST);
        let mut step = plan.next(now);
        let (mut spent, mut walk_ended, mut last_walk, mut reading) = (Duration::ZERO, now, Duration::ZERO, false);
        for word in words {
            let mut word = Word(*word);
            let input = match &step {
                AuditStep::Read(after) => {
                    assert_eq!(after.is_some(), reading, "a walk goes on where its last page ended");
                    if !reading {
                        assert!(now >= walk_ended + 100 * last_walk, "a hundred times what the last walk took");
                        spent = Duration::ZERO;
                    }
                    let took = Duration::from_millis(u64::from(word.below(400)));
                    now = now + took;
                    let more = word.below(3) == 0;
                    let cursor = AuditCursor { created_at: Timestamp::from_millis(1), id: "w".into() };
                    reading = more && word.below(9) > 0;
                    let failed = more && !reading;
                    if !failed {
                        spent += took.min(Duration::from_millis(300));
                    }
                    if !reading {
                        (walk_ended, last_walk) = (now, spent);
                    }
                    match (reading, more) {
                        (true, _) => AuditInput::Page(took, Some(cursor)),
                        (false, true) => AuditInput::Failed,
                        (false, false) => AuditInput::Page(took, None),
                    }
                }
                AuditStep::Wait(until) => {
                    assert!(*until > now, "no waiting for what is past");
                    assert!(
                        until.since(walk_ended) <= Duration::from_secs(30).max(100 * last_walk),
                        "and not longer than its share asks"
                    );
                    now = if word.below(2) == 0 { *until } else { now + until.since(now) / 2 };
                    AuditInput::Suspect
                }
            };
            if input != AuditInput::Suspect || word.below(4) == 0 {
                plan.tell(now, input);
            }
            step = plan.next(now);
        }
    });
}

#[test]
fn a_suspicion_brings_the_next_audit_within_a_second_if_its_share_allows() {
    let start = Monotonic(Duration::from_secs(1));
    let mut plan = AuditPlan::new(start, LEAST);
    plan.tell(start, AuditInput::Suspect);
    assert_eq!(plan.next(start), AuditStep::Wait(start + Duration::from_secs(1)));
    let now = start + Duration::from_secs(1);
    assert_eq!(plan.next(now), AuditStep::Read(None));
    plan.tell(now, AuditInput::Suspect);
    assert_eq!(plan.next(now), AuditStep::Read(None), "a suspicion forgets no page");
    plan.tell(now, AuditInput::Page(Duration::from_millis(50), None));
    plan.tell(now, AuditInput::Suspect);
    assert_eq!(plan.next(now), AuditStep::Wait(now + Duration::from_secs(5)), "a hundredth");
    assert_eq!(plan.finished(), 1);
}

#[test]
fn a_page_that_hangs_delays_the_next_audit_by_seconds_only() {
    let mut now = Monotonic(Duration::from_secs(1));
    let mut plan = AuditPlan::new(now, LEAST);
    for seconds in [5, 10, 20, 30, 30] {
        now = now + Duration::from_secs(3600);
        assert_eq!(plan.next(now), AuditStep::Read(None));
        plan.tell(now, AuditInput::Failed);
        assert_eq!(plan.next(now), AuditStep::Wait(now + Duration::from_secs(seconds)));
    }
    now = now + Duration::from_secs(3600);
    plan.next(now);
    plan.tell(now, AuditInput::Page(Duration::from_secs(9), None));
    assert_eq!(plan.next(now), AuditStep::Wait(now + Duration::from_secs(30)));
}

#[test]
fn a_row_of_a_claim_whose_answer_is_awaited_is_not_lost() {
    let row = |id: &str, token: &str| HeldRow::new(Fence::issue(id.into(), "f"), Timestamp::EPOCH).token(token);
    let held = [row("a", "awaited"), row("b", "forgotten")];
    let outstanding = BTreeSet::from([Token::from("awaited")]);
    let lost = lost_rows(&held, &Tally::new(1), &outstanding);
    assert_eq!(lost, [Fence::issue("b".into(), "f")]);
}
