//! Group `errors`: a store in trouble says so by kind and method, leaves no half of a call behind, and the same call sent
//! again afterwards ends as if it had been the first.

use mainstay_store::wrap::Method::{self, *};
use mainstay_store::{
    Audit, Beat, Change, Claim, ClaimedRow, ErrorKind, Fence, HeldRow, Joining, Limits, OnHeld, Outcome, Place, Probe,
    Queue, QueueChange, QueueReply, ReadSteps, RegisterQueue, Registered, Result, Revision, Standing, Status, Submit,
    TakeOver, Ticked, Timestamp, Unit, UpdateQueue,
};

use crate::case::Case;
use crate::desk::{APP, Desk, E1, E2, Q, V1, WORK, ids, ms, rows, step, success, texts};
use crate::trouble::Trouble;

/// Declares a case for each method and kind.
macro_rules! failing {
    ($($kind:ident: $($name:ident $method:ident,)*;)*) => {
        const FAILING: &[Case] = &[$($(
            Case::new("errors", stringify!($name), |desk| Box::pin(fails(desk, ErrorKind::$kind, $method)))
                .trouble(Trouble::Fails(ErrorKind::$kind, $method)),
        )*)*];
    };
}

failing! {
    Unavailable:
        an_unavailable_commit_is_whole_or_nothing Commit,
        unavailable_standings_are_read_afterwards WorkflowStanding,
        unavailable_rows_are_read_afterwards WorkflowRows,
        unavailable_steps_are_read_afterwards WorkflowSteps,
        an_unavailable_input_is_read_afterwards WorkflowInput,
        an_unavailable_holder_is_read_afterwards WorkflowHolder,
        an_unavailable_claim_is_whole_or_nothing QueueClaim,
        an_unavailable_probe_is_answered_afterwards QueueProbe,
        an_unavailable_audit_is_answered_afterwards QueueAudit,
        an_unavailable_registration_is_whole_or_nothing QueueRegister,
        an_unavailable_change_of_a_queue_is_whole_or_nothing QueueUpdate,
        an_unavailable_deletion_of_a_queue_is_whole_or_nothing QueueDelete,
        an_unavailable_list_of_queues_is_read_afterwards QueueList,
        an_unavailable_version_is_whole_or_nothing VersionRegister,
        an_unavailable_promotion_is_whole_or_nothing VersionPromote,
        an_unavailable_list_of_versions_is_read_afterwards VersionList,
        an_unavailable_beat_is_whole_or_nothing LeaseBeat,
        an_unavailable_list_of_leases_is_read_afterwards LeaseList,
        an_unavailable_take_over_is_whole_or_nothing LeaseTakeOver,
        an_unavailable_tick_is_made_up_for_by_the_next Tick,
        an_unavailable_collection_is_whole_or_nothing Collect,
    ;
    Full:
        a_commit_without_space_writes_nothing Commit,
        a_claim_without_space_takes_nothing QueueClaim,
        a_registration_without_space_writes_nothing QueueRegister,
        a_change_of_a_queue_without_space_writes_nothing QueueUpdate,
        a_deletion_of_a_queue_without_space_writes_nothing QueueDelete,
        a_version_without_space_is_not_registered VersionRegister,
        a_promotion_without_space_writes_nothing VersionPromote,
        a_beat_without_space_opens_no_lease LeaseBeat,
        a_take_over_without_space_ends_no_lease LeaseTakeOver,
        a_tick_without_space_releases_nothing Tick,
        a_collection_without_space_removes_nothing Collect,
    ;
    Contended:
        a_contended_commit_writes_nothing Commit,
        a_contended_registration_writes_nothing QueueRegister,
        a_contended_change_of_a_queue_writes_nothing QueueUpdate,
        a_contended_deletion_of_a_queue_writes_nothing QueueDelete,
        a_contended_version_is_not_registered VersionRegister,
        a_contended_promotion_writes_nothing VersionPromote,
        a_contended_beat_opens_no_lease LeaseBeat,
        a_contended_take_over_ends_no_lease LeaseTakeOver,
        a_contended_tick_releases_nothing Tick,
        a_contended_collection_removes_nothing Collect,
    ;
}

