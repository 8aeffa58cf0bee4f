//! Reads of schedules; their changes are effects.

use async_trait::async_trait;

use crate::error::{Result, StoreError};
use crate::model::{AppName, Payload, ScheduleName};

record! {
    /// A schedule as an encoded record; the schedule capability fixes its form.
    ScheduleRow {
        required {
            /// Its name.
            name: ScheduleName,
            /// What is stored.
            record: Payload,
        }
        optional {}
        default {}
    }
}

/// Reads of schedules; capability `schedules`.
#[async_trait]
pub trait ScheduleStore: Send + Sync {
    /// One schedule.
    ///
    /// Atomic: one snapshot. Idempotent: yes. Errors: `Unsupported`, `Unavailable`, `Timeout`.
    async fn schedule_get(&self, _name: &ScheduleName) -> Result<Option<ScheduleRow>> {
        Err(StoreError::unsupported("schedule_get", "schedules"))
    }

    /// The schedules of an application and of none, by name.
    ///
    /// Atomic: one snapshot. Idempotent: yes. Errors: `Unsupported`, `Unavailable`, `Timeout`.
    async fn schedule_list(&self, _app: &AppName) -> Result<Vec<ScheduleRow>> {
        Err(StoreError::unsupported("schedule_list", "schedules"))
    }
}
