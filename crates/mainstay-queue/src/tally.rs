//! What runs in this process: counts for each queue, each key and in all, places of `max_running`, and who waits for one.
//!
//! Pure: the shell holds it under one lock and wakes whom it names.

use std::collections::BTreeMap;

use mainstay_store::{ExecutorId, Fence, HeldRow, Local, PartitionKey, QueueName, Token, WorkflowId};

/// What a claim of one queue may count with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Places of `max_running` that this queue may take now.
    pub process: u32,
    /// Executions of this queue in this process.
    pub running: u32,
}

/// An execution to be counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// Its workflow.
    pub id: WorkflowId,
    /// Its queue; none for a direct start.
    pub queue: Option<QueueName>,
    /// Its partition.
    pub key: Option<PartitionKey>,
    /// Its right to write, where it is known.
    pub fence: Option<Fence>,
    /// The claim that took it.
    pub token: Option<Token>,
    /// The executor that it runs in.
    pub executor: ExecutorId,
}

/// Names one counted execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count(u64);

/// Whom a change gives room to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wakes {
    /// The queue of which a slot came free.
    pub freed: Option<QueueName>,
    /// Queues that have waited for a place of the process, first come first.
    pub waiting: Vec<QueueName>,
    /// Nothing runs any more.
    pub idle: bool,
}

#[derive(Clone, Debug)]
struct Counted {
    body: Body,
    holds_place: bool,
    /// A later execution of the workflow was begun here, or its lease is gone.
    superseded: bool,
}

#[derive(Clone, Debug, Default)]
struct QueueCount {
    running: u32,
    keys: BTreeMap<PartitionKey, u32>,
}

/// The counts of one process.
#[derive(Clone, Debug)]
pub struct Tally {
    max_running: u32,
    active: u32,
    reserved: u32,
    queues: BTreeMap<QueueName, QueueCount>,
    counted: BTreeMap<Count, Counted>,
    ids: BTreeMap<WorkflowId, Vec<Count>>,
    waiting: Vec<QueueName>,
    next: u64,
}

impl Tally {
    /// Empty counts of a process with so many places.
    #[must_use]
    pub fn new(max_running: u32) -> Self {
        Self {
            max_running,
            active: 0,
            reserved: 0,
            queues: BTreeMap::new(),
            counted: BTreeMap::new(),
            ids: BTreeMap::new(),
            waiting: Vec::new(),
            next: 0,
        }
    }

    /// Places of `max_running` that are neither taken nor kept for a claim that is out.
    #[must_use]
    pub fn places(&self) -> u32 {
        self.max_running.saturating_sub(self.active.saturating_add(self.reserved))
    }

    /// What a claim of `queue` may count with: one place is left for each queue that has waited longer.
    #[must_use]
    pub fn room(&self, queue: &QueueName) -> Room {
        let ahead = self.waiting.iter().take_while(|waiting| *waiting != queue).count();
        let ahead = u32::try_from(ahead).unwrap_or(u32::MAX);
        Room { process: self.places().saturating_sub(ahead), running: self.running_of(queue) }
    }

    /// Executions of one queue.
    #[must_use]
    pub fn running_of(&self, queue: &QueueName) -> u32 {
        self.queues.get(queue).map_or(0, |count| count.running)
    }

    /// The counts of one queue as a claim carries them.
    #[must_use]
    pub fn local(&self, queue: &QueueName) -> Local {
        self.queues
            .get(queue)
            .map_or_else(Local::default, |count| Local { running: count.running, keys: count.keys.clone() })
    }

    /// Executions of every queue that has some.
    #[must_use]
    pub fn by_queue(&self) -> BTreeMap<QueueName, u32> {
        self.queues.iter().map(|(name, count)| (name.clone(), count.running)).collect()
    }

    /// Executions in all, waiting ones included.
    #[must_use]
    pub fn running(&self) -> u32 {
        u32::try_from(self.counted.len()).unwrap_or(u32::MAX)
    }

    /// Executions that hold a place of `max_running`.
    #[must_use]
    pub const fn active(&self) -> u32 {
        self.active
    }

    /// Places kept for claims that are out.
    #[must_use]
    pub const fn reserved(&self) -> u32 {
        self.reserved
    }

    /// The workflows that run, in order of id.
    #[must_use]
    pub fn ids(&self) -> Vec<WorkflowId> {
        self.ids.keys().cloned().collect()
    }

    /// Whether any execution of this workflow is counted.
    #[must_use]
    pub fn runs(&self, id: &WorkflowId) -> bool {
        self.ids.contains_key(id)
    }

    /// Whether an execution with exactly this fence is counted.
    #[must_use]
    pub fn runs_as(&self, fence: &Fence) -> bool {
        self.bodies(fence.workflow()).any(|body| body.fence.as_ref() == Some(fence))
    }

