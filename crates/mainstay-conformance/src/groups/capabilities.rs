//! Group `capabilities`: what a backend says it can do, and what it answers where it cannot.

use mainstay_store::{Aggregate, Capability, Effect, ErrorKind, Mail, Refusal, Schedule, Unit, WorkflowFilter};

use crate::desk::{Desk, ms};

cases! { "capabilities";
    an_effect_that_is_not_known_refuses_its_unit;
    reads_of_signals_answer_unsupported_without_them;
    reads_of_schedules_answer_unsupported_without_them;
    lists_and_archives_answer_unsupported_without_admin;
    they_stay_while_the_store_is_used;
}

/// Every effect that goes by a capability which the backend lacks.
pub(super) fn unsupported(d: &Desk) -> Vec<Effect> {
    let mut effects = Vec::new();
    if !d.has(Capability::Signals) {
        let key = || "key".into();
        effects.extend([
            Effect::Mail(Mail::new("m", "w", "\"body\"")),
            Effect::RecvTake { at: 0.into(), message: "m".into() },
            Effect::SetEvent { at: 0.into(), key: key(), value: "1".into(), codec: None },
            Effect::StreamWrite { at: 0.into(), key: key(), value: "1".into(), codec: None },
            Effect::StreamClose { at: 0.into(), key: key() },
        ]);
    }
    if !d.has(Capability::Rewind) {
        effects.push(Effect::Rewind { id: "other".into(), below: 0.into() });
    }
    if !d.has(Capability::Debounce) {
        let (queue, dedup) = ("q".into(), "key".into());
        effects.push(Effect::Debounce { queue, dedup, push: ms(10), input: "[]".into() });
    }
    if !d.has(Capability::Schedules) {
        effects.push(Effect::Schedule(Schedule { name: "nightly".into(), change: "{}".into() }));
    }
    effects
}

async fn an_effect_that_is_not_known_refuses_its_unit(d: &Desk) {
    let fence = d.start("w").await;
    d.enqueue("other").await;
    for effect in unsupported(d) {
        let unit = Unit::by(&fence).effect(d.job("child")).effect(effect.clone());
        assert_eq!(d.refused(unit).await, (1, Refusal::Unsupported), "{effect:?}");
        assert_eq!(d.find("child").await, None, "{effect:?}");
    }
}

fn says<T: std::fmt::Debug>(has: bool, answer: mainstay_store::Result<T>) {
    let unsupported = answer.as_ref().is_err_and(|error| error.kind() == ErrorKind::Unsupported);
    assert_eq!(unsupported, !has, "{answer:?}");
}

async fn reads_of_signals_answer_unsupported_without_them(d: &Desk) {
    let (has, store) = (d.has(Capability::Signals), d.store());
    d.enqueue("w").await;
    says(has, store.message_peek(&"w".into(), None).await);
    says(has, store.event_get(&"w".into(), &"key".into()).await);
    says(has, store.stream_read(&"w".into(), &"key".into(), 0).await);
}

async fn reads_of_schedules_answer_unsupported_without_them(d: &Desk) {
    let (has, store) = (d.has(Capability::Schedules), d.store());
    says(has, store.schedule_get(&"nightly".into()).await);
    says(has, store.schedule_list(&"shop".into()).await);
}

async fn lists_and_archives_answer_unsupported_without_admin(d: &Desk) {
    let (has, store) = (d.has(Capability::Admin), d.store());
    d.enqueue("w").await;
    says(has, store.workflow_list(WorkflowFilter::new()).await);
    says(has, store.workflow_aggregate(Aggregate::new(WorkflowFilter::new())).await);
    says(has, store.workflow_export(&["w".into()]).await);
    says(has, store.workflow_import(&[]).await);
}

async fn they_stay_while_the_store_is_used(d: &Desk) {
    let before = d.store().capabilities();
    assert_eq!(d.declared(), before, "the backend declares what its store says");
    d.enqueue("w").await;
    d.tick().await;
    assert!(before.iter().all(|capability| d.has(capability)), "a capability was lost");
}
