//! Rows as the shared tables store them, and as the contract names them. Columns are found by their names there.

use std::sync::Arc;
use std::time::Duration;

use mainstay_store::{
    Caller, Outcome, Payload, Position, RecordedStep, Standing, Status, StepName, StepResult, Timestamp, WorkflowId,
    WorkflowName, WorkflowRow,
};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::fault::Fault;

/// A column of any type; what cannot be read names the column.
pub(crate) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: &str) -> Result<T, Fault> {
    row.try_get(column).map_err(|error| Fault::unreadable(column, error))
}

/// A text column as any of the contract's names.
pub(crate) fn text<T: From<Arc<str>>>(row: &Row, column: &str) -> Result<T, Fault> {
    Ok(Arc::<str>::from(get::<&str>(row, column)?).into())
}

/// The same where it may be NULL.
pub(crate) fn text_if<T: From<Arc<str>>>(row: &Row, column: &str) -> Result<Option<T>, Fault> {
    Ok(get::<Option<&str>>(row, column)?.map(|text| Arc::<str>::from(text).into()))
}

/// The same where peers write an empty text for none.
pub(crate) fn filled_if<T: From<Arc<str>>>(row: &Row, column: &str) -> Result<Option<T>, Fault> {
    let stored = get::<Option<&str>>(row, column)?.filter(|text| !text.is_empty());
    Ok(stored.map(|text| Arc::<str>::from(text).into()))
}

/// A stamp.
pub(crate) fn stamp(row: &Row, column: &str) -> Result<Timestamp, Fault> {
    Ok(Timestamp::from_millis(get(row, column)?))
}

/// A stamp that may be NULL.
pub(crate) fn stamp_if(row: &Row, column: &str) -> Result<Option<Timestamp>, Fault> {
    Ok(get::<Option<i64>>(row, column)?.map(Timestamp::from_millis))
}

/// A number that is not negative and may be NULL.
pub(crate) fn whole_if<T: TryFrom<i64>>(row: &Row, column: &str) -> Result<Option<T>, Fault> {
    let whole =
        |stored| T::try_from(stored).map_err(|_| Fault::unreadable(column, format!("{stored} is out of range")));
    get::<Option<i64>>(row, column)?.map(whole).transpose()
}

/// A payload that may be NULL.
pub(crate) fn payload_if(row: &Row, column: &str) -> Result<Option<Payload>, Fault> {
    Ok(get::<Option<&str>>(row, column)?.map(Payload::new))
}

/// The column `status`.
pub(crate) fn status(row: &Row) -> Result<Status, Fault> {
    let stored: Option<&str> = get(row, "status")?;
    let stored = stored.ok_or_else(|| Fault::unreadable("status", "is missing"))?;
    Status::parse(stored).ok_or_else(|| Fault::unreadable("status", format!("{stored:?} is none")))
}

/// Something named, as a bound value.
pub(crate) fn bound<T: AsRef<str>>(name: Option<&T>) -> Option<&str> {
    name.map(T::as_ref)
}

/// What is looked for, as a bound value; nothing where no column can hold it, as no row is equal to that.
pub(crate) fn storable(asked: &impl AsRef<str>) -> Option<&str> {
    Some(asked.as_ref()).filter(|asked| !asked.contains('\0'))
}

/// A duration in whole milliseconds.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// A workflow row, selected by the columns of `part_columns`.
pub(crate) fn workflow(row: &Row) -> Result<WorkflowRow, Fault> {
    let id: WorkflowId = text(row, "workflow_uuid")?;
    let known = id.clone();
    whole_workflow(id, row).map_err(|fault| named(&known, fault))
}

/// Says which workflow it is that cannot be read.
pub(crate) fn named(id: &WorkflowId, fault: Fault) -> Fault {
    match fault {
        Fault::Unreadable(what) => Fault::Unreadable(format!("{id}: {what}")),
        other => other,
    }
}

