//! Limits of the fleet with claimers at once: never above them, while rows are released, given back, cancelled, resumed and
//! taken over meanwhile.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use mainstay_env::{Rng, Timestamp, block_on};
use mainstay_pgkit::Database;
use mainstay_postgres::Postgres;
use mainstay_store::{
    Effect, ExecutorStore, Fence, Limits, Maintenance, Outcome, Place, QueueStore, Rate, Store, Submit, TakeOver,
    TakenOver, Tick, Unit, WorkflowId, WriteStore,
};

use crate::store::claim::{APP, Q, WORK, claim, lease, register};
use crate::store::support;

const CLAIMERS: usize = 6;
const LIMIT: u32 = 5;
/// The window of the rate.
const PERIOD: Duration = Duration::from_millis(250);

/// Starts that show something, and how much longer than told they are waited for.
const ENOUGH: usize = 100;
const PATIENCE: Duration = Duration::from_secs(60);

/// How long claimers are let loose: some seconds, or a minute with `MAINSTAY_FULL=1`.
fn span() -> Duration {
    let full = std::env::var_os("MAINSTAY_FULL").is_some_and(|full| full == "1");
    Duration::from_secs(if full { 60 } else { 4 })
}

/// What goes on around the claims.
struct Floor {
    store: Postgres,
    until: mainstay_env::Monotonic,
    rng: Rng,
    number: Cell<u64>,
    /// When rows were started, by the store's clock.
    starts: RefCell<Vec<Timestamp>>,
}

impl Floor {
    /// Until the span is over and there is something to judge, however slow the machine is.
    fn is_open(&self) -> bool {
        let now = self.store.env().monotonic();
        now < self.until || (self.starts.borrow().len() <= ENOUGH && now < self.until + PATIENCE)
    }

    fn next(&self) -> u64 {
        self.number.set(self.number.get() + 1);
        self.number.get()
    }

    async fn commit(&self, units: &[Unit]) {
        for unit in self.store.commit(units).await.expect("committed").units {
            unit.expect("a unit that is no poison");
        }
    }

    /// Rows of random priorities, some of them delayed for a moment, and the tick that releases those.
    async fn supply(&self) {
        while self.is_open() {
            let submit = |_| {
                let n = self.next();
                let delay = self.rng.chance(0.3).then(|| Duration::from_millis(self.rng.below(20)).into());
                let place = Place::Queue { name: Q.into(), key: None, delay };
                let priority = i32::try_from(self.rng.below(10)).expect("small");
                Unit::new()
                    .effect(Submit::new(format!("w{n}"), WORK, format!("t{n}"), place).app(APP).priority(priority))
            };
            let units: Vec<Unit> = (0..12).map(submit).collect();
            self.commit(&units).await;
            self.store.tick(Tick::new(APP)).await.expect("ticked");
        }
    }

    /// Claims, and ends or gives back what it has taken. Now and then its executor dies and is taken over.
    async fn claims(&self, place: usize, moves: bool) {
        let mut life = 0;
        let mut executor = format!("e{place}-{life}~1");
        lease(&self.store, &executor).await;
        while self.is_open() {
            let budget = 1 + u32::try_from(self.rng.below(4)).expect("small");
            let claimed = self.store.queue_claim(claim(&self.store, &executor).budget(budget)).await.expect("claimed");
            self.starts.borrow_mut().extend(claimed.rows.iter().map(|_| claimed.now));
            for row in claimed.rows {
                self.ends(&row.fence, row.row.id, moves).await;
            }
            if self.rng.chance(0.05) {
                self.take_over(&executor).await;
                life += 1;
                executor = format!("e{place}-{life}~1");
                lease(&self.store, &executor).await;
            }
        }
    }

    async fn take_over(&self, executor: &str) {
        loop {
            match self.store.lease_take_over(TakeOver::new(executor, 1_u64)).await.expect("taken over") {
                TakenOver::Rows { more: true, .. } => {}
                _ => return,
            }
        }
    }

    async fn ends(&self, fence: &Fence, id: WorkflowId, moves: bool) {
        let ids = vec![id];
        match self.rng.below(if moves { 6 } else { 4 }) {
            0 => self.commit(&[Unit::by(fence).effect(Effect::GiveBack { delay: None, begun: true })]).await,
            1 => {} // left to the take-over
            4 => self.commit(&[Unit::new().effect(Effect::Cancel { ids, children: false })]).await,
            5 => {
                self.commit(&[Unit::new().effect(Effect::Cancel { ids: ids.clone(), children: false })]).await;
                self.commit(&[Unit::new().effect(Effect::Resume { ids, queue: Some(Q.into()), force: true })]).await;
            }
            _ => self.commit(&[Unit::by(fence).outcome(Outcome::Success("1".into()))]).await,
        }
    }
}

/// Lets claimers loose on a queue, and answers the starts and how many rows ran at most.
async fn loose(database: &Database, limits: Limits, moves: bool) -> (Vec<Timestamp>, u64) {
    let store = support::open(database, |config| config.pool(CLAIMERS as u32 + 2)).await;
    register(&store, limits).await;
    let floor = Floor {
        until: store.env().monotonic() + span(),
        rng: Rng::seeded(4),
        number: Cell::new(0),
        starts: RefCell::default(),
        store,
    };
    let (url, open) = (database.clone(), Arc::new(AtomicBool::new(true)));
    let is_open = open.clone();
    // A thread of its own: it must look while the others wait for the server.
    let watch = floor.store.env().tasks().thread("watch", move || {
        let mut client = url.client();
        let (mut most, mut looks) = (0, 0_u64);
        while is_open.load(Ordering::Relaxed) {
            let running = "SELECT count(*) FROM dbos.workflow_status WHERE queue_name = 'q' AND status = 'PENDING'";
            most = most.max(client.value(running).parse::<u64>().expect("a count"));
            looks += 1;
        }
        (most, looks)
    });
    let claimers = join_all((0..CLAIMERS).map(|place| floor.claims(place, moves)));
    futures_util::future::join(claimers, floor.supply()).await;
    open.store(false, Ordering::Relaxed);
    let (most, looks) = watch.expect("a thread").await.expect("a watch");
    assert!(looks > 100, "{looks} looks show nothing");
    (floor.starts.into_inner(), most)
}

#[test]
fn six_claimers_never_run_more_than_the_queue_allows() {
    let Some(database) = support::database() else { return };
    let limits = Limits { concurrency: Some(LIMIT), ..Limits::default() };
    let (starts, most) = block_on(loose(&database, limits, false));
    assert_eq!(most, u64::from(LIMIT), "it is reached and never exceeded, in {} starts", starts.len());
    assert!(starts.len() > ENOUGH, "{} starts", starts.len());
}

#[test]
fn six_claimers_never_start_more_than_the_rate_allows() {
    let Some(database) = support::database() else { return };
    let limits = Limits { rate: Some(Rate { starts: LIMIT, period: PERIOD }), ..Limits::default() };
    let (mut starts, _) = block_on(loose(&database, limits, true));
    starts.sort_unstable();
    let limit = LIMIT as usize;
    for window in starts.windows(limit + 1) {
        let lasted = window[limit].since(window[0]);
        assert!(lasted >= PERIOD, "{} starts within {lasted:?}: {window:?}", limit + 1);
    }
    let windows = span().as_millis() / PERIOD.as_millis();
    assert!(starts.len() as u128 >= windows * u128::from(LIMIT) / 2, "{} starts in {windows} windows", starts.len());
}
