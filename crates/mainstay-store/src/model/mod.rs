//! Rows and rules as plain data.

mod bounds;
mod ids;
mod outcome;
mod queue;
mod status;
mod step;
mod time;
pub mod wire;
mod workflow;

pub use bounds::Bounds;
pub use ids::*;
pub use outcome::{Outcome, Standing};
pub use queue::{Change, Limits, Queue, QueueChange, Rate, Revision};
pub use status::{Move, Status};
pub use step::{RecordedStep, StepOutput, StepResult, StepRow, Steps};
pub use time::When;
pub use workflow::{Caller, Input, WorkflowRow};
