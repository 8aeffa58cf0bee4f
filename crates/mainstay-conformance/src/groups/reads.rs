//! Group `workflows`: the reads.

use std::collections::BTreeMap;

use mainstay_store::{
    ErrorKind, Joining, OnHeld, Outcome, Payload, ReadSteps, Standing, Status, StepOutput, StepRow, Steps, Submit, Unit,
};

use crate::desk::{Desk, ids, step, success, texts};

cases! { "workflows";
    a_standing_is_gone_for_an_unknown_id;
    standings_follow_the_order_asked;
    a_standing_tells_each_state;
    a_row_is_none_for_an_unknown_id;
    rows_follow_the_order_asked;
    no_ids_have_no_answers;
    steps_come_in_order_of_position;
    steps_begin_at_the_position_asked;
    steps_stop_at_the_byte_budget;
    one_step_is_given_whatever_its_size;
    pages_of_steps_are_all_steps;
    steps_past_the_last_are_complete_and_empty;
    steps_of_a_fresh_workflow_are_complete_and_empty;
    steps_of_an_unknown_workflow_are_not_found;
    an_input_is_read_as_it_was_written;
    a_row_without_an_input_has_none;
    an_empty_input_is_not_a_missing_one;
    an_input_of_an_unknown_workflow_is_not_found;
    an_input_outlives_its_workflow_s_end;
    outcomes_come_back_byte_for_byte;
    a_key_is_held_by_its_workflow;
    a_free_key_is_held_by_nobody;
    keys_are_held_on_one_queue;
    reads_change_nothing;
    ids_that_differ_in_case_are_different_workflows;
    ids_may_hold_any_character_but_nul;
    an_id_that_no_row_can_have_is_unknown;
    an_id_of_512_bytes_is_kept;
    a_batch_of_reads_may_be_large;
}

fn keyed(submit: Submit, key: &str) -> Submit {
    submit.dedup(Joining { key: key.into(), on_held: OnHeld::Reject })
}

async fn a_standing_is_gone_for_an_unknown_id(d: &Desk) {
    assert_eq!(d.standing("nobody").await, Standing::Gone);
    d.enqueue("w").await;
    d.delete("w").await;
    assert_eq!(d.standing("w").await, Standing::Gone);
}

async fn standings_follow_the_order_asked(d: &Desk) {
    d.enqueue("a").await;
    d.start("b").await;
    let asked = ids(&["b", "nobody", "a", "b"]);
    let (pending, enqueued) = (Standing::Open(Status::Pending), Standing::Open(Status::Enqueued));
    let found = d.store().workflow_standing(&asked).await.expect("read");
    assert_eq!(found, [pending.clone(), Standing::Gone, enqueued, pending]);
}

async fn a_standing_tells_each_state(d: &Desk) {
    for status in Status::ALL {
        let id = status.as_str();
        d.make(id, status).await;
        let expected = match status {
            Status::Success => Standing::Ended(success("made")),
            Status::Error => Standing::Ended(Outcome::Error("\"made\"".into())),
            Status::Parked => Standing::Ended(Outcome::Parked("\"made\"".into())),
            Status::Cancelled => Standing::Ended(Outcome::Cancelled),
            open => Standing::Open(open),
        };
        assert_eq!(d.standing(id).await, expected);
        assert_eq!(d.status(id).await, status);
    }
}

async fn a_row_is_none_for_an_unknown_id(d: &Desk) {
    assert_eq!(d.find("nobody").await, None);
    d.enqueue("w").await;
    d.delete("w").await;
    assert_eq!(d.find("w").await, None);
}

async fn rows_follow_the_order_asked(d: &Desk) {
    d.enqueue("a").await;
    d.enqueue("b").await;
    let found = d.store().workflow_rows(&ids(&["b", "nobody", "a", "b"])).await.expect("read");
    let found: Vec<_> = found.iter().map(|row| row.as_ref().map(|row| row.id.as_str())).collect();
    assert_eq!(found, [Some("b"), None, Some("a"), Some("b")]);
}

