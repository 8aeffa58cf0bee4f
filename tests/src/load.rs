//! The work of a test: its queues with their limits, and rows that are spread over them.

use std::time::Duration;

use mainstay_store::{Limits, Place, Rate, RegisterQueue, Store, StoreError, Submit, Unit};

/// The application of all processes.
pub const APP: &str = "app";

/// Its version.
pub const VERSION: &str = "app@1";

/// The one function.
pub const JOB: &str = "job";

/// The queue without a limit.
pub const OPEN: &str = "open";

/// The queue with limits of the fleet and of a process.
pub const BOUNDED: &str = "bounded";

/// The queue with a rate.
pub const RATED: &str = "rated";

/// Running at once on [`BOUNDED`]: in all, and in one process.
pub const FLEET: u32 = 24;

/// See [`FLEET`].
pub const PROCESS: u32 = 16;

/// Starts on [`RATED`] in a window of [`PERIOD`].
pub const STARTS: u32 = 100;

/// See [`STARTS`].
pub const PERIOD: Duration = Duration::from_millis(500);

/// Rows of one commit.
const CHUNK: usize = 500;

/// Registers the three queues.
///
/// # Errors
/// Those of the store.
pub async fn register(store: &dyn Store) -> Result<(), StoreError> {
    let bounded = Limits { concurrency: Some(FLEET), worker_concurrency: Some(PROCESS), ..Limits::default() };
    let rated = Limits { rate: Some(Rate { starts: STARTS, period: PERIOD }), ..Limits::default() };
    for (name, limits) in [(OPEN, Limits::default()), (BOUNDED, bounded), (RATED, rated)] {
        store.queue_register(RegisterQueue::new(name, APP).limits(limits)).await?;
    }
    Ok(())
}

/// The queue of a row by its id, which begins with it.
#[must_use]
pub fn queue_of(id: &str) -> String {
    id.split('-').next().unwrap_or_default().to_owned()
}

/// The id of the row with this number: of ten rows six are on [`OPEN`], three on [`BOUNDED`] and one on [`RATED`].
#[must_use]
pub fn id(number: u32) -> String {
    let queue = match number % 10 {
        0..=5 => OPEN,
        6..=8 => BOUNDED,
        _ => RATED,
    };
    format!("{queue}-{number}")
}

/// Enqueues the rows with these numbers.
///
/// # Errors
/// Those of the store, and a row that was not made.
pub async fn enqueue(store: &dyn Store, numbers: std::ops::Range<u32>) -> Result<(), String> {
    let units: Vec<Unit> = numbers
        .map(|number| {
            let id = id(number);
            let place = Place::queue(queue_of(&id));
            Unit::new().effect(Submit::new(&id, JOB, format!("t{number}"), place).app(APP).input("[1]"))
        })
        .collect();
    for chunk in units.chunks(CHUNK) {
        let committed = store.commit(chunk).await.map_err(|error| error.to_string())?;
        let lost = committed.units.iter().find(|reply| !reply.as_ref().is_ok_and(|reply| reply.is_done()));
        lost.map_or(Ok(()), |reply| Err(format!("a row was not enqueued: {reply:?}")))?;
    }
    Ok(())
}