    /// Whether a held row of the store is one that runs here: by its fence, by its token, or by its id alone where the
    /// fence of a direct start was never told.
    #[must_use]
    pub fn accounts_for(&self, row: &HeldRow) -> bool {
        self.bodies(row.fence.workflow()).any(|body| match &body.fence {
            None => true,
            Some(fence) => *fence == row.fence || (body.token.is_some() && body.token == row.token),
        })
    }

    /// What is counted of a workflow and may run on.
    fn bodies(&self, id: &WorkflowId) -> impl Iterator<Item = &Body> {
        let counts = self.ids.get(id).map_or(&[][..], Vec::as_slice);
        let counted = counts.iter().filter_map(|count| self.counted.get(count));
        counted.filter(|counted| !counted.superseded).map(|counted| &counted.body)
    }

    /// Keeps places for a claim that goes out, and takes its queue off the waiting list.
    pub fn reserve(&mut self, queue: &QueueName, places: u32) {
        self.reserved = self.reserved.saturating_add(places);
        self.leave(queue);
    }

    /// Gives kept places back.
    pub fn release(&mut self, places: u32) -> Wakes {
        self.reserved = self.reserved.saturating_sub(places);
        self.wakes(None)
    }

    /// Puts a queue that found no place at the end of the waiting list, unless it stands there.
    pub fn wait(&mut self, queue: &QueueName) {
        if !self.waiting.contains(queue) {
            self.waiting.push(queue.clone());
        }
    }

    /// Takes a queue off the waiting list; those behind it may have room now.
    pub fn leave(&mut self, queue: &QueueName) -> Wakes {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| waiting != queue);
        if self.waiting.len() == before { Wakes::default() } else { self.wakes(None) }
    }

    /// Counts an execution, over the bound if need be.
    pub fn take(&mut self, body: Body) -> Count {
        self.next += 1;
        let count = Count(self.next);
        if let Some(queue) = &body.queue {
            let counts = self.queues.entry(queue.clone()).or_default();
            counts.running += 1;
            if let Some(key) = &body.key {
                *counts.keys.entry(key.clone()).or_default() += 1;
            }
        }
        self.ids.entry(body.id.clone()).or_default().push(count);
        self.counted.insert(count, Counted { body, holds_place: true, superseded: false });
        self.active += 1;
        count
    }

    /// Marks what is counted of a workflow as superseded: it must neither start nor run on.
    pub fn supersede(&mut self, id: &WorkflowId) {
        for count in self.ids.get(id).into_iter().flatten() {
            if let Some(counted) = self.counted.get_mut(count) {
                counted.superseded = true;
            }
        }
    }

    /// Whether an execution is counted and not superseded.
    #[must_use]
    pub fn is_current(&self, count: Count) -> bool {
        self.counted.get(&count).is_some_and(|counted| !counted.superseded)
    }

    /// Tells the fence of a direct start.
    pub fn bind(&mut self, count: Count, fence: Fence) {
        if let Some(counted) = self.counted.get_mut(&count) {
            counted.body.fence = Some(fence);
        }
    }

    /// Ends the count of an execution; a second time does nothing.
    pub fn free(&mut self, count: Count) -> Wakes {
        let Some(counted) = self.forget(count) else { return Wakes::default() };
        self.active -= u32::from(counted.holds_place);
        if let Some(queue) = &counted.body.queue
            && let Some(counts) = self.queues.get_mut(queue)
        {
            counts.running -= 1;
            if let Some(key) = &counted.body.key
                && let Some(running) = counts.keys.get_mut(key)
            {
                *running -= 1;
                if *running == 0 {
                    counts.keys.remove(key);
                }
            }
            if counts.running == 0 {
                self.queues.remove(queue);
            }
        }
        self.wakes(counted.body.queue)
    }

    /// Forgets who is counted and leaves the numbers: what is doubtful must admit less, never more.
    pub fn abandon(&mut self, count: Count) {
        self.forget(count);
    }

    fn forget(&mut self, count: Count) -> Option<Counted> {
        let counted = self.counted.remove(&count)?;
        if let Some(counts) = self.ids.get_mut(&counted.body.id) {
            counts.retain(|other| *other != count);
            if counts.is_empty() {
                self.ids.remove(&counted.body.id);
            }
        }
        Some(counted)
    }

    /// Gives the place of `max_running` back while an execution waits; its queue and key keep counting it.
    pub fn pause(&mut self, count: Count) -> Wakes {
        match self.counted.get_mut(&count) {
            Some(counted) if counted.holds_place => {
                counted.holds_place = false;
                self.active -= 1;
                self.wakes(None)
            }
            _ => Wakes::default(),
        }
    }

    /// Takes a place again, over the bound if need be.
    pub fn resume(&mut self, count: Count) {
        if let Some(counted) = self.counted.get_mut(&count)
            && !counted.holds_place
        {
            counted.holds_place = true;
            self.active += 1;
        }
    }

    fn wakes(&self, freed: Option<QueueName>) -> Wakes {
        let places = usize::try_from(self.places()).unwrap_or(usize::MAX);
        let waiting = self.waiting.iter().take(places).cloned().collect();
        Wakes { freed, waiting, idle: self.counted.is_empty() }
    }
}