const MALFORMED: &[Case] = &[
    Case::new("errors", "a_tick_names_a_queue_that_it_cannot_read", |d| Box::pin(a_tick_names_a_bad_queue(d)))
        .trouble(Trouble::MalformedQueue(Q)),
    Case::new("errors", "a_malformed_queue_leaves_the_claims_of_others_alone", |d| Box::pin(others_are_claimed(d)))
        .trouble(Trouble::MalformedQueue(Q)),
    Case::new("errors", "a_claim_parks_a_row_that_it_cannot_read", |d| Box::pin(a_claim_parks_a_bad_row(d)))
        .trouble(Trouble::MalformedWorkflow(BAD)),
];

/// The cases of the group.
pub(crate) fn cases() -> Vec<Case> {
    [FAILING, MALFORMED].concat()
}

/// Workflows of a scene, those that its calls make included.
const ALL: [&str; 11] =
    ["mine", "held", "old", "delayed", "late", "waiting", "next", "last", "child", "second", "apart"];

/// A queue that a scene changes and deletes.
const OTHER: &str = "other";

/// Something of everything, so that each method has something to read and to write; the fence of the running `mine`.
async fn scene(d: &Desk) -> Fence {
    let fence = d.start("mine").await;
    d.record(&fence, 0, "1").await;
    d.enqueue("held").await;
    assert_eq!(d.take_ids(d.claim_by(E2)).await, ["held"]);
    d.make("old", Status::Success).await;
    d.put(d.later("delayed", 1_000)).await;
    d.put(d.later("late", 9_000).deadline(ms(1_500))).await;
    let key = Joining { key: "key".into(), on_held: OnHeld::Reject };
    d.put(d.job("waiting").input("[2]").dedup(key)).await;
    d.register(OTHER, Limits { concurrency: Some(2), ..Limits::default() }).await;
    for version in ["v0", V1] {
        d.store().version_register(&APP.into(), &version.into()).await.expect("registered");
    }
    d.pass(2_000);
    for id in ["next", "last"] {
        d.enqueue(id).await;
    }
    fence
}

/// Makes the one call of a method, as its first try or as a repeat, and describes the answer: all of it but fences,
/// revisions and stamps, which are a backend's own.
async fn call(d: &Desk, method: Method, fence: &Fence, repeat: bool) -> Result<String> {
    let (store, app) = (d.store(), APP.into());
    Ok(match method {
        Commit => format!("{:?}", store.commit(&batch(fence)).await?.units),
        WorkflowStanding => format!("{:?}", store.workflow_standing(&ids(&ALL)).await?),
        WorkflowRows => format!("{:?}", store.workflow_rows(&ids(&ALL)).await?),
        WorkflowSteps => format!("{:?}", store.workflow_steps(ReadSteps::new("mine")).await?),
        WorkflowInput => format!("{:?}", store.workflow_input(&"waiting".into()).await?),
        WorkflowHolder => format!("{:?}", store.workflow_holder(&Q.into(), &"key".into()).await?),
        QueueClaim => {
            // Two of three rows: a repeat that is not known as such would take the third.
            let claim = Claim::new(Q, E1, APP, V1, "the claim").names(vec![Registered::new(WORK)]).budget(2);
            let claimed = store.queue_claim(claim.repeat(repeat)).await?;
            let taken: Vec<_> =
                claimed.rows.iter().map(|ClaimedRow { row, input, steps, .. }| (row, input, steps)).collect();
            format!("{taken:?} {:?} {:?}", claimed.parked, claimed.stop)
        }
        QueueProbe => {
            let names = vec![Registered::new(WORK)];
            format!(
                "{:?}",
                store.queue_probe(Probe::new(APP, V1).queues(vec![Q.into(), OTHER.into()]).names(names)).await?
            )
        }
        QueueAudit => format!("{:?}", held_by(&store.queue_audit(Audit::new(E2)).await?.rows)),
        QueueRegister => {
            let limits = Limits { concurrency: Some(3), ..Limits::default() };
            replied(store.queue_register(RegisterQueue::new("new", APP).limits(limits)).await?)
        }
        QueueUpdate => {
            let change = QueueChange { concurrency: Change::Set(4), ..QueueChange::default() };
            replied(store.queue_update(UpdateQueue::new(OTHER, APP, change)).await?)
        }
        QueueDelete => format!("{}", store.queue_delete(&app, &OTHER.into()).await?),
        QueueList => format!("{:?}", plain(store.queue_list(&app).await?)),
        VersionRegister => format!("{:?}", store.version_register(&app, &"v2".into()).await?),
        VersionPromote => format!("{:?}", store.version_promote(&app, &"v0".into()).await?),
        VersionList => format!("{:?}", store.version_list(&app).await?),
        LeaseBeat => format!("{:?}", store.lease_beat(Beat::new("three~1", APP, 1_u64)).await?),
        LeaseList => format!("{:?}", store.lease_list(&app).await?),
        LeaseTakeOver => format!("{:?}", store.lease_take_over(TakeOver::new(E2, 1_u64)).await?),
        Tick => ticked(store.tick(mainstay_store::Tick::new(APP).beat(Beat::new(E1, APP, 2_u64))).await?),
        Collect => format!("{:?}", store.collect(mainstay_store::Collect::new(APP, ms(0))).await?),
        other => unreachable!("{other} is of an optional part"),
    })
}

