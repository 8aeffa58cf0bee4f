//! Timestamps and monotonic readings.

use mainstay_env::{Monotonic, Timestamp};
use std::time::Duration;

#[test]
fn a_timestamp_saturates_at_both_ends() {
    assert_eq!(Timestamp(i64::MAX) + Duration::from_millis(1), Timestamp(i64::MAX));
    assert_eq!(Timestamp(5) + Duration::MAX, Timestamp(i64::MAX));
    assert_eq!(Timestamp(i64::MIN) - Duration::from_millis(1), Timestamp(i64::MIN));
    assert_eq!(Timestamp(-7) - Duration::MAX, Timestamp(i64::MIN));
}

#[test]
fn since_is_zero_for_a_later_time_and_spans_the_whole_range() {
    assert_eq!(Timestamp(1).since(Timestamp(2)), Duration::ZERO);
    assert_eq!(Timestamp(i64::MAX).since(Timestamp(i64::MIN)), Duration::from_millis(u64::MAX));
}

#[test]
fn a_part_of_a_millisecond_is_dropped() {
    assert_eq!(Timestamp(10) + Duration::from_micros(1_999), Timestamp(11));
    assert_eq!(Timestamp(10) - Duration::from_micros(1_999), Timestamp(9));
}

#[test]
fn a_timestamp_is_a_bare_number_as_text_and_in_json() {
    let time = Timestamp::from_millis(1_704_067_200_123);
    assert_eq!(time.to_string(), "1704067200123");
    assert_eq!(serde_json::to_string(&time).unwrap(), "1704067200123");
    assert_eq!(serde_json::from_str::<Timestamp>("1704067200123").unwrap(), time);
}

#[test]
fn a_monotonic_reading_saturates_at_never() {
    let reading = Monotonic(Duration::from_secs(3));
    assert_eq!(reading + Duration::MAX, Monotonic::NEVER);
    assert_eq!((reading + Duration::from_secs(2)).since(reading), Duration::from_secs(2));
    assert_eq!(reading.since(Monotonic::NEVER), Duration::ZERO);
}
