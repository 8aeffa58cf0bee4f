//! Group `order`: rows come by priority, then age, then id, whatever happened to them on the way.

use mainstay_store::{Effect, Fork, Limits, Registered, Unit, wire};

use crate::desk::{Desk, E1, E2, Q, ids, rows, success};

cases! { "order";
    a_lower_priority_number_is_first;
    rows_without_a_priority_are_first;
    the_greatest_priority_number_is_last;
    within_a_priority_the_older_is_first;
    within_a_millisecond_the_id_decides;
    ids_are_compared_by_their_bytes;
    priority_goes_before_age;
    a_reply_is_in_order_whatever_the_insertion_was;
    batches_go_on_where_the_last_one_stopped;
    rows_that_are_not_eligible_do_not_stand_in_the_way;
    many_rows_that_are_not_eligible_do_not_stand_in_the_way;
    one_at_a_time_is_first_in_first_out;
    a_later_row_of_higher_rank_goes_ahead;
    a_row_given_back_keeps_its_place;
    a_row_taken_over_keeps_its_place;
    a_released_row_has_the_place_of_its_age;
    a_resumed_row_has_the_place_of_its_age;
    a_fork_stands_at_the_end;
    a_repeat_is_in_order;
    parked_rows_are_in_order;
    the_internal_queue_is_in_order;
    random_rows_are_claimed_in_order;
}

async fn put(d: &Desk, id: &str, priority: i32) {
    d.put(d.job(id).priority(priority)).await;
}

async fn a_lower_priority_number_is_first(d: &Desk) {
    for (id, priority) in [("a", 3), ("b", 1), ("c", 10), ("d", 2)] {
        put(d, id, priority).await;
    }
    assert_eq!(d.take_ids(d.claim()).await, ["b", "d", "a", "c"]);
}

async fn rows_without_a_priority_are_first(d: &Desk) {
    put(d, "one", 1).await;
    d.pass(10);
    d.enqueue("none").await;
    assert_eq!(d.take_ids(d.claim()).await, ["none", "one"]);
}

async fn the_greatest_priority_number_is_last(d: &Desk) {
    put(d, "a", i32::MAX).await;
    put(d, "b", i32::MAX - 1).await;
    assert_eq!(d.take_ids(d.claim()).await, ["b", "a"]);
}

async fn within_a_priority_the_older_is_first(d: &Desk) {
    for id in ["c", "b", "a"] {
        put(d, id, 5).await;
        d.pass(1);
    }
    assert_eq!(d.take_ids(d.claim()).await, ["c", "b", "a"]);
}

async fn within_a_millisecond_the_id_decides(d: &Desk) {
    for id in ["c", "a", "b"] {
        put(d, id, 5).await;
    }
    assert_eq!(d.take_ids(d.claim()).await, ["a", "b", "c"]);
}

async fn ids_are_compared_by_their_bytes(d: &Desk) {
    for id in ["é", "b", "a2", "A", "a10", "_", "ab", "a"] {
        d.enqueue(id).await;
    }
    assert_eq!(d.take_ids(d.claim()).await, ["A", "_", "a", "a10", "a2", "ab", "b", "é"]);
}

async fn priority_goes_before_age(d: &Desk) {
    put(d, "old", 2).await;
    d.pass(86_400_000);
    put(d, "young", 1).await;
    assert_eq!(d.take_ids(d.claim()).await, ["young", "old"]);
}

async fn a_reply_is_in_order_whatever_the_insertion_was(d: &Desk) {
    let jobs = [("e", 2), ("a", 2), ("d", 0), ("b", 1), ("c", 2)];
    let mut unit = Unit::new();
    for (id, priority) in jobs {
        unit = unit.effect(d.job(id).priority(priority));
    }
    d.done(unit).await;
    let claimed = d.take(d.claim()).await;
    assert_eq!(rows(&claimed), ["d", "b", "a", "c", "e"]);
    let ranks: Vec<_> = claimed.rows.iter().map(|row| row.row.rank()).collect();
    assert!(ranks.is_sorted());
}

async fn batches_go_on_where_the_last_one_stopped(d: &Desk) {
    for n in 0..7 {
        d.enqueue(&format!("w{n}")).await;
        d.pass(u64::from(n % 2 == 0));
    }
    let mut taken = Vec::new();
    for _ in 0..3 {
        taken.extend(d.take_ids(d.claim().budget(3)).await);
    }
    assert_eq!(taken, ["w0", "w1", "w2", "w3", "w4", "w5", "w6"]);
}

async fn rows_that_are_not_eligible_do_not_stand_in_the_way(d: &Desk) {
    d.put(d.job("other version").version("v2")).await;
    d.put(d.job("other app").app("else")).await;
    d.put(mainstay_store::Submit::new("other name", "x", d.token(), mainstay_store::Place::queue(Q))).await;
    d.pass(10);
    put(d, "w", 9).await;
    assert_eq!(d.take_ids(d.claim().budget(1)).await, ["w"]);
}

async fn many_rows_that_are_not_eligible_do_not_stand_in_the_way(d: &Desk) {
    for chunk in 0..4 {
        let job = |n: u32| d.job(&format!("x{chunk}{n:03}")).version("v2");
        let units: Vec<Unit> = (0..250).map(|n| Unit::new().effect(job(n))).collect();
        d.units(&units).await;
    }
    d.pass(10);
    put(d, "a", 9).await;
    put(d, "b", 9).await;
    assert_eq!(d.take_ids(d.claim().budget(2)).await, ["a", "b"]);
}

