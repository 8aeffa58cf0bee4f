//! What users have stored is in no record of the log and in no error.

use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

use log::{Level, LevelFilter, Log, Metadata, Record};
use mainstay_env::block_on;
use mainstay_pgkit::shown;
use mainstay_store::{
    ErrorKind, Joining, Limits, OnHeld, Outcome, Place, QueueStore, StepOutput, StepRow, Submit, Unit, UnitReply,
    WorkflowStore, WriteStore,
};

use crate::store::claim::{APP, E1, Q, WORK, claim, lease, register};
use crate::store::support;

const CANARY: &str = "CANARY-51d2";

static SEEN: Mutex<String> = Mutex::new(String::new());

/// Keeps what the driver and this crate tell by `log`.
struct Keeper;

impl Log for Keeper {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= Level::Debug
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
            writeln!(seen, "{}: {}", record.target(), record.args()).expect("a text takes all");
        }
    }

    fn flush(&self) {}
}

static KEEPER: Keeper = Keeper;

fn job(id: &str) -> Unit {
    let input = format!("[\"{CANARY}\"]");
    let submit = Submit::new(id, WORK, format!("t-{id}"), Place::queue(Q)).app(APP).input(input.as_str());
    Unit::new().effect(submit.dedup(Joining { key: format!("{CANARY}-{id}").into(), on_held: OnHeld::Reject }))
}

#[test]
fn what_users_store_is_in_no_record_of_the_log_and_in_no_error() {
    let Some(database) = support::database() else { return };
    log::set_logger(&KEEPER).expect("no other logger");
    log::set_max_level(LevelFilter::Debug);
    for pooler in [false, true] {
        let id = if pooler { "b" } else { "a" };
        block_on(async {
            let store = support::open(&database, |config| config.pooler(pooler)).await;
            lease(&store, E1).await;
            register(&store, Limits::default()).await;
            let committed = store.commit(&[job(id)]).await.expect("committed");
            assert!(matches!(committed.units[..], [Ok(UnitReply::Done { .. })]), "{committed:?}");
            let rows = store.queue_claim(claim(&store, E1)).await.expect("a claim").rows;
            let value = format!("\"{CANARY}\"");
            let unit = Unit::by(&rows[0].fence)
                .step(StepRow::new(0, "s", StepOutput::Value(value.as_str().into())))
                .outcome(Outcome::Success(value.as_str().into()));
            store.commit(&[unit]).await.expect("committed");
            store.workflow_standing(&[id.into()]).await.expect("read");

            // The server's DETAIL shows the whole row that breaks this rule.
            let rule =
                "ALTER TABLE dbos.workflow_status ADD CONSTRAINT short CHECK (length(workflow_uuid) < 9) NOT VALID";
            if !pooler {
                database.client().run(rule);
            }
            let refused = store.commit(&[job(&format!("{id}-too-long"))]).await.expect("the others are committed");
            let [Err(error)] = &refused.units[..] else { panic!("a rule is broken: {refused:?}") };
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
            let text = shown(error);
            assert!(text.contains("23514") && text.contains("short"), "{text}");
            assert!(!text.contains(CANARY) && !text.contains("Failing row"), "{text}");
        });
    }
    let seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(seen.contains("tokio_postgres") && seen.contains("executing statement"), "nothing was captured: {seen}");
    assert!(!seen.contains(CANARY), "{}", seen.lines().filter(|line| line.contains(CANARY)).collect::<String>());
}
