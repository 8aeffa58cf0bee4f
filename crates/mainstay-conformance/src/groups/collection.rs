//! Group `workflows`: what a collection does for several owners, and what it may not be asked.

use mainstay_store::{Collect, Status};

use crate::desk::{APP, Desk, field, ms};

cases! { "workflows";
    a_collection_takes_own_and_unowned_rows_in_one_order;
    a_collection_goes_by_the_last_end;
    names_of_a_collection_are_bounded;
}

async fn collect(d: &Desk, age: u64, limit: u32) -> u32 {
    d.store().collect(Collect::new(APP, ms(age)).limit(limit)).await.expect("collected").removed
}

async fn a_collection_takes_own_and_unowned_rows_in_one_order(d: &Desk) {
    for (id, app) in [("d", None), ("c", Some(APP)), ("b", None), ("a", Some(APP))] {
        let mut submit = d.job(id);
        submit.app = app.map(Into::into);
        d.put(submit).await;
        d.cancel(id).await;
        d.pass(10);
    }
    for id in ["d", "c", "b", "a"] {
        assert!(d.find(id).await.is_some(), "{id} went too early");
        assert_eq!((collect(d, 0, 1).await, d.find(id).await), (1, None));
    }
}

/// A row that was resumed and has ended again is as old as its second end.
async fn a_collection_goes_by_the_last_end(d: &Desk) {
    d.enqueue("w").await;
    d.cancel("w").await;
    d.pass(10_000);
    d.resume("w").await;
    assert_eq!(collect(d, 0, 10).await, 0);
    d.pass(10_000);
    d.cancel("w").await;
    d.pass(5_000);
    assert_eq!((collect(d, 5_001, 10).await, d.status("w").await), (0, Status::Cancelled));
    assert_eq!((collect(d, 5_000, 10).await, d.find("w").await), (1, None));
}

async fn names_of_a_collection_are_bounded(d: &Desk) {
    d.enqueue("w").await;
    d.cancel("w").await;
    let long = "x".repeat(513);
    for bad in ["", "a\0b", &long] {
        let error = d.store().collect(Collect::new(bad, ms(0))).await.expect_err("a bad name");
        assert_eq!((field(&error).ends_with("app"), error.op()), (true, "collect"));
    }
    assert_eq!(d.status("w").await, Status::Cancelled);
}