async fn one_at_a_time_is_first_in_first_out(d: &Desk) {
    d.register(Q, Limits { concurrency: Some(1), ..Limits::default() }).await;
    for id in ["c", "a", "b", "d"] {
        d.enqueue(id).await;
        d.pass(1);
    }
    let mut started = Vec::new();
    for _ in 0..4 {
        let claimed = d.take_one().await;
        assert_eq!(d.take(d.claim()).await.rows.len(), 0);
        d.settle(&claimed.fence, success("end")).await;
        started.push(claimed.row.id.as_str().to_owned());
    }
    assert_eq!(started, ["c", "a", "b", "d"]);
}

async fn a_later_row_of_higher_rank_goes_ahead(d: &Desk) {
    for id in ["b", "c"] {
        put(d, id, 5).await;
    }
    assert_eq!(d.take_ids(d.claim().budget(1)).await, ["b"]);
    d.pass(10);
    put(d, "z", 1).await;
    assert_eq!(d.take_ids(d.claim()).await, ["z", "c"]);
}

/// Rows `a`, `b`, `c`, a millisecond apart.
async fn three(d: &Desk) {
    for id in ["a", "b", "c"] {
        d.pass(1);
        put(d, id, 5).await;
    }
}

async fn a_row_given_back_keeps_its_place(d: &Desk) {
    three(d).await;
    let first = d.take(d.claim().budget(1)).await.rows.remove(0).fence;
    d.pass(1_000);
    d.give_back(&first).await;
    assert_eq!(d.take_ids(d.claim()).await, ["a", "b", "c"]);
}

async fn a_row_taken_over_keeps_its_place(d: &Desk) {
    three(d).await;
    d.take(d.claim().budget(2)).await;
    d.pass(1_000);
    d.take_over(E1).await;
    assert_eq!(d.take_ids(d.claim_by(E2)).await, ["a", "b", "c"]);
}

async fn a_released_row_has_the_place_of_its_age(d: &Desk) {
    d.put(d.later("old", 1_000).priority(5)).await;
    three(d).await;
    d.pass(1_000);
    d.tick().await;
    assert_eq!(d.take_ids(d.claim()).await, ["old", "a", "b", "c"]);
}

async fn a_resumed_row_has_the_place_of_its_age(d: &Desk) {
    three(d).await;
    d.cancel("b").await;
    d.pass(1_000);
    d.moved(Effect::Resume { ids: ids(&["b"]), queue: Some(Q.into()), force: false }).await;
    assert_eq!(d.take_ids(d.claim()).await, ["a", "b", "c"]);
}

async fn a_fork_stands_at_the_end(d: &Desk) {
    for id in ["b", "c"] {
        d.enqueue(id).await;
    }
    d.pass(10);
    d.done(Unit::new().effect(Fork::new("b", "a", 0).queue(Q))).await;
    assert_eq!(d.take_ids(d.claim()).await, ["b", "c", "a"]);
}

async fn a_repeat_is_in_order(d: &Desk) {
    for (id, priority) in [("a", 3), ("b", 1), ("c", 2)] {
        put(d, id, priority).await;
    }
    let claim = d.claim();
    assert_eq!(rows(&d.take(claim.clone()).await), ["b", "c", "a"]);
    assert_eq!(rows(&d.take(claim.repeat(true)).await), ["b", "c", "a"]);
}

async fn parked_rows_are_in_order(d: &Desk) {
    for (id, priority) in [("a", 3), ("b", 1), ("c", 2)] {
        put(d, id, priority).await;
    }
    let names = vec![Registered { max_attempts: 0, ..Registered::new("work") }];
    let parked = d.take(d.claim().names(names)).await.parked;
    assert_eq!(crate::desk::texts(&parked), ["b", "c", "a"]);
}

async fn the_internal_queue_is_in_order(d: &Desk) {
    for (id, priority) in [("a", 3), ("b", 0), ("c", 2)] {
        d.put(d.job_on(wire::INTERNAL_QUEUE, id).priority(priority)).await;
    }
    assert_eq!(d.take_ids(d.claim_on(wire::INTERNAL_QUEUE)).await, ["b", "c", "a"]);
}

async fn random_rows_are_claimed_in_order(d: &Desk) {
    let rng = mainstay_env::Rng::seeded(11);
    let mut expected = Vec::new();
    for n in 0..200 {
        let (id, priority) = (format!("w{:03}", (n * 37) % 200), rng.between(0, 3));
        d.pass(rng.below(2));
        expected.push((priority, d.now(), id.clone()));
        put(d, &id, priority).await;
    }
    expected.sort();
    let mut taken = Vec::new();
    while taken.len() < 200 {
        let more = d.take_ids(d.claim().budget(rng.between(1, 30))).await;
        assert!(!more.is_empty(), "nothing is claimed after {} rows", taken.len());
        taken.extend(more);
    }
    let expected: Vec<String> = expected.into_iter().map(|(_, _, id)| id).collect();
    assert_eq!(taken, expected);
}
