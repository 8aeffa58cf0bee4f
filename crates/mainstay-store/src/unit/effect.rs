//! The writes that a unit may carry besides steps and an outcome.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::{
    AppName, Caller, ClassName, CodecName, ConfigName, DedupKey, EventKey, ExecutorId, MessageId, PartitionKey,
    Payload, Position, QueueName, ScheduleName, Token, Topic, VersionName, When, WorkflowId, WorkflowName,
};

/// What a submit does when its workflow id exists already under the same name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnExisting {
    /// Answers with the stored workflow; nothing of it changes.
    #[default]
    Return,
    /// Refuses the unit.
    Refuse,
}

/// What a submit does when its deduplication key is held by another workflow of the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnHeld {
    /// Refuses the unit with [`crate::Refusal::Held`].
    #[default]
    Reject,
    /// Refuses the unit with [`crate::Refusal::Joined`]: the caller goes on with the holder.
    Join,
}

/// A deduplication key and what happens when it is held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joining {
    /// Held from the submit until the workflow ends, is resumed or parked.
    pub key: DedupKey,
    /// What happens when another workflow of the queue holds it.
    pub on_held: OnHeld,
}

/// Where a new workflow begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Place {
    /// At once, in this executor; refused when its lease is gone.
    Run(ExecutorId),
    /// On a queue, which need not be registered.
    Queue {
        /// The queue.
        name: QueueName,
        /// The partition; not together with a deduplication key.
        key: Option<PartitionKey>,
        /// When it may be claimed; at once where missing.
        delay: Option<When>,
    },
}

impl Place {
    /// On a queue, at once and without a partition.
    #[must_use]
    pub fn queue(name: impl Into<QueueName>) -> Self {
        Self::Queue { name: name.into(), key: None, delay: None }
    }
}

record! {
    /// A new workflow. Its id, and the token that says whose it is, are the caller's, so that a repeat is safe.
    Submit {
        required {
            /// Its id.
            id: WorkflowId,
            /// Name of its function.
            name: WorkflowName,
            /// Identity of this start: the same token again is answered as the first time.
            token: Token,
            /// Where it begins.
            place: Place,
        }
        optional {
            /// Its input.
            input: Payload,
            /// Class of its function.
            class: ClassName,
            /// Configured instance of the class.
            config: ConfigName,
            /// Codec of input, output and error.
            codec: CodecName,
            /// Its deduplication key; a queue is needed.
            dedup: Joining,
            /// Workflow that starts it.
            parent: WorkflowId,
            /// Owner.
            app: AppName,
            /// Version it is bound to.
            version: VersionName,
            /// Budget of its first execution, which becomes its deadline then.
            timeout: Duration,
            /// When it is cancelled unless ended, such as an inherited deadline.
            deadline: When,
            /// A JSON object for searching.
            attributes: Payload,
            /// Schedule that makes it.
            schedule: ScheduleName,
        }
        default {
            /// Lower is first, from 1; 0 is "none given" and comes before every other.
            priority: i32 = 0,
            /// What happens when the id exists.
            on_existing: OnExisting = OnExisting::Return,
            /// Who it acts for.
            caller: Caller = Caller::default(),
        }
    }

    /// A message to a workflow.
    Mail {
        required {
            /// Its id; the same again is dropped.
            id: MessageId,
            /// The receiver, which must exist.
            to: WorkflowId,
            /// Its encoded content.
            body: Payload,
        }
        optional {
            /// Its topic.
            topic: Topic,
            /// Codec of the content.
            codec: CodecName,
        }
        default {}
    }

    /// A copy of a workflow with its steps below a position, enqueued.
    Fork {
        required {
            /// The workflow to copy.
            source: WorkflowId,
            /// Id of the copy; a repeat that finds it made from the same source changes nothing.
            id: WorkflowId,
            /// First position that is not copied.
            below: Position,
        }
        optional {
            /// Its queue; the internal one where missing.
            queue: QueueName,
            /// Its partition.
            key: PartitionKey,
            /// Its version; the source's where missing.
            version: VersionName,
        }
        default {}
    }
}

/// A change of the schedule registry, as an encoded record; the schedule capability fixes its form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// The schedule.
    pub name: ScheduleName,
    /// What changes.
    pub change: Payload,
}

