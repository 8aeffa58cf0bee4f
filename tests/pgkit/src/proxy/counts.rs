//! How much has passed, in the units that a cost is stated in.

use super::message::{Kind, Message};
use std::collections::{BTreeMap, VecDeque};

/// How many messages are kept by name.
const KEPT: usize = 10_000;

/// What has passed through a proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections that were opened to the server.
    pub connections: u64,
    /// Times a client with no answer outstanding sent something and waited: what it pays in latency.
    pub round_trips: u64,
    /// Query and Sync messages that the server answered; several in one round trip are pipelined.
    pub answers: u64,
    /// Answers after which no transaction was open: commits and rollbacks, also those of single statements.
    pub transactions: u64,
    /// Messages that commit a transaction block, see [`Message::is_commit`].
    pub commits: u64,
    /// The client's messages by kind.
    pub messages: BTreeMap<Kind, u64>,
    /// Errors that the server answered.
    pub errors: u64,
    /// Bytes from clients.
    pub bytes_up: u64,
    /// Bytes to clients.
    pub bytes_down: u64,
}

impl Counts {
    /// How many messages of a kind were forwarded.
    pub fn of(&self, kind: Kind) -> u64 {
        self.messages.get(&kind).copied().unwrap_or(0)
    }
}

/// The counts and the latest messages.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) counts: Counts,
    pub(crate) latest: VecDeque<Message>,
}

impl Record {
    /// Notes a message that is about to reach the server.
    pub(crate) fn up(&mut self, message: &Message, bytes: usize) {
        *self.counts.messages.entry(message.kind).or_default() += 1;
        self.counts.commits += u64::from(message.is_commit());
        self.counts.bytes_up += bytes as u64;
        if self.latest.len() == KEPT {
            self.latest.pop_front();
        }
        self.latest.push_back(message.clone());
    }

    /// Notes a message of the server: its tag, and the state that a ReadyForQuery tells.
    pub(crate) fn down(&mut self, message: &[u8], is_login: bool) {
        self.counts.bytes_down += message.len() as u64;
        match message[0] {
            b'Z' if !is_login => {
                self.counts.answers += 1;
                self.counts.transactions += u64::from(message.get(5) == Some(&b'I'));
            }
            b'E' => self.counts.errors += 1,
            _ => {}
        }
    }
}
