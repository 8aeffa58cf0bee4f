//! The error of a replay that asks for something else than was recorded.

use std::fmt;

use mainstay_store::{Position, RecordedStep, StepName, WorkflowId};

use super::{CallKind, Expect, is_reserved};

/// A recorded row that is not the call's own: position, what is recorded, what the code asks for, and how to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    /// Place of both.
    pub(crate) position: Position,
    recorded: Option<Call>,
    asked: Call,
}

/// A call as far as its row tells.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Call {
    Step(StepName),
    Engine(StepName),
    Start(StepName, Option<WorkflowId>),
    Await(StepName, Option<WorkflowId>),
}

impl Mismatch {
    /// `row` stands where the code asks for another call.
    pub(super) fn new(row: RecordedStep, expect: &Expect<'_>) -> Self {
        Self { position: expect.position, recorded: Some(Call::of_row(row)), asked: Call::of_expect(expect) }
    }

    /// A write was refused for what is recorded, and nothing is recorded at the call's own position.
    pub(super) fn absent(expect: &Expect<'_>) -> Self {
        Self { position: expect.position, recorded: None, asked: Call::of_expect(expect) }
    }
}

impl Call {
    fn of_row(row: RecordedStep) -> Self {
        match (is_reserved(&row.name), row.child) {
            (true, Some(child)) => Self::Await(row.name, Some(child)),
            (true, None) => Self::Engine(row.name),
            (false, Some(child)) => Self::Start(row.name, Some(child)),
            (false, None) => Self::Step(row.name),
        }
    }

    fn of_expect(expect: &Expect<'_>) -> Self {
        let name = expect.name.clone();
        match expect.kind {
            CallKind::Step => Self::Step(name),
            CallKind::Sleep | CallKind::Effect => Self::Engine(name),
            CallKind::Start => Self::Start(name, None),
            CallKind::Await(id) => Self::Await(name, Some(id.clone())),
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step(name) => write!(f, "step {name:?}"),
            Self::Engine(name) => write!(f, "engine call {name}"),
            Self::Start(name, None) => write!(f, "start of workflow {name:?}"),
            Self::Start(name, Some(child)) => write!(f, "start of workflow {name:?} as {child}"),
            Self::Await(name, None) => write!(f, "{name}"),
            Self::Await(name, Some(child)) => write!(f, "{name} of {child}"),
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { position, recorded, asked } = self;
        match recorded {
            Some(recorded) => write!(f, "position {position} holds the {recorded}, and the code asks for the {asked}")?,
            None => write!(f, "position {position} holds nothing, and the code has written beside the {asked} before")?,
        }
        f.write_str("; deploy code that makes the recorded calls in their order and resume the workflow")
    }
}

impl std::error::Error for Mismatch {}