async fn no_ids_have_no_answers(d: &Desk) {
    assert_eq!(d.store().workflow_standing(&[]).await.expect("read"), []);
    assert_eq!(d.store().workflow_rows(&[]).await.expect("read"), []);
}

/// A started workflow `w` with steps 0 to 9 of ten bytes each.
async fn ten_steps(d: &Desk) {
    let fence = d.start("w").await;
    for at in [5, 1, 9, 0, 3, 7, 2, 8, 6, 4] {
        d.record(&fence, at, &format!("{at:010}")).await;
    }
}

async fn read(d: &Desk, request: ReadSteps) -> Steps {
    d.store().workflow_steps(request).await.expect("read")
}

fn positions(steps: &Steps) -> Vec<i32> {
    steps.here().iter().map(|step| step.position.0).collect()
}

async fn steps_come_in_order_of_position(d: &Desk) {
    ten_steps(d).await;
    let steps = read(d, ReadSteps::new("w")).await;
    assert!(matches!(steps, Steps::Complete(_)));
    assert_eq!(positions(&steps), (0..10).collect::<Vec<_>>());
}

async fn steps_begin_at_the_position_asked(d: &Desk) {
    ten_steps(d).await;
    let steps = read(d, ReadSteps::new("w").from(7.into())).await;
    assert!(matches!(steps, Steps::Complete(_)));
    assert_eq!(positions(&steps), [7, 8, 9]);
}

async fn steps_stop_at_the_byte_budget(d: &Desk) {
    ten_steps(d).await;
    for (bytes, first) in [(35, 3), (30, 3), (29, 2), (99, 9)] {
        let steps = read(d, ReadSteps::new("w").bytes(bytes)).await;
        let Steps::Partial { next, .. } = steps else { panic!("{bytes} bytes are enough: {steps:?}") };
        assert_eq!((positions(&steps).len(), next.0), (first, first as i32), "{bytes} bytes");
    }
    assert!(matches!(read(d, ReadSteps::new("w").bytes(100)).await, Steps::Complete(_)));
}

async fn one_step_is_given_whatever_its_size(d: &Desk) {
    ten_steps(d).await;
    let steps = read(d, ReadSteps::new("w").from(4.into()).bytes(0)).await;
    let Steps::Partial { next, .. } = steps else { panic!("no bytes are enough: {steps:?}") };
    assert_eq!((positions(&steps), next.0), (vec![4], 5));
}

async fn pages_of_steps_are_all_steps(d: &Desk) {
    ten_steps(d).await;
    let (mut from, mut found) = (0, Vec::new());
    for _ in 0..10 {
        let page = read(d, ReadSteps::new("w").from(from.into()).bytes(25)).await;
        found.extend_from_slice(page.here());
        match page {
            Steps::Partial { next, .. } => from = next.0,
            Steps::Complete(_) => break,
        }
    }
    assert_eq!(found, d.steps("w").await);
}

async fn steps_past_the_last_are_complete_and_empty(d: &Desk) {
    ten_steps(d).await;
    assert_eq!(read(d, ReadSteps::new("w").from(10.into())).await, Steps::Complete(vec![]));
}

async fn steps_of_a_fresh_workflow_are_complete_and_empty(d: &Desk) {
    d.enqueue("w").await;
    assert_eq!(read(d, ReadSteps::new("w").bytes(0)).await, Steps::Complete(vec![]));
}

async fn steps_of_an_unknown_workflow_are_not_found(d: &Desk) {
    let error = d.store().workflow_steps(ReadSteps::new("nobody")).await.expect_err("unknown");
    assert_eq!((error.kind(), error.op()), (ErrorKind::NotFound, "workflow_steps"));
}

