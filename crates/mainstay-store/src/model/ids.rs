//! Names and identifiers as types of their own, so that neighbours cannot be swapped.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident,)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes the text as it is; a store checks it against [`super::Bounds`] before anything is written.
            #[must_use]
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl From<&String> for $name {
            fn from(text: &String) -> Self {
                Self(text.as_str().into())
            }
        }

        impl From<Arc<str>> for $name {
            fn from(text: Arc<str>) -> Self {
                Self(text)
            }
        }

        impl From<&$name> for $name {
            fn from(name: &$name) -> Self {
                name.clone()
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                &*self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                &*self.0 == *other
            }
        }
    )*};
}

texts! {
    /// Identifies one workflow row: a UUIDv7 of ours, or any text that the caller chose.
    WorkflowId,
    /// Name under which a workflow function is registered.
    WorkflowName,
    /// Class of a registered workflow, where its language has one.
    ClassName,
    /// Name of a configured instance of a class.
    ConfigName,
    /// Name of a queue; unique in the store over all applications.
    QueueName,
    /// Divides a queue; limits of a partition count for one key.
    PartitionKey,
    /// At most one unfinished workflow of a queue carries a given one.
    DedupKey,
    /// Name of an application: the owner of workflows, queues and versions.
    AppName,
    /// Version of an application's code.
    VersionName,
    /// `<name>~<nonce>`, new at every launch of a process.
    ExecutorId,
    /// Identity of one start or one claim, made by the caller; at most 40 bytes.
    Token,
    /// Identifies one message.
    MessageId,
    /// Sorts the messages of one receiver.
    Topic,
    /// Names an event or a stream of a workflow.
    EventKey,
    /// Name of a step or of a durable call, as its checkpoint stores it.
    StepName,
    /// Name of the codec that encoded a payload, such as `portable_json`.
    CodecName,
    /// Name of a schedule.
    ScheduleName,
}

/// An encoded value; a store keeps its text and never looks inside.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Payload(Arc<str>);

impl Payload {
    /// Takes encoded text.
    #[must_use]
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The encoded text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its length in bytes, as byte budgets count it.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.len() as u64
    }
}

impl From<&str> for Payload {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for Payload {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for Payload {
    /// Shows the size alone: payloads stay out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} bytes)", self.0.len())
    }
}

/// Place of a durable call in its workflow, counted from 0 in the order in which calls are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Position(pub i32);

impl From<i32> for Position {
    fn from(position: i32) -> Self {
        Self(position)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
