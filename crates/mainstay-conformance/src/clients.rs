//! Clients at work at once, each on a thread of its own: what a simulation cannot show of a backend with threads.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Barrier};

use mainstay_env::block_on;
use mainstay_store::Store;

use crate::desk::Desk;

/// What one client does.
pub(crate) type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Keeps a client back by so many reads, so that rounds of one race meet at different moments.
pub(crate) async fn held_back(store: &Arc<dyn Store>, reads: u32) {
    for _ in 0..reads {
        store.workflow_standing(&["nobody".into()]).await.expect("read");
    }
}

/// Lets all clients begin at the same moment and waits for all of them; their results in order.
pub(crate) async fn at_once<T: Send + 'static>(d: &Desk, works: Vec<Work<T>>) -> Vec<T> {
    // This thread is the last to come, or the last client would always be the first to go on.
    let begin = Arc::new(Barrier::new(works.len() + 1));
    let mut tasks = Vec::new();
    for (n, work) in works.into_iter().enumerate() {
        let begin = begin.clone();
        let client = move || {
            begin.wait();
            block_on(work)
        };
        tasks.push(d.env().tasks().thread(format!("client {n}"), client).expect("a thread for a client"));
    }
    begin.wait();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.unwrap_or_else(|error| panic!("a client failed: {error}")));
    }
    results
}