async fn input_of(d: &Desk, id: &str) -> Option<Payload> {
    d.store().workflow_input(&id.into()).await.expect("read")
}

async fn an_input_is_read_as_it_was_written(d: &Desk) {
    let odd = "[\"a\\u0000b\", \"é ☃ 𝄞\", \"'; -- %_\\\\\", 1.0e2 ]\n ".to_owned();
    let long = format!("\"{}\"", "x".repeat(1 << 20));
    for (at, text) in [odd, long].into_iter().enumerate() {
        let id = format!("w{at}");
        d.put(d.job(&id).input(text.as_str())).await;
        assert_eq!(input_of(d, &id).await, Some(text.into()));
    }
}

async fn a_row_without_an_input_has_none(d: &Desk) {
    d.enqueue("w").await;
    assert_eq!(input_of(d, "w").await, None);
}

async fn an_empty_input_is_not_a_missing_one(d: &Desk) {
    d.put(d.job("w").input("")).await;
    assert_eq!(input_of(d, "w").await, Some("".into()));
}

async fn an_input_of_an_unknown_workflow_is_not_found(d: &Desk) {
    let error = d.store().workflow_input(&"nobody".into()).await.expect_err("unknown");
    assert_eq!((error.kind(), error.op()), (ErrorKind::NotFound, "workflow_input"));
}

async fn an_input_outlives_its_workflow_s_end(d: &Desk) {
    d.put(d.job("w").input("[1]")).await;
    let fence = d.take_one().await.fence;
    d.settle(&fence, success("end")).await;
    assert_eq!(input_of(d, "w").await, Some("[1]".into()));
}

async fn outcomes_come_back_byte_for_byte(d: &Desk) {
    let text = "{\"k\": \"a\\u0000 é ☃\",\n \"n\": 1.0 } ";
    let outcomes: [fn(Payload) -> Outcome; 3] = [Outcome::Success, Outcome::Error, Outcome::Parked];
    for (at, outcome) in outcomes.into_iter().enumerate() {
        for (n, text) in [text, ""].into_iter().enumerate() {
            let id = format!("w{at}{n}");
            let fence = d.start(&id).await;
            d.settle(&fence, outcome(text.into())).await;
            assert_eq!(d.standing(&id).await, Standing::Ended(outcome(text.into())), "{id}");
        }
    }
}

async fn holder(d: &Desk, queue: &str, key: &str) -> Option<String> {
    let holder = d.store().workflow_holder(&queue.into(), &key.into()).await.expect("read");
    holder.map(|id| id.as_str().to_owned())
}

async fn a_key_is_held_by_its_workflow(d: &Desk) {
    d.put(keyed(d.job("w"), "k")).await;
    assert_eq!(holder(d, "q", "k").await.as_deref(), Some("w"));
    d.take_one().await;
    assert_eq!(holder(d, "q", "k").await.as_deref(), Some("w"));
}

async fn a_free_key_is_held_by_nobody(d: &Desk) {
    assert_eq!(holder(d, "q", "k").await, None);
    d.put(keyed(d.job("w"), "k")).await;
    assert_eq!(holder(d, "q", "K").await, None);
    let fence = d.take_one().await.fence;
    d.settle(&fence, success("end")).await;
    assert_eq!(holder(d, "q", "k").await, None);
}

async fn keys_are_held_on_one_queue(d: &Desk) {
    d.put(keyed(d.job("w"), "k")).await;
    assert_eq!(holder(d, "other", "k").await, None);
    d.put(keyed(d.job_on("other", "v"), "k")).await;
    let holders = (holder(d, "q", "k").await, holder(d, "other", "k").await);
    assert_eq!(holders, (Some("w".into()), Some("v".into())));
}

