//! Which enqueued rows a claimer may take, and the first of them in order.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use mainstay_store::{AppName, QueueName, Registered, VersionName};

use crate::index::{Kind, Rank};
use crate::state::{State, owned_by};

/// A claimer, as eligibility sees it.
pub(crate) struct Claimer<'a> {
    app: &'a AppName,
    version: &'a VersionName,
    names: &'a [Registered],
    /// Whether it may take unversioned rows.
    unversioned: bool,
}

impl<'a> Claimer<'a> {
    pub(crate) fn new(state: &State, app: &'a AppName, version: &'a VersionName, names: &'a [Registered]) -> Self {
        let unversioned = state.latest_version(app).is_none_or(|latest| latest.name == *version);
        Self { app, version, names, unversioned }
    }

    fn takes(&self, kind: &Kind) -> bool {
        let version = kind.version.as_ref().map_or(self.unversioned, |version| version == self.version);
        version && owned_by(kind.app.as_ref(), self.app) && self.names.iter().any(|name| names(name, kind))
    }

    fn groups<'s>(&self, state: &'s State, queue: &QueueName) -> impl Iterator<Item = &'s BTreeSet<Rank>> {
        state.index.kinds(queue).filter(|(kind, _)| self.takes(kind)).map(|(_, rows)| rows)
    }

    /// Whether the queue has an eligible row.
    pub(crate) fn has_work(&self, state: &State, queue: &QueueName) -> bool {
        self.groups(state, queue).next().is_some()
    }

    /// The first eligible rows of the queue by (priority, created, id).
    pub(crate) fn first(&self, state: &State, queue: &QueueName, most: u32) -> Vec<Rank> {
        let mut groups: Vec<_> = self.groups(state, queue).map(BTreeSet::iter).collect();
        let heads = groups.iter_mut().enumerate().filter_map(|(at, group)| Some(Reverse((group.next()?, at))));
        let mut heads: BinaryHeap<_> = heads.collect();
        let mut found = Vec::new();
        while found.len() < most as usize {
            let Some(Reverse((rank, at))) = heads.pop() else { break };
            found.push(rank.clone());
            heads.extend(groups[at].next().map(|rank| Reverse((rank, at))));
        }
        found
    }
}

fn names(registered: &Registered, kind: &Kind) -> bool {
    registered.name == kind.name && registered.class == kind.class && registered.config == kind.config
}