/// Two units, the second with several writes of several kinds.
fn batch(fence: &Fence) -> [Unit; 2] {
    let submit = |id: &str| Submit::new(id, WORK, format!("of {id}"), Place::queue(Q)).app(APP).input("[3]");
    let several = Unit::by(fence).step(step(1, "2")).effect(submit("child")).effect(submit("second"));
    [Unit::new().effect(submit("apart")), several.outcome(success("end"))]
}

fn plain(queues: Vec<Queue>) -> Vec<Queue> {
    let plain = |mut queue: Queue| {
        queue.revision = Revision(0);
        queue
    };
    queues.into_iter().map(plain).collect()
}

fn replied(reply: QueueReply) -> String {
    let (said, queue) = match reply {
        QueueReply::Created(queue) => ("created", queue),
        QueueReply::Updated(queue) => ("updated", queue),
        QueueReply::Kept(queue) => ("kept", queue),
        other => panic!("the queue is not there: {other:?}"),
    };
    format!("{said} {:?}", plain(vec![queue]))
}

fn ticked(ticked: Ticked) -> String {
    let Ticked { now, released, cancelled, beat, queues, next_due, leases, malformed, .. } = ticked;
    let queues = queues.map(plain);
    format!("{now:?} {released:?} {cancelled:?} {beat:?} {queues:?} {next_due:?} {leases:?} {malformed:?}")
}

fn held_by(rows: &[HeldRow]) -> Vec<(String, Timestamp)> {
    rows.iter().map(|row| (row.fence.workflow().to_string(), row.created_at)).collect()
}

/// All that the store holds, as its reads tell it.
async fn contents(d: &Desk) -> Vec<String> {
    let (store, app) = (d.store(), APP.into());
    let mut all = Vec::new();
    for id in ALL {
        let row = d.find(id).await;
        let (steps, input) = match &row {
            Some(_) => (d.steps(id).await, store.workflow_input(&id.into()).await.expect("read")),
            None => (Vec::new(), None),
        };
        all.push(format!("{row:?} {:?} {steps:?} {input:?}", d.standing(id).await));
    }
    for executor in [E1, E2] {
        let held = store.queue_audit(Audit::new(executor)).await.expect("audited");
        all.push(format!("{executor} {:?}", held_by(&held.rows)));
    }
    all.push(format!("{:?}", store.workflow_holder(&Q.into(), &"key".into()).await.expect("read")));
    all.push(format!("{:?}", store.lease_list(&app).await.expect("listed").leases));
    all.push(format!("{:?}", plain(store.queue_list(&app).await.expect("listed"))));
    all.push(format!("{:?}", store.version_list(&app).await.expect("listed")));
    all
}