async fn reads_change_nothing(d: &Desk) {
    ten_steps(d).await;
    d.put(keyed(d.job("k"), "k").input("[1]")).await;
    let both = ids(&["w", "k"]);
    let mut seen = BTreeMap::new();
    for round in 0..2 {
        let store = d.store();
        let all = (
            store.workflow_standing(&both).await.expect("read"),
            store.workflow_rows(&both).await.expect("read"),
            d.steps("w").await,
            input_of(d, "k").await,
            holder(d, "q", "k").await,
        );
        seen.insert(round, all);
        d.pass(1_000);
    }
    assert_eq!(seen[&0], seen[&1]);
}

async fn ids_that_differ_in_case_are_different_workflows(d: &Desk) {
    for id in ["w", "W", "é", "É", "e"] {
        d.put(d.job(id).input(id)).await;
    }
    for id in ["w", "W", "é", "É", "e"] {
        assert_eq!(input_of(d, id).await, Some(id.into()));
    }
    d.delete("W").await;
    assert_eq!(d.status("w").await, Status::Enqueued);
}

async fn ids_may_hold_any_character_but_nul(d: &Desk) {
    let odd = ["a'b", "%", "_", "\\", "a\nb", " ", "☃𝄞", "\"", "$1", "?1", "a;b--", "\u{feff}"];
    for id in odd {
        let fence = d.put(d.direct(id).input(id)).await.fence.expect("a fence");
        d.done(Unit::by(&fence).step(StepRow::new(0, id, StepOutput::Value(id.into())))).await;
    }
    for id in odd {
        assert_eq!((d.row(id).await.id.as_str(), input_of(d, id).await), (id, Some(id.into())));
        assert_eq!(d.steps(id).await[0].name, id);
        assert_eq!(d.cancel(id).await, [id]);
    }
}

async fn an_id_that_no_row_can_have_is_unknown(d: &Desk) {
    d.put(keyed(d.job("w"), "k").input("[1]")).await;
    let (store, bad) = (d.store(), "w\0");
    let asked = ids(&[bad, "w", bad]);
    let standing = Standing::Open(Status::Enqueued);
    assert_eq!(store.workflow_standing(&asked).await.expect("read"), [Standing::Gone, standing, Standing::Gone]);
    let rows = store.workflow_rows(&asked).await.expect("read");
    assert_eq!(rows.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, false]);
    let errors = [
        store.workflow_steps(ReadSteps::new(bad)).await.expect_err("unknown"),
        store.workflow_input(&bad.into()).await.expect_err("unknown"),
    ];
    assert_eq!(errors.map(|error| error.kind()), [ErrorKind::NotFound; 2]);
    assert_eq!((holder(d, "q", "k\0").await, holder(d, "q\0", "k").await), (None, None));
}

async fn an_id_of_512_bytes_is_kept(d: &Desk) {
    let long = "é".repeat(256);
    let other = format!("{}x", &long[..510]);
    d.enqueue(&long).await;
    d.enqueue(&other).await;
    assert_eq!(d.row(&long).await.id, *long);
    let mut both = vec![long, other];
    both.sort();
    assert_eq!(d.take_ids(d.claim()).await, both);
}

async fn a_batch_of_reads_may_be_large(d: &Desk) {
    let fence = d.start("w").await;
    d.done(Unit::by(&fence).step(step(0, "1"))).await;
    let asked: Vec<_> = (0..2_000).map(|n| if n == 1_500 { "w".into() } else { format!("w{n}").into() }).collect();
    let standings = d.store().workflow_standing(&asked).await.expect("read");
    let rows = d.store().workflow_rows(&asked).await.expect("read");
    assert_eq!((standings.len(), rows.len()), (2_000, 2_000));
    assert_eq!(standings.iter().filter(|standing| **standing != Standing::Gone).count(), 1);
    let found: Vec<_> = rows.into_iter().enumerate().filter_map(|(at, row)| Some((at, row?.id))).collect();
    assert_eq!((found[0].0, texts(&[found[0].1.clone()]).remove(0), found.len()), (1_500, "w".to_owned(), 1));
}