fn whole_workflow(id: WorkflowId, row: &Row) -> Result<WorkflowRow, Fault> {
    let name: WorkflowName = text(row, "name")?;
    let mut found = WorkflowRow::new(id, name, status(row)?, stamp(row, "created_at")?, stamp(row, "updated_at")?);
    found.class = filled_if(row, "class_name")?;
    found.config = filled_if(row, "config_name")?;
    found.queue = filled_if(row, "queue_name")?;
    found.key = text_if(row, "queue_partition_key")?;
    found.dedup = text_if(row, "deduplication_id")?;
    found.executor = text_if(row, "executor_id")?;
    found.app = text_if(row, "application_name")?;
    found.version = text_if(row, "application_version")?;
    found.codec = text_if(row, "serialization")?;
    found.parent = text_if(row, "parent_workflow_id")?;
    found.forked_from = text_if(row, "forked_from")?;
    found.schedule = text_if(row, "schedule_name")?;
    found.started_at = stamp_if(row, "started_at_epoch_ms")?;
    found.completed_at = stamp_if(row, "completed_at")?;
    found.delay_until = stamp_if(row, "delay_until_epoch_ms")?;
    found.deadline = stamp_if(row, "workflow_deadline_epoch_ms")?;
    found.timeout = whole_if(row, "workflow_timeout_ms")?.map(Duration::from_millis);
    found.attributes = get::<Option<&str>>(row, "attributes")?.map(|stored| compact(stored).into());
    found.priority = get(row, "priority")?;
    found.attempts = whole_if(row, "recovery_attempts")?.unwrap_or(0);
    found.rate_limited = get(row, "rate_limited")?;
    found.was_forked = get(row, "was_forked_from")?;
    found.caller = caller(row)?;
    Ok(found)
}

/// A JSON text without the spaces that the server puts between its parts.
fn compact(stored: &str) -> String {
    let (mut text, mut quoted, mut escaped) = (String::with_capacity(stored.len()), false, false);
    for found in stored.chars() {
        if quoted || found != ' ' {
            text.push(found);
        }
        if found == '"' && !escaped {
            quoted = !quoted;
        }
        escaped = quoted && found == '\\' && !escaped;
    }
    text
}

/// Who a workflow acts for.
pub(crate) fn caller(row: &Row) -> Result<Caller, Fault> {
    let roles = roles(get(row, "authenticated_roles")?)?;
    Ok(Caller { user: get(row, "authenticated_user")?, role: get(row, "assumed_role")?, roles })
}

/// Peers write none as NULL, as an empty text, as `null` or as an empty list.
fn roles(stored: Option<&str>) -> Result<Vec<String>, Fault> {
    let Some(stored) = stored.filter(|stored| !stored.is_empty()) else { return Ok(Vec::new()) };
    let roles: Option<Vec<String>> =
        serde_json::from_str(stored).map_err(|error| Fault::unreadable("authenticated_roles", error))?;
    Ok(roles.unwrap_or_default())
}

/// Roles as they are stored: a JSON array, or NULL for none.
pub(crate) fn stored_roles(caller: &Caller) -> Option<String> {
    let roles = caller.roles.iter().map(|role| serde_json::Value::from(role.as_str())).collect();
    (!caller.roles.is_empty()).then(|| serde_json::Value::Array(roles).to_string())
}

/// What a row is now, by the columns `status`, `output` and `error`.
pub(crate) fn standing(row: &Row) -> Result<Standing, Fault> {
    let payload = |column| payload_if(row, column).map(|payload| payload.unwrap_or_else(|| "null".into()));
    Ok(match status(row)? {
        Status::Success => Standing::Ended(Outcome::Success(payload("output")?)),
        Status::Error => Standing::Ended(Outcome::Error(payload("error")?)),
        Status::Parked => Standing::Ended(Outcome::Parked(payload("error")?)),
        Status::Cancelled => Standing::Ended(Outcome::Cancelled),
        open => Standing::Open(open),
    })
}

