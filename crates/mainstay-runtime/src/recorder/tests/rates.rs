//! How fast a lane is. The figures are printed by
//! `MAINSTAY_RATES=1 cargo test --release -p mainstay-runtime --lib rates -- --nocapture`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mainstay_env::Env;
use mainstay_memory::Memory;
use mainstay_store::{
    Beat, EffectReply, ExecutorStore, Fence, Place, Store, StoreClock, Submit, UnitReply, WriteExt, wrap,
};

use super::super::{Patience, Recorder};
use super::world::{Scripted, step};

/// What one run showed.
struct Rate {
    units: usize,
    commits: usize,
    took: Duration,
}

async fn begin(memory: &Memory, id: &str) -> Fence {
    let submit = Submit::new(id, "job", format!("t-{id}"), Place::Run("web~1".into()));
    let reply = memory.submit(submit).await.expect("submitted");
    let UnitReply::Done { effects } = reply else { panic!("{reply:?}") };
    let [EffectReply::Created(created)] = &effects[..] else { panic!("{effects:?}") };
    created.fence.clone().expect("it runs at once")
}

/// So many callers, each with a workflow, write one step after the other until `lasts` has passed. The lane is on the engine's
/// thread, the callers on another one, as in a program.
fn run(callers: usize, lasts: Duration) -> Rate {
    let engine = Env::system("engine").expect("a thread");
    let bodies = Env::system("bodies").expect("a thread");
    let memory = Memory::open(engine.clone(), StoreClock::Server);
    let scripted = Scripted::new(memory.clone(), engine.clone());
    scripted.counts_only.store(true, Ordering::Relaxed);
    let store: Arc<dyn Store> = wrap::standard(scripted.clone());
    let recorder = Recorder::start(store, engine.tasks(), 1);
    mainstay_env::block_on(memory.lease_beat(Beat::new("web~1", "shop", 1_u64))).expect("a first beat");
    let units = Arc::new(AtomicUsize::new(0));
    let began = bodies.monotonic();
    let until = began + lasts;
    let tasks: Vec<_> = (0..callers)
        .map(|at| {
            let (memory, recorder, units, env) = (memory.clone(), recorder.clone(), units.clone(), bodies.clone());
            bodies.tasks().spawn("caller", async move {
                let fence = begin(&memory, &format!("w{at}")).await;
                for position in 0.. {
                    let answer = recorder.commit(fence.workflow(), step(&fence, position), Patience::Forever).await;
                    assert!(answer.is_ok_and(|answer| answer.reply.is_done()));
                    units.fetch_add(1, Ordering::Relaxed);
                    if env.monotonic() >= until {
                        return;
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        mainstay_env::block_on(task).expect("every step commits");
    }
    let took = bodies.monotonic().since(began);
    Rate { units: units.load(Ordering::Relaxed), commits: scripted.commits.load(Ordering::Relaxed), took }
}

#[test]
fn callers_on_another_thread_share_commits() {
    let wanted = std::env::var_os("MAINSTAY_RATES").is_some();
    let lasts = Duration::from_millis(if wanted { 2_000 } else { 50 });
    for callers in [1, 16, 256] {
        let Rate { units, commits, took } = run(callers, lasts);
        let (rate, each) = (units as f64 / took.as_secs_f64(), units as f64 / commits as f64);
        if wanted {
            let line = format!("{callers:>4} callers: {rate:>9.0} units/s, {each:>6.1} units a commit\n");
            std::io::Write::write_all(&mut std::io::stdout(), line.as_bytes()).expect("written");
        }
        assert!(units >= callers, "{units} units of {callers} callers");
        assert!(commits <= units && (callers < 256 || each > 4.0), "{callers} callers: {units} in {commits} commits");
    }
}