/// One write of a unit. `at` is the position of the call that makes it.
///
/// A backend answers one that it does not know with [`crate::Refusal::Unsupported`]. The workflow of the unit's own fence is never
/// moved by its effects: named among `ids` it makes the unit invalid, reached as a descendant it is left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Effect {
    /// Starts or enqueues a workflow.
    Submit(Box<Submit>),
    /// Sends a message.
    Mail(Mail),
    /// Consumes one message, seen before by a peek; refused when it is consumed already.
    RecvTake {
        /// Position of the receive.
        at: Position,
        /// The message.
        message: MessageId,
    },
    /// Sets an event of the own workflow.
    SetEvent {
        /// Position of the call.
        at: Position,
        /// The event.
        key: EventKey,
        /// Its new value.
        value: Payload,
        /// Codec of the value.
        codec: Option<CodecName>,
    },
    /// Appends to a stream of the own workflow.
    StreamWrite {
        /// Position of the call.
        at: Position,
        /// The stream.
        key: EventKey,
        /// The entry.
        value: Payload,
        /// Codec of the entry.
        codec: Option<CodecName>,
    },
    /// Closes a stream of the own workflow.
    StreamClose {
        /// Position of the call.
        at: Position,
        /// The stream.
        key: EventKey,
    },
    /// Cancels those that are delayed, enqueued, pending or parked; the others are left alone.
    Cancel {
        /// The workflows; unknown ids are left out.
        ids: Vec<WorkflowId>,
        /// Whether their descendants are cancelled too.
        children: bool,
    },
    /// Enqueues those that are not ended by a value or an error again, with attempts from 0 and without a deadline.
    ///
    /// A pending row refuses the unit unless `force`, so that a repeat never restarts what the first try resumed.
    Resume {
        /// The workflows; an unknown id refuses the unit.
        ids: Vec<WorkflowId>,
        /// Where they go; the internal queue where missing.
        queue: Option<QueueName>,
        /// Whether a pending row is taken from its executor.
        force: bool,
    },
    /// Copies a workflow.
    Fork(Fork),
    /// Starts an ended workflow again from a position.
    Rewind {
        /// The workflow.
        id: WorkflowId,
        /// First position that is forgotten.
        below: Position,
    },
    /// Deletes workflows in any state, with all that hangs on them.
    Delete {
        /// The workflows; unknown ids are left out.
        ids: Vec<WorkflowId>,
        /// Whether their descendants are deleted too.
        children: bool,
    },
    /// Returns the own workflow to its queue, or to the internal one when it has none. Neither steps nor an outcome may follow.
    GiveBack {
        /// How long it stays delayed; at once claimable where missing.
        delay: Option<Duration>,
        /// Whether its body may have begun in this execution. The attempt of one that has not is taken off again.
        begun: bool,
    },
    /// Moves the due time of a delayed workflow; refused with `Missing` when it is not delayed.
    SetDelay {
        /// The workflow.
        id: WorkflowId,
        /// When it may be claimed.
        delay: When,
    },
    /// Replaces the attributes of a workflow.
    Attributes {
        /// The workflow.
        id: WorkflowId,
        /// A JSON object; `None` clears.
        json: Option<Payload>,
    },
    /// Pushes a debounced workflow that is still delayed.
    Debounce {
        /// Its queue.
        queue: QueueName,
        /// Its key.
        dedup: DedupKey,
        /// How far it is pushed from now.
        push: Duration,
        /// Its new input.
        input: Payload,
    },
    /// Changes the schedule registry.
    Schedule(Schedule),
}

impl From<Submit> for Effect {
    fn from(submit: Submit) -> Self {
        Self::Submit(Box::new(submit))
    }
}

impl From<Mail> for Effect {
    fn from(mail: Mail) -> Self {
        Self::Mail(mail)
    }
}

impl From<Fork> for Effect {
    fn from(fork: Fork) -> Self {
        Self::Fork(fork)
    }
}

impl Effect {
    /// Whether an identity in the request makes a repeat harmless.
    #[must_use]
    pub const fn repeatable(&self) -> bool {
        match self {
            Self::Submit(_) | Self::Mail(_) | Self::Fork(_) | Self::RecvTake { .. } | Self::GiveBack { .. } => true,
            Self::SetEvent { .. } | Self::StreamClose { .. } | Self::Cancel { .. } | Self::Delete { .. } => true,
            Self::Attributes { .. } => true,
            Self::Resume { force, .. } => !*force,
            Self::SetDelay { delay, .. } => matches!(delay, When::At(_)),
            Self::StreamWrite { .. } | Self::Rewind { .. } | Self::Debounce { .. } | Self::Schedule(_) => false,
        }
    }

    /// Whether it is a running execution's alone.
    #[must_use]
    pub const fn needs_fence(&self) -> bool {
        matches!(
            self,
            Self::RecvTake { .. }
                | Self::SetEvent { .. }
                | Self::StreamWrite { .. }
                | Self::StreamClose { .. }
                | Self::GiveBack { .. }
        )
    }

    /// The workflows it names to be moved or removed.
    #[must_use]
    pub fn moves(&self) -> &[WorkflowId] {
        match self {
            Self::Cancel { ids, .. } | Self::Resume { ids, .. } | Self::Delete { ids, .. } => ids,
            Self::Rewind { id, .. } | Self::SetDelay { id, .. } => std::slice::from_ref(id),
            _ => &[],
        }
    }
}
