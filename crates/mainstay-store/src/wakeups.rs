//! Hints that something may have changed: lossy, doubled at will, never data.

use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

use crate::model::{EventKey, QueueName, WorkflowId};

/// What may have changed. All stays right, only slower, when one is lost.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Wakeup {
    /// Anything: hints were lost, or a connection came back.
    All,
    /// A row of this queue became claimable, or a fleet slot of it is free.
    Queue(QueueName),
    /// This workflow ended, or was taken from its execution.
    Workflow(WorkflowId),
    /// A message for this workflow came in.
    Message(WorkflowId),
    /// An event or stream of this workflow changed.
    Event(WorkflowId, EventKey),
    /// A queue, its limits, or a version changed.
    Registry,
}

/// Most hints that a subscriber may be behind; a slower one is told [`Wakeup::All`].
const BACKLOG: usize = 1024;

/// The hub of one store: its backend publishes after its own commits, the layers above subscribe.
#[derive(Clone, Debug)]
pub struct Wakeups {
    sender: broadcast::Sender<Wakeup>,
    silent: bool,
}

impl Default for Wakeups {
    fn default() -> Self {
        Self::new()
    }
}

impl Wakeups {
    /// A hub without subscribers.
    #[must_use]
    pub fn new() -> Self {
        Self { sender: broadcast::Sender::new(BACKLOG), silent: false }
    }

    /// A hub that drops every hint, to prove that all works without.
    #[must_use]
    pub fn silent() -> Self {
        Self { silent: true, ..Self::new() }
    }

    /// Tells all subscribers.
    pub fn publish(&self, wakeup: Wakeup) {
        if !self.silent {
            // An error means that nobody listens, which is no failure of a hint.
            let _ = self.sender.send(wakeup);
        }
    }

    /// Hears every hint from now on.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        Subscription { receiver: self.sender.subscribe() }
    }
}

/// The hints of one subscriber.
#[derive(Debug)]
pub struct Subscription {
    receiver: broadcast::Receiver<Wakeup>,
}

impl Subscription {
    /// The next hint; waits for ever once the hub is gone. May be dropped at any await without losing a hint.
    pub async fn next(&mut self) -> Wakeup {
        match self.receiver.recv().await {
            Ok(wakeup) => wakeup,
            Err(broadcast::error::RecvError::Lagged(_)) => Wakeup::All,
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }

    /// A hint that is there already.
    pub fn ready(&mut self) -> Option<Wakeup> {
        match self.receiver.try_recv() {
            Ok(wakeup) => Some(wakeup),
            Err(broadcast::error::TryRecvError::Lagged(_)) => Some(Wakeup::All),
            Err(_) => None,
        }
    }
}
