//! Messages, events and streams.

use async_trait::async_trait;

use crate::error::{Result, StoreError};
use crate::model::{CodecName, EventKey, MessageId, Payload, Standing, Topic, WorkflowId};

record! {
    /// A message that waits, as its receiver sees it before taking it.
    Message {
        required {
            /// Its id.
            id: MessageId,
            /// Its encoded content.
            body: Payload,
        }
        optional {
            /// Codec of the content.
            codec: CodecName,
        }
        default {}
    }

    /// Entries of a stream.
    StreamPage {
        required {
            /// What the writer is: an open one may add more.
            writer: Standing,
        }
        optional {}
        default {
            /// In order.
            entries: Vec<Payload> = Vec::new(),
            /// Whether the writer closed it.
            closed: bool = false,
        }
    }
}

/// Messages, events and streams; capability `signals`.
#[async_trait]
pub trait SignalStore: Send + Sync {
    /// The oldest message of a topic that is not consumed, by (created, id).
    ///
    /// Atomic: one snapshot. Idempotent: nothing is consumed. Errors: `Unsupported`, `Unavailable`, `Timeout`.
    async fn message_peek(&self, _to: &WorkflowId, _topic: Option<&Topic>) -> Result<Option<Message>> {
        Err(StoreError::unsupported("message_peek", "signals"))
    }

    /// The value of an event now.
    ///
    /// Atomic: one snapshot. Idempotent: yes. Errors: `Unsupported`, `Unavailable`, `Timeout`.
    async fn event_get(&self, _id: &WorkflowId, _key: &EventKey) -> Result<Option<Payload>> {
        Err(StoreError::unsupported("event_get", "signals"))
    }

    /// Entries of a stream from an offset on.
    ///
    /// Atomic: one snapshot. Idempotent: yes. Errors: `Unsupported`, `Unavailable`, `Timeout`.
    async fn stream_read(&self, _id: &WorkflowId, _key: &EventKey, _from: u32) -> Result<StreamPage> {
        Err(StoreError::unsupported("stream_read", "signals"))
    }
}
