//! Group `claim`: edges of a claim's order, bytes and stops, and of the probe's eligibility.

use mainstay_store::{Claim, Input, Probe, Registered, Revision, Status, Stop, Submit, VersionReply, wire};

use crate::desk::{APP, Desk, E1, E2, Q, V1, WORK, field, ms, rows, texts};

cases! { "claim";
    a_repeat_keeps_to_its_bytes;
    steps_use_up_the_bytes_of_a_claim;
    an_input_and_its_steps_use_up_the_bytes_of_a_claim;
    a_revision_is_nothing_to_the_internal_queue;
    parked_rows_drain_a_queue_too;
    a_deadline_is_a_timeout_after_the_claim;
    a_passed_deadline_alone_keeps_no_row_from_a_claim;
    functions_of_a_claim_are_bounded;
    names_of_a_probe_are_bounded;
    a_probe_goes_by_the_latest_version;
    a_probe_goes_by_class_and_instance;
    a_probe_finds_unowned_rows;
    a_probe_tells_when_an_unowned_row_is_due;
}

/// Runs a row once, so that it waits with an input of `input` bytes and four steps of ten.
async fn stepped(d: &Desk, id: &str, input: usize) {
    d.put(d.job(id).input("x".repeat(input))).await;
    let fence = d.take_one().await.fence;
    for at in 0..4 {
        d.record(&fence, at, &format!("{at:010}")).await;
    }
    d.done(
        mainstay_store::Unit::by(&fence).effect(mainstay_store::Effect::GiveBack { delay: Some(ms(10)), begun: true }),
    )
    .await;
}

/// Whether each row came with its input, and with how many steps.
async fn came(d: &Desk, claim: Claim) -> Vec<(bool, usize)> {
    let claimed = d.take(claim).await;
    let row = |row: &mainstay_store::ClaimedRow| (matches!(row.input, Input::Inline(_)), row.steps.here().len());
    claimed.rows.iter().map(row).collect()
}

async fn a_repeat_keeps_to_its_bytes(d: &Desk) {
    for id in ["a", "b"] {
        stepped(d, id, 20).await;
    }
    d.pass(20);
    d.tick().await;
    let claim = d.claim();
    assert_eq!(came(d, claim.clone()).await, [(true, 4), (true, 4)]);
    let repeat = claim.repeat(true);
    assert_eq!(came(d, repeat.clone().row_bytes(35)).await, [(true, 1), (true, 1)]);
    assert_eq!(came(d, repeat.clone().claim_bytes(75)).await, [(true, 4), (false, 1)]);
    assert_eq!(came(d, repeat).await, [(true, 4), (true, 4)]);
}

async fn steps_use_up_the_bytes_of_a_claim(d: &Desk) {
    for id in ["a", "b", "c"] {
        stepped(d, id, 0).await;
    }
    d.pass(20);
    d.tick().await;
    assert_eq!(came(d, d.claim().claim_bytes(65)).await, [(true, 4), (true, 2), (true, 0)]);
}

async fn an_input_and_its_steps_use_up_the_bytes_of_a_claim(d: &Desk) {
    for id in ["a", "b", "c"] {
        stepped(d, id, 20).await;
    }
    d.pass(20);
    d.tick().await;
    // The first takes 20 and 20 of its 45, the second 20 and 10, and the third finds 10.
    assert_eq!(came(d, d.claim().row_bytes(45).claim_bytes(80)).await, [(true, 2), (true, 2), (false, 0)]);
}

async fn a_revision_is_nothing_to_the_internal_queue(d: &Desk) {
    d.put(d.job_on(wire::INTERNAL_QUEUE, "w")).await;
    let claimed = d.take(d.claim_on(wire::INTERNAL_QUEUE).revision(Revision(7))).await;
    assert_eq!((rows(&claimed), claimed.stop), (vec!["w".to_owned()], Stop::Drained));
}

async fn parked_rows_drain_a_queue_too(d: &Desk) {
    d.enqueue("w").await;
    let parking = vec![Registered { max_attempts: 0, ..Registered::new(WORK) }];
    let claimed = d.take(d.claim().names(parking).budget(2)).await;
    assert_eq!((texts(&claimed.parked), claimed.stop), (vec!["w".to_owned()], Stop::Drained));
}

/// In the millisecond of the submit the start stamp is one later, and the deadline is not.
async fn a_deadline_is_a_timeout_after_the_claim(d: &Desk) {
    d.put(d.job("w").timeout(ms(5_000))).await;
    let claimed = d.take(d.claim()).await;
    let row = &claimed.rows[0].row;
    assert_eq!((row.deadline, claimed.now), (Some(d.now() + ms(5_000)), d.now()));
    assert_eq!(row.started_at, Some(d.now() + ms(1)));
}

