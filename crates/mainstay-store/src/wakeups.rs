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

#[cfg(test)]
mod tests {
    use mainstay_env::{Sim, block_on};

    use super::*;

    #[test]
    fn every_subscriber_hears_what_comes_after_it() {
        let hub = Wakeups::new();
        hub.publish(Wakeup::Registry);
        let (mut one, mut two) = (hub.subscribe(), hub.clone().subscribe());
        hub.publish(Wakeup::Queue("q".into()));
        for subscription in [&mut one, &mut two] {
            assert_eq!(block_on(subscription.next()), Wakeup::Queue("q".into()));
            assert_eq!(subscription.ready(), None);
        }
    }

    #[test]
    fn a_slow_subscriber_is_told_that_anything_may_have_changed() {
        let hub = Wakeups::new();
        let mut slow = hub.subscribe();
        for _ in 0..=BACKLOG {
            hub.publish(Wakeup::Registry);
        }
        assert_eq!(slow.ready(), Some(Wakeup::All));
        assert_eq!(slow.ready(), Some(Wakeup::Registry));
    }

    #[test]
    fn a_silent_hub_drops_every_hint() {
        let hub = Wakeups::silent();
        let mut subscription = hub.subscribe();
        hub.publish(Wakeup::All);
        assert_eq!(subscription.ready(), None);
    }

    #[test]
    fn a_subscription_outlives_its_hub_quietly() {
        let sim = Sim::new(1);
        let mut subscription = Wakeups::new().subscribe();
        let env = sim.env("p");
        let waited = env.timeout(std::time::Duration::from_secs(1), async move { subscription.next().await });
        assert!(sim.block_on(waited).is_err());
    }
}
