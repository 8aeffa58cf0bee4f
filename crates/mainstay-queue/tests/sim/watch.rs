//! Looks at the store after each write: which rows changed, and which queues and versions there are.

use crate::ledger::{Around, Change, Latest};
use crate::world::instantly;
use mainstay_memory::Memory;
use mainstay_store::{AppName, Claim, Queue, QueueName, Registry, Timestamp, VersionName, WorkflowId, WorkflowRow};
use std::collections::BTreeMap;

/// The applications whose queues and versions are looked at.
const OWNERS: [&str; 2] = ["shop", "depot"];

/// Queues and versions as last seen.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    queues: BTreeMap<QueueName, Queue>,
    latest: BTreeMap<AppName, VersionName>,
}

impl Watch {
    pub(crate) fn queues(&self) -> &BTreeMap<QueueName, Queue> {
        &self.queues
    }

    /// Reads queues and versions again.
    pub(crate) fn look(&mut self, memory: &Memory) {
        self.queues.clear();
        self.latest.clear();
        for owner in OWNERS.map(AppName::from) {
            let queues = instantly(memory.queue_list(&owner)).expect("a list of queues");
            self.queues.extend(queues.into_iter().map(|queue| (queue.name.clone(), queue)));
            let versions = instantly(memory.version_list(&owner)).expect("a list of versions");
            self.latest.extend(versions.into_iter().next().map(|version| (owner, version.name)));
        }
    }

    pub(crate) fn around<'a>(&'a self, claim: Option<&'a Claim>) -> Around<'a> {
        Around { queues: &self.queues, latest: self, claim }
    }
}

impl Latest for Watch {
    fn is_latest(&self, app: &str, version: &VersionName) -> bool {
        self.latest.get(app).is_none_or(|latest| latest == version)
    }
}

/// What changed between the rows as known and the rows as they are, in order of id.
pub(crate) fn changes(known: &BTreeMap<WorkflowId, WorkflowRow>, memory: &Memory, at: Timestamp) -> Vec<Change> {
    let mut found = Vec::new();
    let mut before = known.iter().peekable();
    for row in memory.rows() {
        while let Some((_, gone)) = before.next_if(|(id, _)| **id < row.id) {
            found.push(Change { at, before: Some(gone.clone()), after: None });
        }
        match before.next_if(|(id, _)| **id == row.id) {
            Some((_, same)) if *same == row => {}
            Some((_, old)) => found.push(Change { at, before: Some(old.clone()), after: Some(row) }),
            None => found.push(Change { at, before: None, after: Some(row) }),
        }
    }
    found.extend(before.map(|(_, gone)| Change { at, before: Some(gone.clone()), after: None }));
    found
}