async fn a_passed_deadline_alone_keeps_no_row_from_a_claim(d: &Desk) {
    d.put(d.job("w").deadline(ms(10))).await;
    d.pass(20);
    assert_eq!(d.take_ids(d.claim()).await, ["w"]);
    assert_eq!((texts(&d.tick().await.cancelled), d.status("w").await), (vec!["w".to_owned()], Status::Cancelled));
}

async fn is_due(d: &Desk, probe: Probe) -> bool {
    let probed = d.store().queue_probe(probe.queues(vec![Q.into()])).await.expect("probed");
    probed.due == [Q]
}

/// Functions with one bad part each.
fn bad_functions() -> Vec<Registered> {
    let mut found = Vec::new();
    for (name, part) in [("", "".to_owned()), ("a\0b", "a\0b".to_owned()), (&"x".repeat(513), "x".repeat(256))] {
        let part = part.as_str();
        found.push(Registered::new(name));
        found.push(Registered { class: Some(part.into()), ..Registered::new(WORK) });
        found.push(Registered { config: Some(part.into()), ..Registered::new(WORK) });
    }
    found
}

async fn functions_of_a_claim_are_bounded(d: &Desk) {
    d.enqueue("w").await;
    for bad in bad_functions() {
        let claim = d.claim().names(vec![Registered::new(WORK), bad.clone()]);
        let error = d.store().queue_claim(claim).await.expect_err("a bad name");
        assert_eq!((field(&error).as_str(), error.op()), ("claim.names", "queue_claim"), "{bad:?}");
    }
    assert_eq!(d.status("w").await, Status::Enqueued);
}

async fn names_of_a_probe_are_bounded(d: &Desk) {
    let probe = || Probe::new(APP, V1).queues(vec![Q.into()]).names(vec![Registered::new(WORK)]);
    let mut cases: Vec<(&str, Probe)> =
        bad_functions().into_iter().map(|bad| ("probe.names", probe().names(vec![bad]))).collect();
    for bad in ["", "a\0b", &"x".repeat(513)] {
        cases.push(("probe.app", Probe::new(bad, V1)));
        cases.push(("probe.version", Probe::new(APP, bad)));
        cases.push(("probe.queues", probe().queues(vec![Q.into(), bad.into()])));
    }
    for (name, probe) in cases {
        let error = d.store().queue_probe(probe).await.expect_err("a bad name");
        assert_eq!((field(&error).as_str(), error.op()), (name, "queue_probe"));
    }
}

async fn a_probe_goes_by_the_latest_version(d: &Desk) {
    d.enqueue("w").await;
    let of = |version: &str| Probe::new(APP, version).names(vec![Registered::new(WORK)]);
    assert!(is_due(d, of("v1")).await && is_due(d, of("v2")).await, "no version is registered");
    for version in ["v1", "v2"] {
        let reply = d.store().version_register(&APP.into(), &version.into()).await.expect("answered");
        assert_eq!(reply, VersionReply::Created);
    }
    assert!(is_due(d, of("v2")).await && !is_due(d, of("v1")).await && !is_due(d, of("v3")).await);
}

async fn a_probe_goes_by_class_and_instance(d: &Desk) {
    d.put(d.job("w").class("C").config("i")).await;
    let of = |class: Option<&str>, config: Option<&str>| {
        let (class, config) = (class.map(Into::into), config.map(Into::into));
        Probe::new(APP, V1).names(vec![Registered { class, config, ..Registered::new(WORK) }])
    };
    for (class, config) in [(None, None), (Some("C"), None), (None, Some("i")), (Some("C"), Some("j"))] {
        assert!(!is_due(d, of(class, config)).await, "{class:?} {config:?}");
    }
    assert!(is_due(d, of(Some("C"), Some("i"))).await);
}

fn unowned(mut submit: Submit) -> Submit {
    submit.app = None;
    submit
}

async fn a_probe_finds_unowned_rows(d: &Desk) {
    d.put(unowned(d.job("w"))).await;
    for app in [APP, "else"] {
        assert!(is_due(d, Probe::new(app, V1).names(vec![Registered::new(WORK)])).await, "{app}");
    }
    let claimed = d.take(Claim::new(Q, E2, "else", V1, d.token()).names(vec![Registered::new(WORK)])).await;
    assert_eq!(claimed.rows.len(), 1);
    assert!(!is_due(d, Probe::new(APP, V1).names(vec![Registered::new(WORK)])).await);
}

async fn a_probe_tells_when_an_unowned_row_is_due(d: &Desk) {
    let next = async || d.store().queue_probe(Probe::new(APP, V1)).await.expect("probed").next_due;
    d.put(unowned(d.later("unowned", 3_000))).await;
    assert_eq!(next().await, Some(ms(3_000)));
    d.put(d.later("own", 2_000)).await;
    assert_eq!(next().await, Some(ms(2_000)));
    d.put(unowned(d.later("sooner", 1_000))).await;
    assert_eq!(next().await, Some(ms(1_000)));
    assert_eq!(d.take_ids(Claim::new(Q, E1, APP, V1, d.token())).await, [""; 0]);
}
