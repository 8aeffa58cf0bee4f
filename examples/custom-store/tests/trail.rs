//! A workflow on a store of one's own: everything that it records goes through that store.

use std::sync::Arc;

use mainstay_custom_store_example::{Trailed, run};

#[tokio::test]
async fn a_workflow_runs_on_a_store_of_ones_own_and_leaves_its_trail() {
    let store = Arc::new(Trailed::over(mainstay::memory()));
    assert_eq!(run(store.clone()).await.expect("a result"), "a mail says: paid 995 cents");
    let trail = store.trail();
    let own: Vec<_> =
        trail.iter().filter(|entry| entry.workflow.as_ref().is_some_and(|id| *id == *"order-42")).collect();
    let steps: Vec<&str> = own.iter().flat_map(|entry| &entry.steps).map(|name| name.as_str()).collect();
    assert_eq!(steps, ["charge", "mail"], "each step was recorded once, in order: {trail:?}");
    let ends: Vec<bool> = own.iter().map(|entry| entry.ends).collect();
    assert_eq!(ends.iter().filter(|ends| **ends).count(), 1, "and the workflow ended once: {trail:?}");
    assert_eq!(ends.last(), Some(&true), "at last: {trail:?}");
}

#[tokio::test]
async fn a_workflow_that_has_ended_is_not_run_again_on_the_same_store() {
    let store = Arc::new(Trailed::over(mainstay::memory()));
    let first = run(store.clone()).await.expect("a result");
    let recorded = |store: &Trailed| store.trail().iter().map(|entry| entry.steps.len()).sum::<usize>();
    let before = recorded(&store);
    assert_eq!(run(store.clone()).await.expect("the same result"), first);
    assert_eq!((before, recorded(&store)), (2, 2));
}