/// Whether a row has ended without the payload that its end should have, by the same columns.
pub(crate) fn is_lacking(row: &Row) -> Result<bool, Fault> {
    let column = match get::<Option<&str>>(row, "status")? {
        Some("SUCCESS") => "output",
        Some("ERROR" | "MAX_RECOVERY_ATTEMPTS_EXCEEDED") => "error",
        _ => return Ok(false),
    };
    Ok(get::<Option<&str>>(row, column)?.is_none())
}

/// A recorded step, by the columns of `operation_outputs`.
pub(crate) fn step(row: &Row) -> Result<RecordedStep, Fault> {
    Ok(recorded((
        get(row, "function_id")?,
        get(row, "function_name")?,
        get(row, "output")?,
        get(row, "error")?,
        get(row, "child_workflow_id")?,
        get(row, "serialization")?,
        get(row, "started_at_epoch_ms")?,
        get(row, "completed_at_epoch_ms")?,
    )))
}

/// Position, name, output, error, child, codec, start and end, in the order of the stored arrays.
type StepArray =
    (i32, String, Option<String>, Option<String>, Option<String>, Option<String>, Option<i64>, Option<i64>);

/// Recorded steps as a statement gathers them: a JSON array of arrays as text; NULL is none.
pub(crate) fn steps_json(row: &Row, column: &str) -> Result<Vec<RecordedStep>, Fault> {
    let Some(stored) = get::<Option<&str>>(row, column)? else { return Ok(Vec::new()) };
    let steps: Vec<StepArray> = serde_json::from_str(stored).map_err(|error| Fault::unreadable(column, error))?;
    Ok(steps.into_iter().map(recorded).collect())
}

fn recorded((position, name, output, error, child, codec, started, completed): StepArray) -> RecordedStep {
    let result = match (output, error) {
        (_, Some(error)) => StepResult::Failure(error.into()),
        (Some(value), None) => StepResult::Value(value.into()),
        (None, None) => StepResult::Nothing,
    };
    let mut found = RecordedStep::new(Position(position), StepName::from(name), result);
    found.child = child.map(Into::into);
    found.codec = codec.map(Into::into);
    found.started_at = started.map(Timestamp::from_millis);
    found.completed_at = completed.map(Timestamp::from_millis);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_of_peers_that_mean_none_are_none() {
        for none in [None, Some(""), Some("null"), Some("[]")] {
            assert_eq!(roles(none).expect("none"), Vec::<String>::new(), "{none:?}");
        }
        assert_eq!(roles(Some(r#"["a","b"]"#)).expect("two"), ["a", "b"]);
        assert!(roles(Some("admin")).is_err() && roles(Some("[1]")).is_err());
    }

    #[test]
    fn roles_are_read_back_as_they_were_stored() {
        let caller = Caller { roles: vec!["a\"b".to_owned(), "ü".to_owned()], ..Caller::default() };
        assert_eq!(roles(stored_roles(&caller).as_deref()).expect("roles"), caller.roles);
        assert_eq!(stored_roles(&Caller::default()), None);
    }

    #[test]
    fn attributes_are_read_without_the_spaces_of_the_server() {
        let cases = [
            (r#"{"a": 1, "b": [1, 2]}"#, r#"{"a":1,"b":[1,2]}"#),
            (r#"{"a": "x, y: \"z\" "}"#, r#"{"a":"x, y: \"z\" "}"#),
            (r#"{"\\": " \\ ", "c": " "}"#, r#"{"\\":" \\ ","c":" "}"#),
        ];
        for (stored, read) in cases {
            assert_eq!(compact(stored), read);
        }
    }

    #[test]
    fn an_error_of_a_step_wins_over_its_output() {
        let step = |output: Option<&str>, error: Option<&str>| {
            let (output, error) = (output.map(str::to_owned), error.map(str::to_owned));
            recorded((3, "s".to_owned(), output, error, None, None, Some(1), Some(2))).result
        };
        assert_eq!(step(Some("1"), Some("2")), StepResult::Failure("2".into()));
        assert_eq!(step(Some("1"), None), StepResult::Value("1".into()));
        assert_eq!(step(None, None), StepResult::Nothing);
    }
}
