//! What a database of the shared schema has, by its catalog: numbers are not asked.

/// The parts of the schema that later numbers of the ladder brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Layout {
    /// The recorded number.
    pub(crate) number: i64,
    /// Payloads have tables of their own: `workflow_input`, `workflow_output` and `operation_outputs.retention_timestamp`.
    pub(crate) split: bool,
    /// `workflow_status.creator_xid` is there, and so `owner_xid` is the token of the owning execution.
    pub(crate) owner: bool,
    /// `notifications.consumed_by_function_id` is there.
    pub(crate) consumed_by: bool,
    /// `workflow_status.inputs`, `output` and `error` are still there.
    pub(crate) inline: bool,
}
