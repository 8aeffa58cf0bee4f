//! Rate, waiting times and memory of a run.

use std::time::Duration;

use mainstay_store::{Store, WorkflowId};

/// Ids in one question to the store.
const BATCH: usize = 500;

/// Tells the figures of a run that has ingested `files` files.
pub(crate) async fn tell(store: &dyn Store, ids: &[WorkflowId], took: Duration, files: u64) -> Result<String, String> {
    let mut waits = Vec::with_capacity(ids.len());
    for ids in ids.chunks(BATCH) {
        let rows = store.workflow_rows(ids).await.map_err(|error| error.to_string())?;
        let wait = rows.into_iter().flatten().filter_map(|row| Some(row.started_at?.since(row.created_at)));
        waits.extend(wait);
    }
    waits.sort_unstable();
    let rate = files as f64 / took.as_secs_f64().max(f64::EPSILON);
    let (half, most) = (share(&waits, 50), share(&waits, 99));
    let memory = peak_memory().map_or_else(|| "unknown".to_owned(), |kib| format!("{} MiB", kib / 1024));
    Ok(format!(
        "{files} files in {took:.2?}, {rate:.0} a second; from enqueue to start p50 {half:.1?}, p99 {most:.1?}; peak memory {memory}"
    ))
}

/// The value below which a share of sorted values lies, in percent.
fn share(sorted: &[Duration], percent: usize) -> Duration {
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or_default()
}

/// Most resident memory of this process in KiB, where the system tells it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_the_smallest_value_that_covers_it() {
        let values: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        assert_eq!(share(&values, 50), Duration::from_millis(100));
        assert_eq!(share(&values, 99), Duration::from_millis(198));
        assert_eq!(share(&values[..1], 99), Duration::from_millis(1));
        assert_eq!(share(&[], 50), Duration::ZERO);
    }
}