const fn writes(method: Method) -> bool {
    matches!(
        method,
        Commit
            | QueueClaim
            | QueueRegister
            | QueueUpdate
            | QueueDelete
            | VersionRegister
            | VersionPromote
            | LeaseBeat
            | LeaseTakeOver
            | Tick
            | Collect
    )
}

/// The case of one method and kind. What the call does is learnt from a twin without trouble.
async fn fails(d: &Desk, kind: ErrorKind, method: Method) {
    let twin = d.twin().await;
    let (fence, twins) = (scene(d).await, scene(&twin).await);
    let before = contents(d).await;
    assert_eq!(before, contents(&twin).await, "both begin alike");
    let answer = call(&twin, method, &twins, false).await.expect("a store without trouble answers");
    let done = contents(&twin).await;
    assert_eq!(done != before, writes(method), "a write has something to write");

    let trouble = d.trouble(Trouble::Fails(kind, method)).await;
    let error = call(d, method, &fence, false).await.expect_err("a store in trouble");
    assert_eq!((error.kind(), error.op()), (kind, method.name()), "{error}");
    drop(trouble);
    let after = contents(d).await;
    let expected = if kind.outcome_unknown() && writes(method) && after == done {
        // It was executed and its answer lost.
        call(&twin, method, &twins, true).await.expect("a store without trouble answers")
    } else {
        assert_eq!(after, before, "nothing is written");
        answer
    };
    let again = call(d, method, &fence, true).await.expect("the trouble is gone");
    assert_eq!(again, expected, "it is answered as without trouble");
    assert_eq!(contents(d).await, done, "it ends as a call without trouble does");
}

fn names(queues: &[Queue]) -> Vec<&str> {
    queues.iter().map(|queue| queue.name.as_str()).collect()
}

async fn a_tick_names_a_bad_queue(d: &Desk) {
    d.register("sound", Limits::default()).await;
    let _trouble = d.trouble(Trouble::MalformedQueue(Q)).await;
    let ticked = d.tick().await;
    assert_eq!(ticked.malformed, [Q]);
    assert_eq!(names(&ticked.queues.expect("the set")), ["sound"]);
    let seen = d.store().tick(mainstay_store::Tick::new(APP).seen(ticked.stamp)).await.expect("ticked");
    assert_eq!(seen.queues, None);
}

async fn others_are_claimed(d: &Desk) {
    d.register("sound", Limits::default()).await;
    d.enqueue("bad").await;
    d.put(d.job_on("sound", "good")).await;
    let _trouble = d.trouble(Trouble::MalformedQueue(Q)).await;
    assert_eq!(rows(&d.take(d.claim_on("sound")).await), ["good"]);
    assert_eq!(d.status("bad").await, Status::Enqueued);
}

/// A workflow whose row is made unreadable.
const BAD: &str = "bad";

async fn a_claim_parks_a_bad_row(d: &Desk) {
    for id in [BAD, "good"] {
        d.enqueue(id).await;
        d.pass(1);
    }
    let _trouble = d.trouble(Trouble::MalformedWorkflow(BAD)).await;
    let claimed = d.take(d.claim()).await;
    assert_eq!((rows(&claimed), texts(&claimed.parked)), (vec!["good".to_owned()], vec![BAD.to_owned()]));
    match d.standing(BAD).await {
        Standing::Ended(Outcome::Parked(reason)) => assert!(reason.as_str().contains("Unreadable"), "{reason:?}"),
        other => panic!("it is not parked: {other:?}"),
    }
    assert_eq!(d.take_ids(d.claim()).await, [""; 0]);
}
